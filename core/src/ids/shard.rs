//! The ids of a shard: the ids that Postgres's hash partitioning stores in one partition.
//!
//! The partition `FOR VALUES WITH (MODULUS m, REMAINDER r)` holds the bigints whose hash modulo m is r. The hash is
//! `hashint8extended` with the seed of hash partitioning, combined with 0 (`compute_partition_hash_value` in
//! `partbounds.c`). The hash is the same in all Postgres versions, because the contents of stored partitions depend on
//! it. A tool that shards tables by this hash, such as `PgDog`, finds an id on the shard for which the id was made.

use crate::error::{Explain, excerpt};
use crate::ids::layout::{Field, Layout};
use crate::ids::position::{NodeBits, Position, PositionRange};
use std::fmt;
use std::str::FromStr;
use strength_reduce::StrengthReducedU64;

/// The largest modulus. With a larger modulus, the search for an id of the shard would take too long.
pub const MAX_MODULUS: u32 = 65_536;

/// The number of positions that one search scans, as a multiple of the modulus. The probability that no scanned
/// position fits is below e^-64.
pub const SCANNED_MODULI: u64 = 64;

/// One of `modulus` shards: the ids whose hash modulo `modulus` is `remainder`.
#[derive(Clone, Copy)]
pub struct Shard {
    modulus: StrengthReducedU64,
    remainder: u64,
}

impl Shard {
    /// Returns the shard with a modulus and a remainder.
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

    /// Returns the shard of all ids.
    pub fn whole() -> Self {
        Self { modulus: StrengthReducedU64::new(1), remainder: 0 }
    }

    /// Returns the number of shards.
    pub fn modulus(&self) -> u64 {
        self.modulus.get()
    }

    /// Returns the index of this shard, from 0.
    pub const fn remainder(&self) -> u64 {
        self.remainder
    }

    /// Returns whether every id belongs to the shard.
    pub fn is_whole(&self) -> bool {
        self.modulus() == 1
    }

    /// Checks that a tick of the layout has at least one id for each shard on average.
    pub fn check_layout(&self, layout: &Layout) -> Result<(), ShardError> {
        let room = layout.max(Field::Sequence) + 1;
        if self.modulus() > room {
            return Err(ShardError::Room { modulus: self.modulus(), room });
        }
        Ok(())
    }

    /// Returns whether an id belongs to the shard.
    #[inline]
    pub fn fits(&self, id: i64) -> bool {
        partition_hash(id) % self.modulus == self.remainder
    }

    /// Returns whether the id at a position belongs to the shard.
    #[inline]
    pub fn fits_at(&self, layout: &Layout, node_bits: NodeBits, position: Position) -> bool {
        self.fits(layout.id(position, node_bits).cast_signed())
    }

    /// Returns the first position at or after `from` with an id of the shard. Returns None if the scan finds no such
    /// position.
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

    pub(crate) fn scan_end(&self, from: Position) -> Position {
        Position(from.0.saturating_add(self.modulus().saturating_mul(SCANNED_MODULI)))
    }

    /// Returns the number of positions that have `ids` ids of the shard on average, if the first position's id is of
    /// the shard.
    pub(crate) fn span(&self, ids: u32) -> u64 {
        u64::from(ids).saturating_sub(1).saturating_mul(self.modulus()).saturating_add(1)
    }
}

impl PositionRange {
    /// Returns the first position with an id of the shard. Removes this position and all earlier positions from the
    /// range.
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

/// Returns the hash of a bigint in hash partitioning: `hash_combine64(0, hashint8extended(id, HASH_PARTITION_SEED))`.
#[inline]
const fn partition_hash(id: i64) -> u64 {
    const COMBINE: u64 = 0x49a0_f4dd_15e5_a8e3;
    hash_int8(id).wrapping_add(COMBINE)
}

/// Returns `hashint8extended(id, HASH_PARTITION_SEED)`. The hash is Jenkins's lookup3 of the id's lower half. The id's
/// upper half is folded into the lower half, so that a bigint and an integer of the same value have the same hash.
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

/// The state of the hash after the seed. This state is the same for every id.
const SEEDED: [u32; 3] = {
    const HASH_PARTITION_SEED: u64 = 0x7a5b_2236_7996_dcfd;
    /// The sum of the golden ratio, the length of the key in bytes, and a constant of lookup3.
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

/// Writes `remainder/modulus`.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.remainder, self.modulus())
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    /// Parses `remainder/modulus`, such as `3/16`.
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

/// The reason why numbers are not a valid shard, or why a layout has too few ids for the shard.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum ShardError {
    #[error("shard \"{text}\" is not valid")]
    #[explain(
        detail = "A shard is written as remainder/modulus, two whole numbers: 3/16 is remainder 3 of modulus 16."
    )]
    Syntax { text: String },
    #[error("modulus {0} is out of range")]
    #[explain(detail = "The modulus must be 1 to {MAX_MODULUS}.")]
    Modulus(i64),
    #[error("remainder {remainder} is out of range")]
    #[explain(detail = "With modulus {modulus}, the remainder must be 0 to {}.", modulus - 1)]
    Remainder { modulus: i64, remainder: i64 },
    #[error("modulus {modulus} is more than the {room} ids that a tick of the layout holds")]
    #[explain(
        detail = "Each shard needs at least one id in each tick.",
        hint = "Use a smaller modulus, or a layout with more sequence bits."
    )]
    Room { modulus: u64, room: u64 },
}
