//! UUIDs of version 7 (RFC 9562) that are made of what ids are made of: a position, and the bits of the node that issues it.
//!
//! | bits | hold |
//! | --- | --- |
//! | 48 | milliseconds since 1970 at which the position's tick begins |
//! | 4 | the version, 7 |
//! | 12 (`rand_a`) | the counter begins here and goes on in `rand_b` |
//! | 2 | the variant, 10 |
//! | 62 (`rand_b`) | the rest of the counter, the node, and what fills up |
//!
//! The counter is the position's place in its millisecond: the number of the tick, where a millisecond has more than one, and the
//! sequence. That is method 1 of section 6.2, a dedicated counter of fixed length; as the RFC allows, a generator that has used a tick
//! up goes on in the next one, ahead of the clock. It is as long as the layout's sequence, and up to 10 bits longer where ticks
//! are shorter than a millisecond. With the node it takes 72 of 74 bits at the most: every layout fits.
//!
//! So UUIDs of one node sort as their positions do, and no two of one layout are equal: two of one node differ in milliseconds or
//! counter, those of two nodes in the node. What fills up is random and no secret; it keeps UUIDs of different layouts
//! apart.

use crate::clock::UnixMicros;
use crate::error::{Explain, excerpt};
use crate::generator::snowflake::scatter;
use crate::ids::encode::TextError;
use crate::ids::id::Decoded;
use crate::ids::layout::{Field, Layout, TickError};
use crate::ids::position::{Issued, NodeBits, Position, Tick};
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

/// Bits that a version 7 leaves to its maker beside the time.
const PAYLOAD_BITS: u32 = 74;
const RAND_B_BITS: u32 = 62;
const VERSION: u128 = 7 << 76;
const VARIANT: u128 = 0b10 << RAND_B_BITS;
const MICROS_PER_MILLI: u64 = 1_000;
/// The last millisecond that 48 bits hold: in the year 10889.
const MAX_MILLIS: u64 = (1 << 48) - 1;

/// A UUID of whatever version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub u128);

/// Errors of composing a UUID, and of taking one apart.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum UuidError {
    #[error("uuid {uuid} is not of version 7")]
    #[explain(detail_with = uuid.of_other_version())]
    OtherVersion { uuid: Uuid },
    #[error("uuid {uuid} was not made with layout \"{layout}\"")]
    #[explain(detail = "The layout has no such tick in the millisecond of {}.", uuid.instant())]
    #[explain(hint = "Name the layout that the uuid was made with.")]
    Foreign { uuid: Uuid, layout: Layout },
    #[error("timestamp is out of range for UUIDs of version 7")]
    #[explain(Exhausted, detail = "The timestamp of these UUIDs ends in the year 10889.")]
    TooLate,
}

impl Uuid {
    /// Milliseconds since 1970, if it is of version 7.
    const fn millis(self) -> u64 {
        (self.0 >> 80) as u64
    }

    const fn version(self) -> u8 {
        (self.0 >> 76 & 0xf) as u8
    }

    const fn is_of_rfc(self) -> bool {
        self.0 >> RAND_B_BITS & 0b11 == 0b10
    }

    fn of_other_version(self) -> String {
        if !self.is_of_rfc() {
            return "Its variant is not that of RFC 9562.".to_owned();
        }
        format!("It is of version {}. Only version 7 holds a time and a node.", self.version())
    }

    /// The instant at which its millisecond begins.
    const fn instant(self) -> UnixMicros {
        UnixMicros((self.millis() * MICROS_PER_MILLI).cast_signed())
    }

    /// The instant that it says, to the millisecond.
    ///
    /// # Errors
    /// It is not of version 7.
    pub const fn timestamp(self) -> Result<UnixMicros, UuidError> {
        if self.version() == 7 && self.is_of_rfc() {
            Ok(UnixMicros((self.millis() * MICROS_PER_MILLI).cast_signed()))
        } else {
            Err(UuidError::OtherVersion { uuid: self })
        }
    }

    /// The smallest of version 7 in the millisecond that an instant lies in: the lower bound of a search by time. Of an instant
    /// before 1970, the smallest of all.
    ///
    /// # Errors
    /// The instant is after the year 10889.
    pub fn first_of(at: UnixMicros) -> Result<Self, UuidError> {
        let millis = u64::try_from(at.0).unwrap_or(0) / MICROS_PER_MILLI;
        if millis > MAX_MILLIS {
            return Err(UuidError::TooLate);
        }
        Ok(Self(u128::from(millis) << 80 | VERSION | VARIANT))
    }

    /// The 74 bits that its maker chose.
    const fn payload(self) -> u128 {
        (self.0 >> 64 & 0xfff) << RAND_B_BITS | self.0 & ones(RAND_B_BITS)
    }

    /// As SQL stores it.
    pub const fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Its 32 digits, without dashes.
    #[inline]
    pub fn digits(self) -> [u8; 32] {
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.bytes()) {
            pair.copy_from_slice(&PAIRS[usize::from(byte)]);
        }
        digits
    }
}

/// The two digits of each byte.
static PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 0xf]];
        byte += 1;
    }
    pairs
};

const fn ones(bits: u32) -> u128 {
    (1 << bits) - 1
}

/// With dashes, as SQL shows it.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = |shift: u32, bits| self.0 >> shift & ones(bits);
        let [low, mid, version, variant] = [field(96, 32), field(80, 16), field(64, 16), field(48, 16)];
        write!(f, "{low:08x}-{mid:04x}-{version:04x}-{variant:04x}-{:012x}", field(0, 48))
    }
}

impl Layout {
    /// The UUID of a position, filled up with bits of a random number.
    ///
    /// # Errors
    /// The position's tick begins after the year 10889.
    #[inline]
    pub fn uuid(&self, issued: Issued, random: u128) -> Result<Uuid, UuidError> {
        let micros = self.instant_of(issued.position).0.cast_unsigned();
        let millis = micros / MICROS_PER_MILLI;
        if millis > MAX_MILLIS {
            return Err(UuidError::TooLate);
        }
        let sequence = issued.position.0 & self.max(Field::Sequence);
        let counter = self.number_in_milli(micros) << self.sequence_bits() | sequence;
        let named = u128::from(counter) << self.node_bits() | u128::from(self.number_of(issued.node_bits));
        let filled = self.filled_bits();
        let payload = named << filled | random & ones(filled);
        let (rand_a, rand_b) = (payload >> RAND_B_BITS, payload & ones(RAND_B_BITS));
        Ok(Uuid(u128::from(millis) << 80 | VERSION | rand_a << 64 | VARIANT | rand_b))
    }

    /// The id that is made of the same position by the same node as a UUID of this layout.
    ///
    /// # Errors
    /// [`UuidError`]: it is not of version 7, or certainly of no node of this layout.
    pub fn id_of_uuid(&self, uuid: Uuid) -> Result<i64, UuidError> {
        let begins = uuid.timestamp()?;
        let named = uuid.payload() >> self.filled_bits();
        let counter = low_u64(named >> self.node_bits());
        let node = low_u64(named & ones(self.node_bits().into()));
        let foreign = UuidError::Foreign { uuid, layout: *self };
        let Tick(first) = self.first_tick_from(begins).map_err(|_| foreign)?;
        let tick = Tick(first + (counter >> self.sequence_bits()));
        let micros = self.instant(tick).0.cast_unsigned();
        let is_there = tick.0 <= self.max(Field::Ticks) && micros / MICROS_PER_MILLI == uuid.millis();
        if !is_there {
            return Err(foreign);
        }
        let position = Position(self.first_of(tick).0 | counter & self.max(Field::Sequence));
        Ok(self.id(position, NodeBits(node << self.node_shift())).cast_signed())
    }

    /// The tick, node and sequence that a UUID of this layout was made of, and the id that they make.
    pub fn decode_uuid(&self, uuid: Uuid) -> Result<Decoded, UuidError> {
        let id = self.id_of_uuid(uuid)?;
        self.decode(id).map_err(|_| UuidError::Foreign { uuid, layout: *self })
    }

    /// Returns which tick of its millisecond one is that begins at this instant.
    #[inline]
    fn number_in_milli(&self, micros: u64) -> u64 {
        let unit = self.unit();
        if unit >= MICROS_PER_MILLI { 0 } else { micros % MICROS_PER_MILLI / unit }
    }

    /// The first tick that begins at an instant or after it.
    fn first_tick_from(&self, at: UnixMicros) -> Result<Tick, TickError> {
        self.tick(if at <= self.epoch() { self.epoch() } else { at.plus_micros(self.unit() - 1) })
    }

    /// Returns the number of bits that are left to fill up.
    #[inline]
    fn filled_bits(&self) -> u32 {
        // The largest number of a tick in its millisecond.
        let last = (MICROS_PER_MILLI - 1) / self.unit();
        let of_ticks = u64::BITS - last.leading_zeros();
        PAYLOAD_BITS - of_ticks - u32::from(self.sequence_bits()) - u32::from(self.node_bits())
    }

    /// The number of a node: its bits without those below.
    const fn number_of(&self, node_bits: NodeBits) -> u64 {
        node_bits.0 >> self.node_shift()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "what a layout names has less than 64 bits")]
const fn low_u64(bits: u128) -> u64 {
    bits as u64
}

/// A process's source of what fills UUIDs up: `SplitMix64`. Who has seen one number knows the next; it is to be even, not secret.
#[derive(Debug)]
pub struct Filler(Cell<u64>);

impl Filler {
    /// One that begins with a number that no other process has.
    pub const fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// The next 128 bits.
    #[inline]
    pub fn draw(&self) -> u128 {
        u128::from(self.draw_64()) << 64 | u128::from(self.draw_64())
    }

    #[inline]
    fn draw_64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0.set(self.0.get().wrapping_add(STEP));
        scatter(self.0.get())
    }
}

/// An id or a UUID, read from a text that has no type yet, such as a parameter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdOrUuid {
    /// A number.
    Id(i64),
    /// 32 digits, with dashes or without.
    Uuid(Uuid),
}

impl FromStr for IdOrUuid {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let bare = text.trim_ascii();
        // No id has as many digits as a UUID.
        let uuid = uuid_in(bare).map(Self::Uuid);
        uuid.or_else(|| bare.parse().ok().map(Self::Id))
            .ok_or_else(|| TextError::Neither { text: excerpt(text) })
    }
}

/// As SQL reads it: in braces or not, with a dash after any four digits or not.
fn uuid_in(text: &str) -> Option<Uuid> {
    let bare = text.strip_prefix('{').map_or(Some(text), |text| text.strip_suffix('}'))?;
    let (mut uuid, mut digits) = (0_u128, 0);
    let mut dashed = true;
    for letter in bare.chars() {
        if letter == '-' && !dashed && digits % 4 == 0 && digits < 32 {
            dashed = true;
            continue;
        }
        uuid = uuid << 4 | u128::from(letter.to_digit(16)?);
        (dashed, digits) = (false, digits + 1);
        if digits > 32 {
            return None;
        }
    }
    (digits == 32).then_some(Uuid(uuid))
}
