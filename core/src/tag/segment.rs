//! The two buffers of a tag (a named id range). The buffers contain reserved ids. Any number of processes take these
//! ids without a lock, each by one atomic step. (The scheme is the double buffer of Meituan's Leaf. Here a single
//! integer says which buffer is in use and how many ids of this buffer are used.)
//!
//! The **cursor** is `generation << 32 | offset`. Each published range gets the next generation, and the parity of the
//! generation selects one of the two buffers. A taker is a process that takes ids. The taker loads the cursor, reads
//! the buffer of the cursor's generation, and takes ids with one compare-and-swap of the cursor. The same
//! compare-and-swap moves the cursor to the next buffer, if this buffer is used up and the next generation is
//! published.
//!
//! A take fails if the values that the taker has read were outdated. There are two cases:
//!
//! - *An old cursor and a new range.* A buffer is overwritten only while the other buffer is in use. The cursor then has
//!   another generation, and a take against the old cursor fails. Generations only grow, so the cursor never returns to
//!   an earlier value.
//! - *A slot that another tag has taken.* The **slot generation** identifies the owner of the buffers. The slot
//!   generation changes first, and the cursor moves afterwards. A taker reads the cursor before the slot generation. A
//!   taker that sees the new cursor therefore sees the new slot generation, and the take of any other taker fails.
//!
//! Only one process at a time may publish a range, clear the buffers or hand them over; the callers of these functions
//! hold a lock. Takers need no lock, and never wait for a lock.

use crate::clock::{Clock, UnixMicros};
use crate::sync::{AtomicU64, CacheLine, Ordering};
use crate::tag::definition::Range;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Two buffers of ids, and their owner. Takers write to the first cache line only.
#[cfg_attr(not(loom), repr(C))]
#[derive(Debug)]
pub struct Segment {
    cursor: CacheLine<AtomicU64>,
    buffers: [CacheLine<Buffer>; 2],
    slot_generation: CacheLine<AtomicU64>,
    clearings: AtomicU64,
}

/// The owner of the buffers and the number of clearings. A stamp is taken when a range is reserved. The range must not
/// be published after the stamp has changed, because the range's ids may have been given to other sessions since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The slot's generation. Each tag gets another generation.
    pub slot_generation: u64,
    /// The number of times that the buffers were emptied, for any reason.
    pub clearings: u64,
}

#[derive(Debug, Default)]
struct Buffer {
    /// The generation of the buffer's range. This field is stored last, so a session that sees the generation also sees
    /// the other fields.
    generation: AtomicU64,
    first: AtomicU64,
    count: AtomicU64,
    increment: AtomicU64,
    /// The number of used ids at which the next range is requested.
    prefetch_at: AtomicU64,
    /// The first day of the ids' period.
    day: AtomicU64,
    /// The end of the period, in microseconds since 1970; [`Period::FOREVER`] for tags without a period.
    until: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Segment>() == 5 * size_of::<CacheLine<Buffer>>());

/// The current day, month or year of a tag that starts over each day, month or year.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// The first day, in days since 1970-01-01.
    pub day: i32,
    /// The instant at which the period ends.
    pub until: UnixMicros,
}

impl Period {
    /// The period of a tag that never starts over.
    pub const FOREVER: Self = Self { day: 0, until: UnixMicros(i64::MAX) };

    /// Returns the first day; None for a tag that never starts over.
    pub fn dated(self) -> Option<i32> {
        (self != Self::FOREVER).then_some(self.day)
    }

    /// Returns true if the period has ended. Reads the clock only if the period can end.
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
    /// The ids' period.
    pub period: Period,
    /// The number of used ids at which the next range is requested; 0 requests the next range with the first id.
    pub prefetch_at: u32,
}

/// The ids that a taker received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenIds {
    /// The ids, from 1 to the requested number.
    pub range: Range,
    /// The first day of the ids' period, in days since 1970-01-01.
    pub day: i32,
    /// True if this taker must request the next range. Exactly one taker of each range gets true.
    pub prefetch: bool,
}

/// Reason why a taker got no ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// Both buffers are used up, or the period of their ids has ended.
    Empty,
    /// The buffers belong to another tag now, or to no tag.
    Gone,
}

/// The content of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferState {
    /// All ids of the buffer.
    pub range: Range,
    /// The number of used ids. The used ids are the first ids of the range.
    pub used: u32,
    /// The ids' period.
    pub period: Period,
}

/// The content of both buffers at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferStates {
    /// The buffer in use; None before the first range, and after [`Segment::clear`].
    pub current: Option<BufferState>,
    /// The buffer that follows `current`; None until the next range is published.
    pub next: Option<BufferState>,
}

/// The generation of an empty buffer. Cursors begin with generation 0 and never reach this value.
const NOTHING: u64 = u64::MAX;
const OFFSET_BITS: u32 = 32;
const OFFSETS: u64 = (1 << OFFSET_BITS) - 1;

const fn cursor(generation: u64, offset: u32) -> u64 {
    generation << OFFSET_BITS | offset as u64
}

const fn split(cursor: u64) -> (u64, u32) {
    (cursor >> OFFSET_BITS, low(cursor))
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn low(number: u64) -> u32 {
    (number & OFFSETS) as u32
}

/// Returns the next generation. Generations repeat after four thousand million ranges. No take lasts that long.
const fn after(generation: u64) -> u64 {
    (generation + 1) & OFFSETS
}

impl Default for Segment {
    fn default() -> Self {
        let buffer = || CacheLine(Buffer { generation: AtomicU64::new(NOTHING), ..Buffer::default() });
        Self {
            cursor: CacheLine::default(),
            buffers: [buffer(), buffer()],
            slot_generation: CacheLine::default(),
            clearings: AtomicU64::default(),
        }
    }
}

impl Segment {
    /// Takes 1 to `want` ids from one buffer, if the slot still has the generation that the caller knows.
    ///
    /// # Errors
    /// [`Miss`]: no id is taken.
    #[inline]
    pub fn take(&self, slot_generation: u64, want: NonZeroU32, clock: &impl Clock) -> Result<TakenIds, Miss> {
        // The cursor is loaded first; see the head of this module.
        let mut seen = self.cursor.0.load(Ordering::Acquire);
        loop {
            if self.slot_generation.0.load(Ordering::Relaxed) != slot_generation {
                return Err(Miss::Gone);
            }
            let stock = self.stock(seen).filter(|(.., supply)| !supply.period.is_over(clock));
            let Some((generation, used, supply)) = stock else {
                // The range may have been replaced since the cursor was loaded. A miss is valid only if the cursor has
                // not moved.
                let moved = self.cursor.0.load(Ordering::Acquire);
                if moved == seen {
                    return Err(Miss::Empty);
                }
                seen = moved;
                continue;
            };
            let count = want.get().min(supply.range.count - used);
            let taken = cursor(generation, used + count);
            // Release: the buffer is read before the take becomes visible. Acquire: after a lost race, the next read sees
            // the range at the new cursor.
            match self.cursor.0.compare_exchange_weak(seen, taken, Ordering::AcqRel, Ordering::Acquire) {
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

    /// Returns the buffer at the cursor, or the next buffer if the buffer at the cursor is used up. Returns None if
    /// both buffers are used up.
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

    /// Publishes the next range. Returns false and changes nothing if the next range is already published, if the stamp
    /// has changed, or if the range is empty. Only one process may call this function at a time.
    pub fn publish(&self, supply: &Supply, stamp: Stamp) -> bool {
        if stamp != self.stamp() || supply.range.count == 0 {
            return false;
        }
        // Acquire: sessions that taken ids of the old range have read the buffer before it is overwritten.
        let (current, _) = split(self.cursor.0.load(Ordering::Acquire));
        let next = after(current);
        let buffer = self.buffer(next);
        let room = buffer.generation.load(Ordering::Relaxed) != next;
        if room {
            buffer.write(next, supply);
        }
        room
    }

    /// Empties both buffers and returns their content. No session has received the unused ids, and no session will
    /// receive them. Only one process may call this function at a time.
    pub fn clear(&self) -> BufferStates {
        self.clearings.fetch_add(1, Ordering::Relaxed);
        let mut seen = self.cursor.0.load(Ordering::Acquire);
        loop {
            let (generation, _) = split(seen);
            // The generation of the new cursor was never published, and neither was the generation after it.
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

    /// Empties the buffers and gives them to another owner. Sessions with another slot generation get no more ids. Only
    /// one process may call this function at a time, and each slot generation may be used only once.
    pub fn hand_over(&self, slot_generation: u64) -> BufferStates {
        self.slot_generation.0.store(slot_generation, Ordering::Release);
        self.clear()
    }

    /// Returns the owner of the buffers and the number of clearings.
    pub fn stamp(&self) -> Stamp {
        Stamp { slot_generation: self.slot_generation(), clearings: self.clearings.load(Ordering::Relaxed) }
    }

    /// Returns the slot generation, which identifies the owner of the buffers.
    pub fn slot_generation(&self) -> u64 {
        self.slot_generation.0.load(Ordering::Acquire)
    }

    /// Returns a number that changes whenever ids are taken.
    pub fn cursor_value(&self) -> u64 {
        self.cursor.0.load(Ordering::Relaxed)
    }

    /// Returns the content of the buffers. The content may be outdated by a moment while sessions take ids.
    pub fn buffer_states(&self) -> BufferStates {
        loop {
            let seen = self.cursor.0.load(Ordering::Acquire);
            let buffer_states = self.buffer_states_at(seen);
            // This read-modify-write acts as a fence, like a taker's take: the loads above cannot see values of a later
            // cursor.
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
    /// Returns the buffer's range, if the range has this generation.
    #[inline]
    fn of(&self, generation: u64) -> Option<Supply> {
        // Acquire: a session that sees the generation also sees the other fields, which were stored before.
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
    #[inline]
    fn taken(&self, used: u32, count: u32) -> TakenIds {
        let range = Range { first: self.range.at(used), count, increment: self.range.increment };
        let prefetch = (used == 0 || used < self.prefetch_at) && used + count >= self.prefetch_at;
        TakenIds { range, day: self.period.day, prefetch }
    }
}

impl BufferState {
    /// Returns the last id handed out; None if no id was handed out.
    pub fn last_used(&self) -> Option<i64> {
        self.used.checked_sub(1).map(|offset| self.range.at(offset))
    }

    /// Returns the number of unused ids.
    pub const fn left(&self) -> u32 {
        self.range.count.saturating_sub(self.used)
    }
}

impl BufferStates {
    /// Returns the number of unused ids in both buffers.
    pub fn left(&self) -> u64 {
        [self.current, self.next].into_iter().flatten().map(|buffer| u64::from(buffer.left())).sum()
    }

    /// Returns the first days of the ids' periods.
    pub fn days(&self) -> impl Iterator<Item = i32> {
        [self.current, self.next].into_iter().flatten().map(|buffer| buffer.period.day)
    }

    /// Returns true if the ids belong to a period that ends.
    pub fn is_dated(&self) -> bool {
        [self.current, self.next].into_iter().flatten().any(|buffer| buffer.period != Period::FOREVER)
    }

    /// Returns true if ids would be refused because their period has ended.
    pub fn is_over(&self, clock: &impl Clock) -> bool {
        [self.current, self.next].into_iter().flatten().any(|buffer| buffer.period.is_over(clock))
    }

    /// Returns true if a range can be published.
    pub const fn have_room(&self) -> bool {
        self.next.is_none()
    }
}
