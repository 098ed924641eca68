//! The two buffers of a tag: ids reserved ahead, handed out by one atomic step each, to any number of
//! processes, without a lock. (The double buffer of Meituan's Leaf; what is particular to this one is that a
//! single integer says at once which buffer is in use and how far.)
//!
//! The **cursor** is `generation << 32 | offset`. Each range that is published gets the next generation, and
//! its parity says which of the two buffers it lies in. A taker loads the cursor, reads the buffer of that
//! generation, and claims ids with one compare-and-swap of the cursor. When the buffer is used up and the next
//! generation has been published, the same compare-and-swap moves on to it.
//!
//! So nothing that a taker read can be out of date when its claim succeeds:
//!
//! - *an old cursor against a new range.* A buffer is written anew only while the other one is in use. The
//!   cursor then has another generation, and a claim against the old one fails. Generations only grow, so
//!   the cursor never comes back to a value it had.
//! - *a slot that has changed hands.* The **generation** tells the owner of the buffers. It is changed first
//!   and the cursor moved on after it. A taker reads them the other way round: if it sees the new cursor it
//!   sees the new generation, and if it doesn't, its claim fails.
//!
//! Publishing, clearing and handing over are for one process at a time, which the caller sees to with a lock.
//! Takers don't take part in it and are never held up by it.

use crate::clock::{Clock, UnixMicros};
use crate::sequence::definition::Range;
use crate::sync::{AtomicU64, Ordering};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Two buffers of ids, and their owner. Takers write to the first cache line only.
#[cfg_attr(not(loom), repr(C))]
#[derive(Debug)]
pub struct Segment {
    cursor: CacheLine<AtomicU64>,
    buffers: [Buffer; 2],
    slot_generation: CacheLine<AtomicU64>,
    /// Number of times that the buffers were emptied.
    clearings: AtomicU64,
}

/// Whose the buffers are, and how often they were emptied. Noted when a range is reserved, it says whether the range
/// may still be published: what was reserved before the buffers were emptied may have been given to others since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The generation of the place that the buffers belong to; no two tags have the same.
    pub slot_generation: u64,
    /// Number of times that the buffers were emptied, for whatever reason.
    pub clearings: u64,
}

#[cfg_attr(not(loom), repr(C, align(64)))]
#[derive(Debug, Default)]
struct CacheLine<T>(T);

/// One range, and the generation it belongs to.
#[cfg_attr(not(loom), repr(C, align(64)))]
#[derive(Debug, Default)]
struct Buffer {
    /// Written last: a session that sees it sees the rest.
    generation: AtomicU64,
    first: AtomicU64,
    count: AtomicU64,
    increment: AtomicU64,
    /// The offset at which the next range is wanted.
    prefetch_at: AtomicU64,
    /// The first day of the period that the ids count in.
    day: AtomicU64,
    /// Time at which that period ends; [`Period::FOREVER`] for tags without one. Microseconds since 1970.
    until: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Segment>() == 5 * 64 && align_of::<Segment>() == 64);

/// The day, month or year in which a dated tag counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// Its first day, in days since 1970-01-01.
    pub day: i32,
    /// The instant at which it is over.
    pub until: UnixMicros,
}

impl Period {
    /// The period of a tag that never starts over.
    pub const FOREVER: Self = Self { day: 0, until: UnixMicros(i64::MAX) };

    /// Its first day, None for a tag that never starts over.
    pub fn dated(self) -> Option<i32> {
        (self != Self::FOREVER).then_some(self.day)
    }

    /// Returns whether it is over. The clock is read only for periods that end.
    #[inline]
    pub fn is_over(self, clock: &impl Clock) -> bool {
        self.until != Self::FOREVER.until && clock.now().0 >= self.until.0
    }
}

/// A range to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supply {
    /// The ids, 1 or more.
    pub range: Range,
    /// The period that they count in.
    pub period: Period,
    /// The next range is wanted when this many of these ids are used; 0: with the first.
    pub prefetch_at: u32,
}

/// Ids that a taker got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenIds {
    /// The ids, between 1 and as many as were asked for.
    pub range: Range,
    /// The first day of the period that they count in, in days since 1970-01-01.
    pub day: i32,
    /// True if this taker is to ask for the next range: exactly one of a range's takers is.
    pub prefetch: bool,
}

/// Reason why a taker got none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// Both buffers are used up.
    Empty,
    /// The period of the ids in the buffers is over.
    Over,
    /// The buffers belong to another tag by now, or to none.
    Gone,
}

/// The unused part of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferState {
    /// All ids of the buffer.
    pub range: Range,
    /// Number of used ids, from the front.
    pub used: u32,
    /// The period they count in.
    pub period: Period,
}

/// Both buffers at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferStates {
    /// The buffer in use; None before the first range, and after [`Segment::clear`].
    pub current: Option<BufferState>,
    /// The one that takers go on with when `current` is used up; None while it is wanted.
    pub next: Option<BufferState>,
}

/// The generation of a buffer that holds nothing. Cursors begin with 0 and never reach it.
const NOTHING: u64 = u64::MAX;
const OFFSET_BITS: u32 = 32;
const OFFSETS: u64 = (1 << OFFSET_BITS) - 1;

const fn cursor(generation: u64, offset: u32) -> u64 {
    generation << OFFSET_BITS | offset as u64
}

/// The generation and the offset of a cursor.
const fn split(cursor: u64) -> (u64, u32) {
    (cursor >> OFFSET_BITS, low(cursor))
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn low(number: u64) -> u32 {
    (number & OFFSETS) as u32
}

/// The generation after this one. After four thousand million ranges it begins anew, which no taker sleeps
/// through in the middle of a claim.
const fn after(generation: u64) -> u64 {
    (generation + 1) & OFFSETS
}

impl Default for Segment {
    fn default() -> Self {
        let buffer = || Buffer { generation: AtomicU64::new(NOTHING), ..Buffer::default() };
        Self {
            cursor: CacheLine::default(),
            buffers: [buffer(), buffer()],
            slot_generation: CacheLine::default(),
            clearings: AtomicU64::default(),
        }
    }
}

impl Segment {
    /// Takes at least one and at most `want` ids, all from one buffer, if this is still the generation that
    /// the caller knows.
    ///
    /// # Errors
    /// [`Miss`], and nothing is taken.
    #[inline]
    pub fn take(&self, slot_generation: u64, want: NonZeroU32, clock: &impl Clock) -> Result<TakenIds, Miss> {
        // The cursor first, all else after it: see the head of this module.
        let mut seen = self.cursor.0.load(Ordering::Acquire);
        loop {
            if self.slot_generation.0.load(Ordering::Relaxed) != slot_generation {
                return Err(Miss::Gone);
            }
            let found = self.stock(seen).ok_or(Miss::Empty).and_then(|(generation, used, supply)| {
                if supply.period.is_over(clock) { Err(Miss::Over) } else { Ok((generation, used, supply)) }
            });
            let (generation, used, supply) = match found {
                Ok(stock) => stock,
                // The range may be a later one by now. Only a claim shows it; without one, look again.
                Err(miss) => match self.cursor.0.load(Ordering::Acquire) {
                    same if same == seen => return Err(miss),
                    moved => {
                        seen = moved;
                        continue;
                    }
                },
            };
            let count = want.get().min(supply.range.count - used);
            let claimed = cursor(generation, used + count);
            // Release: what was read of the buffer was read before the claim. Acquire: the process that published what
            // is found now did so before.
            match self.cursor.0.compare_exchange_weak(seen, claimed, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    debug_assert!(
                        count > 0 && used + count <= supply.range.count,
                        "{count} from {used} of {supply:?}"
                    );
                    return Ok(supply.taken(used, count));
                }
                Err(found) => seen = found,
            }
        }
    }

    /// Returns what the cursor stands at: its buffer, or the next one if that is used up. None if both are.
    #[inline]
    fn stock(&self, seen: u64) -> Option<(u64, u32, Supply)> {
        let (generation, used) = split(seen);
        if let Some(supply) = self.buffer(generation).of(generation)
            && used < supply.range.count
        {
            return Some((generation, used, supply));
        }
        let next = after(generation);
        self.buffer(next).of(next).map(|supply| (next, 0, supply))
    }

    #[inline]
    fn buffer(&self, generation: u64) -> &Buffer {
        &self.buffers[usize::from(generation & 1 == 1)]
    }

    /// Publishes a range as the one after the present. False, and nothing is done, while there is one already, where
    /// the buffers were emptied or handed over since the stamp, and for no ids. For one process at a time.
    pub fn publish(&self, supply: &Supply, stamp: Stamp) -> bool {
        if stamp != self.stamp() || supply.range.count == 0 {
            return false;
        }
        // Acquire: the sessions that claimed ids up to here have read what is overwritten now.
        let (current, _) = split(self.cursor.0.load(Ordering::Acquire));
        let next = after(current);
        let buffer = self.buffer(next);
        let room = buffer.generation.load(Ordering::Relaxed) != next;
        if room {
            buffer.write(next, supply);
        }
        room
    }

    /// Empties both buffers and tells what was left in them: no session got it, and none will. For one process
    /// at a time.
    pub fn clear(&self) -> BufferStates {
        self.clearings.fetch_add(1, Ordering::Relaxed);
        let mut seen = self.cursor.0.load(Ordering::Acquire);
        loop {
            let (generation, _) = split(seen);
            // Neither this generation nor the next was ever published.
            let emptied = cursor(after(after(generation)), 0);
            match self.cursor.0.compare_exchange(seen, emptied, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    debug_assert_eq!(
                        self.buffer_states_at(emptied),
                        BufferStates::default(),
                        "emptied, and there are ids"
                    );
                    return self.buffer_states_at(seen);
                }
                Err(found) => seen = found,
            }
        }
    }

    /// Gives the buffers to another owner, empty. A session that knows another generation gets nothing from then on.
    /// For one process at a time; no generation may come twice.
    pub fn hand_over(&self, slot_generation: u64) -> BufferStates {
        self.slot_generation.0.store(slot_generation, Ordering::Release);
        self.clear()
    }

    /// Whose the buffers are now, and how often they were emptied.
    pub fn stamp(&self) -> Stamp {
        Stamp { slot_generation: self.slot_generation(), clearings: self.clearings.load(Ordering::Relaxed) }
    }

    /// Whose the buffers are.
    pub fn slot_generation(&self) -> u64 {
        self.slot_generation.0.load(Ordering::Acquire)
    }

    /// A number that changes whenever ids are taken.
    pub fn cursor_value(&self) -> u64 {
        self.cursor.0.load(Ordering::Relaxed)
    }

    /// Returns what is in the buffers now. While they are in use this is a neighbouring moment's.
    pub fn buffer_states(&self) -> BufferStates {
        loop {
            let seen = self.cursor.0.load(Ordering::Acquire);
            let buffer_states = self.buffer_states_at(seen);
            // A fence as takers have it: nothing may be read after this that was written for a later cursor.
            if split(self.cursor.0.fetch_add(0, Ordering::AcqRel)).0 == split(seen).0 {
                return buffer_states;
            }
        }
    }

    fn buffer_states_at(&self, seen: u64) -> BufferStates {
        let (generation, used) = split(seen);
        let held = |generation, used| {
            let Supply { range, period, .. } = self.buffer(generation).of(generation)?;
            Some(BufferState { range, used, period })
        };
        BufferStates { current: held(generation, used), next: held(after(generation), 0) }
    }
}

impl Buffer {
    /// The range that it holds, if that is of this generation.
    #[inline]
    fn of(&self, generation: u64) -> Option<Supply> {
        // Acquire: the rest was written before the generation.
        if self.generation.load(Ordering::Acquire) != generation {
            return None;
        }
        let range = Range {
            first: self.first.load(Ordering::Relaxed).cast_signed(),
            count: low(self.count.load(Ordering::Relaxed)),
            increment: self.increment.load(Ordering::Relaxed).cast_signed(),
        };
        let period = Period {
            day: low(self.day.load(Ordering::Relaxed)).cast_signed(),
            until: UnixMicros(self.until.load(Ordering::Relaxed).cast_signed()),
        };
        Some(Supply { range, period, prefetch_at: low(self.prefetch_at.load(Ordering::Relaxed)) })
    }

    fn write(&self, generation: u64, supply: &Supply) {
        let Supply { range, period, prefetch_at } = *supply;
        debug_assert!(range.is_representable(), "{range:?} has numbers that are no ids");
        self.first.store(range.first.cast_unsigned(), Ordering::Relaxed);
        self.count.store(range.count.into(), Ordering::Relaxed);
        self.increment.store(range.increment.cast_unsigned(), Ordering::Relaxed);
        self.day.store(period.day.cast_unsigned().into(), Ordering::Relaxed);
        self.until.store(period.until.0.cast_unsigned(), Ordering::Relaxed);
        self.prefetch_at.store(prefetch_at.into(), Ordering::Relaxed);
        self.generation.store(generation, Ordering::Release);
    }
}

impl Supply {
    /// Returns what the taker of these ids gets.
    #[inline]
    fn taken(&self, used: u32, count: u32) -> TakenIds {
        let range = Range { first: self.range.at(used), count, increment: self.range.increment };
        let prefetch = (used == 0 || used < self.prefetch_at) && used + count >= self.prefetch_at;
        TakenIds { range, day: self.period.day, prefetch }
    }
}

impl BufferState {
    /// The id handed out last, None before the first.
    pub fn last_used(&self) -> Option<i64> {
        self.used.checked_sub(1).map(|offset| self.range.at(offset))
    }

    /// Returns the number of ids that are not yet used.
    pub const fn left(&self) -> u32 {
        self.range.count.saturating_sub(self.used)
    }
}

impl BufferStates {
    /// Returns the number of ids that are not yet used.
    pub fn left(&self) -> u64 {
        [self.current, self.next].into_iter().flatten().map(|buffer| u64::from(buffer.left())).sum()
    }

    /// The first days of the periods that its ids count in.
    pub fn days(&self) -> impl Iterator<Item = i32> {
        [self.current, self.next].into_iter().flatten().map(|buffer| buffer.period.day)
    }

    /// Returns whether its ids belong to periods that end.
    pub fn is_dated(&self) -> bool {
        [self.current, self.next].into_iter().flatten().any(|buffer| buffer.period != Period::FOREVER)
    }

    /// Returns whether ids would be refused because their period is over.
    pub fn is_over(&self, clock: &impl Clock) -> bool {
        [self.current, self.next].into_iter().flatten().any(|buffer| buffer.period.is_over(clock))
    }

    /// Returns whether a range can be published.
    pub const fn have_room(&self) -> bool {
        self.next.is_none()
    }
}
