//! UUIDs of version 7 (RFC 9562) with the contents of an id: a position, and the bits of a node.
//!
//! | bits | contents |
//! | --- | --- |
//! | 48 | milliseconds since 1970 at the beginning of the position's tick |
//! | 4 | the version, 7 |
//! | 12 (`rand_a`) | the upper part of the counter |
//! | 2 | the variant, 10 |
//! | 62 (`rand_b`) | the rest of the counter, the node, and random bits |
//!
//! The counter numbers the positions of a millisecond. The counter's lower bits are the sequence number. If ticks are
//! shorter than a millisecond, the counter's upper bits are the index of the tick within the millisecond. This is
//! method 1 of section 6.2 of the RFC, a dedicated counter of fixed length. A generator that has used up a tick
//! continues in the next tick, ahead of the clock, as the RFC allows. The counter has the length of the layout's
//! sequence, plus up to 10 bits for ticks shorter than a millisecond. Counter and node together need at most 72 of the
//! 74 bits of `rand_a` and `rand_b`, so the ids of every layout fit.
//!
//! UUIDs of one node sort like their positions. Two UUIDs of one layout are never equal. UUIDs of one node differ in
//! the milliseconds or the counter, and UUIDs of two nodes differ in the node. Because of the random bits, UUIDs of
//! different layouts are rarely equal. The random bits are predictable.

use crate::clock::UnixMicros;
use crate::error::{Explain, excerpt};
use crate::ids::encode::TextError;
use crate::ids::id::Decoded;
use crate::ids::layout::{Field, Layout, TickError};
use crate::ids::position::{Issued, NodeBits, Position, Tick};
use crate::ids::scatter::scatter;
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

/// The number of bits of a version 7 UUID besides time, version and variant.
const PAYLOAD_BITS: u32 = 74;
const RAND_B_BITS: u32 = 62;
const VERSION: u128 = 7 << 76;
const VARIANT: u128 = 0b10 << RAND_B_BITS;
const MICROS_PER_MILLI: u64 = 1_000;
/// The largest value of the 48 time bits, in the year 10889.
const MAX_MILLIS: u64 = (1 << 48) - 1;

/// A UUID of any version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub u128);

/// The reason why a UUID cannot be made or decoded.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum UuidError {
    #[error("uuid {uuid} is not of version 7")]
    #[explain(detail_with = if uuid.is_of_rfc() {
        format!("The uuid is of version {}. Only version 7 contains a time and a node.", uuid.version())
    } else {
        "The variant of the uuid is not the variant of RFC 9562.".to_owned()
    })]
    OtherVersion { uuid: Uuid },
    #[error("uuid {uuid} was not made with layout \"{layout}\"")]
    #[explain(detail = "In this layout, no tick of the millisecond {} has the tick number of the uuid.", uuid.instant())]
    #[explain(hint = "Name the layout that the uuid was made with.")]
    Foreign { uuid: Uuid, layout: Layout },
    #[error("timestamp is out of range for UUIDs of version 7")]
    #[explain(Exhausted, detail = "The timestamp of these UUIDs ends in the year 10889.")]
    TooLate,
}

impl Uuid {
    /// Returns the milliseconds since 1970 of a version 7 UUID.
    const fn millis(self) -> u64 {
        (self.0 >> 80) as u64
    }

    const fn version(self) -> u8 {
        (self.0 >> 76 & 0xf) as u8
    }

    const fn is_of_rfc(self) -> bool {
        self.0 >> RAND_B_BITS & 0b11 == 0b10
    }

    const fn instant(self) -> UnixMicros {
        UnixMicros((self.millis() * MICROS_PER_MILLI).cast_signed())
    }

    /// Returns the UUID's instant, in whole milliseconds.
    pub const fn timestamp(self) -> Result<UnixMicros, UuidError> {
        if self.version() == 7 && self.is_of_rfc() {
            Ok(self.instant())
        } else {
            Err(UuidError::OtherVersion { uuid: self })
        }
    }

    /// Returns the smallest version 7 UUID of an instant's millisecond: the lower bound of a search by time. For an instant
    /// before 1970, returns the smallest version 7 UUID of all.
    pub fn first_of(at: UnixMicros) -> Result<Self, UuidError> {
        let millis = u64::try_from(at.0).unwrap_or(0) / MICROS_PER_MILLI;
        if millis > MAX_MILLIS {
            return Err(UuidError::TooLate);
        }
        Ok(Self(u128::from(millis) << 80 | VERSION | VARIANT))
    }

    /// Returns the 74 bits besides time, version and variant.
    const fn payload(self) -> u128 {
        (self.0 >> 64 & 0xfff) << RAND_B_BITS | self.0 & ones(RAND_B_BITS)
    }

    /// Returns the bytes, as Postgres stores them.
    pub const fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Returns the 32 digits, without hyphens.
    #[inline]
    pub fn digits(self) -> [u8; 32] {
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.bytes()) {
            pair.copy_from_slice(&PAIRS[usize::from(byte)]);
        }
        digits
    }
}

/// The two hexadecimal digits of each byte.
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

/// Writes the digits with hyphens, as Postgres does.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = |shift: u32, bits| self.0 >> shift & ones(bits);
        let [low, mid, version, variant] = [field(96, 32), field(80, 16), field(64, 16), field(48, 16)];
        write!(f, "{low:08x}-{mid:04x}-{version:04x}-{variant:04x}-{:012x}", field(0, 48))
    }
}

impl Layout {
    /// Returns the UUID of a position. Unused bits come from `random`.
    #[inline]
    pub fn uuid(&self, issued: Issued, random: u128) -> Result<Uuid, UuidError> {
        let micros = self.instant_of(issued.position).0.cast_unsigned();
        let millis = micros / MICROS_PER_MILLI;
        if millis > MAX_MILLIS {
            return Err(UuidError::TooLate);
        }
        let sequence = issued.position.0 & self.max(Field::Sequence);
        let counter = self.number_in_milli(micros) << self.sequence_bits() | sequence;
        let named =
            u128::from(counter) << self.node_bits() | u128::from(issued.node_bits.0 >> self.node_shift());
        let filled = self.filled_bits();
        let payload = named << filled | random & ones(filled);
        let (rand_a, rand_b) = (payload >> RAND_B_BITS, payload & ones(RAND_B_BITS));
        Ok(Uuid(u128::from(millis) << 80 | VERSION | rand_a << 64 | VARIANT | rand_b))
    }

    /// Returns the id with the same position and node as a UUID of this layout.
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

    /// Returns the fields of a UUID of this layout, and the id with the same fields.
    pub fn decode_uuid(&self, uuid: Uuid) -> Result<Decoded, UuidError> {
        let id = self.id_of_uuid(uuid)?;
        self.decode(id).map_err(|_| UuidError::Foreign { uuid, layout: *self })
    }

    /// Returns the index of a tick within its millisecond. `micros` is the beginning of the tick.
    #[inline]
    fn number_in_milli(&self, micros: u64) -> u64 {
        let unit = self.unit();
        if unit >= MICROS_PER_MILLI { 0 } else { micros % MICROS_PER_MILLI / unit }
    }

    /// Returns the first tick that begins at or after an instant.
    fn first_tick_from(&self, at: UnixMicros) -> Result<Tick, TickError> {
        self.tick(if at <= self.epoch() { self.epoch() } else { at.plus_micros(self.unit() - 1) })
    }

    /// Returns the number of random bits.
    #[inline]
    fn filled_bits(&self) -> u32 {
        // The largest index of a tick within its millisecond.
        let last = (MICROS_PER_MILLI - 1) / self.unit();
        let of_ticks = u64::BITS - last.leading_zeros();
        PAYLOAD_BITS - of_ticks - u32::from(self.sequence_bits()) - u32::from(self.node_bits())
    }
}

#[allow(clippy::cast_possible_truncation, reason = "what a layout names has less than 64 bits")]
const fn low_u64(bits: u128) -> u64 {
    bits as u64
}

/// A process's source of random bits: `SplitMix64`. The bits are evenly distributed and not secret: one drawn number
/// reveals the next numbers.
#[derive(Debug)]
pub struct Filler(Cell<u64>);

impl Filler {
    /// Returns a source with a seed. Each process needs a seed of its own.
    pub const fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// Returns the next 128 bits.
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

/// An id or a UUID, parsed from a text of unknown type, such as a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdOrUuid {
    /// A number.
    Id(i64),
    /// A UUID: 32 digits, with or without hyphens.
    Uuid(Uuid),
}

impl FromStr for IdOrUuid {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let bare = text.trim_ascii();
        // No id has 32 digits, so the two forms never overlap.
        let uuid = uuid_in(bare).map(Self::Uuid);
        uuid.or_else(|| bare.parse().ok().map(Self::Id))
            .ok_or_else(|| TextError::Neither { text: excerpt(text) })
    }
}

/// Parses a UUID as Postgres does: optionally in braces, optionally with a hyphen after any group of four digits.
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
