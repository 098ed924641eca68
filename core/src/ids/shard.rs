//! The ids of a shard: those that Postgres's hash partitioning puts there.
//!
//! A bigint is in the partition `FOR VALUES WITH (MODULUS m, REMAINDER r)` where its hash is r modulo m:
//! `hashint8extended` with the seed of hash partitioning, combined with 0 (`satisfies_hash_partition`, and
//! `compute_partition_hash_value` in partbounds.c). The hash is kept as it is by every version: tables on disk rest on it. So
//! what shards tables by it, as `PgDog` does, has the id on the same shard.

use crate::error::{Explain, excerpt};
use crate::ids::layout::{Field, Layout};
use crate::ids::position::{NodeBits, Position, PositionRange};
use std::fmt;
use std::str::FromStr;
use strength_reduce::StrengthReducedU64;

/// The largest modulus: a step scans as many positions for an id, and more.
pub const MAX_MODULUS: u32 = 65_536;

/// Number of positions that one step looks at for one that fits, as a multiple of the modulus. That none of them does is as likely
/// as 64 zeros in a row.
pub const SCANNED_MODULI: u64 = 64;

/// One of `modulus` shards: that of the ids whose hash is `remainder` modulo that.
#[derive(Clone, Copy)]
pub struct Shard {
    modulus: StrengthReducedU64,
    remainder: u64,
}

impl Shard {
    /// The shard of these figures.
    pub fn new(modulus: i64, remainder: i64) -> Result<Self, ShardError> {
        if modulus < 1 || modulus > MAX_MODULUS.into() {
            return Err(ShardError::Modulus(modulus));
        }
        if remainder < 0 || remainder >= modulus {
            return Err(ShardError::Remainder { modulus, remainder });
        }
        let [modulus, remainder] = [modulus, remainder].map(i64::unsigned_abs);
        Ok(Self { modulus: StrengthReducedU64::new(modulus), remainder })
    }

    /// Returns the number of shards there are.
    pub fn modulus(&self) -> u64 {
        self.modulus.get()
    }

    /// Returns which of them this one is, from 0.
    pub const fn remainder(&self) -> u64 {
        self.remainder
    }

    /// Returns whether every id fits.
    pub fn is_whole(&self) -> bool {
        self.modulus() == 1
    }

    /// Returns whether a tick of the layout has an id for each shard, on average.
    pub fn check_layout(&self, layout: &Layout) -> Result<(), ShardError> {
        let room = layout.max(Field::Sequence) + 1;
        if self.modulus() > room {
            return Err(ShardError::Room { modulus: self.modulus(), room });
        }
        Ok(())
    }

    /// Returns whether an id is this shard's.
    #[inline]
    pub fn fits(&self, id: i64) -> bool {
        partition_hash(id) % self.modulus == self.remainder
    }

    /// Returns whether the id at a position is this shard's.
    #[inline]
    pub fn fits_at(&self, layout: &Layout, node_bits: NodeBits, position: Position) -> bool {
        self.fits(layout.id(position, node_bits).cast_signed())
    }

    /// The first position from one on whose id fits, looking at so many that there is one; None if there is none.
    #[inline]
    pub(crate) fn first_from(
        &self,
        layout: &Layout,
        node_bits: NodeBits,
        from: Position,
    ) -> Option<Position> {
        let end = self.scan_end(from);
        (from.0..end.0).map(Position).find(|position| self.fits_at(layout, node_bits, *position))
    }

    /// The position up to which one step looks.
    pub(crate) fn scan_end(&self, from: Position) -> Position {
        Position(from.0.saturating_add(self.modulus().saturating_mul(SCANNED_MODULI)))
    }

    /// Returns the number of positions that hold so many ids of this shard on average, the first of them being one.
    pub(crate) fn span(&self, ids: u32) -> u64 {
        u64::from(ids).saturating_sub(1).saturating_mul(self.modulus()).saturating_add(1)
    }
}

impl PositionRange {
    /// The first position whose id is the shard's. It and those before it are no more in the range from now on.
    #[inline]
    pub fn take_first_fitting(
        &mut self,
        layout: &Layout,
        node_bits: NodeBits,
        shard: &Shard,
    ) -> Option<Position> {
        while self.count() > 0 {
            let position = self.take_first();
            if shard.fits_at(layout, node_bits, position) {
                return Some(position);
            }
        }
        None
    }
}

/// Returns what hash partitioning makes of a bigint: `hash_combine64(0, hashint8extended(id, HASH_PARTITION_SEED))`.
#[inline]
const fn partition_hash(id: i64) -> u64 {
    const COMBINE: u64 = 0x49a0_f4dd_15e5_a8e3;
    hash_int8(id).wrapping_add(COMBINE)
}

/// `hashint8extended(id, HASH_PARTITION_SEED)`: Jenkins's lookup3 of the lower half, into which the upper one is folded so
/// that a bigint hashes as the integer of the same value does.
#[inline]
const fn hash_int8(id: i64) -> u64 {
    let id_bits = id.cast_unsigned();
    #[allow(clippy::cast_possible_truncation, reason = "the halves")]
    let (low, high) = (id_bits as u32, (id_bits >> 32) as u32);
    let key = low ^ if id >= 0 { high } else { !high };
    let [mut a, mut b, mut c] = SEEDED;
    a = a.wrapping_add(key);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    (b as u64) << 32 | c as u64
}

/// The state of the hash once the seed is in it, the same for every id.
const SEEDED: [u32; 3] = {
    const HASH_PARTITION_SEED: u64 = 0x7a5b_2236_7996_dcfd;
    /// The golden ratio, the length of what is hashed, and a number of lookup3's.
    const INITIAL: u32 = 0x9e37_79b9 + 4 + 3_923_095;
    #[allow(clippy::cast_possible_truncation, reason = "the halves")]
    let (low, high) = (HASH_PARTITION_SEED as u32, (HASH_PARTITION_SEED >> 32) as u32);
    let (mut a, mut b, mut c) = (INITIAL.wrapping_add(high), INITIAL.wrapping_add(low), INITIAL);
    (a, c) = (a.wrapping_sub(c) ^ c.rotate_left(4), c.wrapping_add(b));
    (b, a) = (b.wrapping_sub(a) ^ a.rotate_left(6), a.wrapping_add(c));
    (c, b) = (c.wrapping_sub(b) ^ b.rotate_left(8), b.wrapping_add(a));
    (a, c) = (a.wrapping_sub(c) ^ c.rotate_left(16), c.wrapping_add(b));
    (b, a) = (b.wrapping_sub(a) ^ a.rotate_left(19), a.wrapping_add(c));
    (c, b) = (c.wrapping_sub(b) ^ b.rotate_left(4), b.wrapping_add(a));
    [a, b, c]
};

impl PartialEq for Shard {
    fn eq(&self, other: &Self) -> bool {
        (self.modulus(), self.remainder) == (other.modulus(), other.remainder)
    }
}

impl Eq for Shard {}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shard({self})")
    }
}

/// `remainder/modulus`, as it is read.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.remainder, self.modulus())
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    /// Reads `3/16`: remainder 3 of modulus 16.
    fn from_str(text: &str) -> Result<Self, ShardError> {
        let syntax = || ShardError::Syntax { text: excerpt(text) };
        let (remainder, modulus) = text.trim().split_once('/').ok_or_else(syntax)?;
        let number = |text: &str| {
            let text = text.trim();
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().unwrap_or(i64::MAX))
        };
        let (remainder, modulus) = number(remainder).zip(number(modulus)).ok_or_else(syntax)?;
        Self::new(modulus, remainder)
    }
}

/// Reason why figures are no shard, or a layout has no ids for one.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum ShardError {
    #[error("shard \"{text}\" is not valid")]
    #[explain(detail = "A shard is two whole numbers, remainder/modulus: 3/16 is remainder 3 of modulus 16.")]
    Syntax { text: String },
    #[error("modulus {0} is out of range")]
    #[explain(detail = "The modulus must be 1 to {MAX_MODULUS}.")]
    Modulus(i64),
    #[error("remainder {remainder} is out of range")]
    #[explain(detail = "Of modulus {modulus} the remainder must be 0 to {}.", modulus - 1)]
    Remainder { modulus: i64, remainder: i64 },
    #[error("modulus {modulus} is more than the layout's sequence has room for")]
    #[explain(
        detail = "A tick of the layout holds {room} ids, of which each shard needs one.",
        hint = "Give the generator a modulus and remainder of its own, or a layout with more sequence bits."
    )]
    Room { modulus: u64, room: u64 },
}
