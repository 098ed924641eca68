//! A tag's slot in shared memory: its buffers, the requests for more, and the notes of workers and callers.
//!
//! A note that one process at a time may change is changed with the directory locked for writing. Instants are of uptime.

use crate::clock::{UnixMicros, micros};
use crate::sequence::counts::{CountsCell, TagCounts};
use crate::sequence::reservation::Reserved;
use crate::sequence::segment::{BufferStates, Segment};
use crate::sequence::step::{Pace, SlowStart};
use crate::sequence::tickets::{Answer, Tickets};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Reason why the last attempt at a refill failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another transaction has the tag's row locked.
    RowLocked,
    /// No worker could be started.
    NoWorker,
    /// The worker's transaction failed; with its SQLSTATE.
    Failed(i32),
    /// A registry on another server gave none.
    Registry,
    /// The worker could not connect to the database; with the SQLSTATE, or 0 where it waited until it was ended.
    OutOfReach(i32),
}

/// The state of one tag. Takers of ids write to the first line of `segment` and to nothing else.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SlotState {
    /// The two buffers.
    pub segment: Segment,
    /// Requests for a refill.
    pub request: Tickets,
    /// True if no session has found the tag yet: it may not exist. One process at a time.
    pub unverified: AtomicBool,
    /// Number of ids that calls wait for. Raised and lowered with the directory locked.
    pub wanted: AtomicU64,
    /// 1 and the cursor when the hand was here last; 0: never. One process at a time.
    seen: AtomicU64,
    /// See [`SlotState::slow_start`]: 1 and the ids of the last grant; else 0. One process at a time.
    slow_start: AtomicU64,
    trouble: AtomicU64,
    /// The position of the registry that its ids came from last.
    pub registry: AtomicU32,
    /// True if the range that was published last was taken away: then how long it lasted says nothing.
    cut_short: AtomicBool,
    /// The pace of the last reservation: the step in the low half, the multiplier in the high one.
    pace: AtomicU64,
    /// The row's version since the last reservation.
    pub version: AtomicI64,
    /// Ids that the row had left after the last reservation.
    pub row_left: AtomicU64,
    /// The row's largest id.
    pub max_value: AtomicI64,
    /// Instants of the last reservation, the first one, and the last wait; 0: never. Microseconds.
    reserved_at: AtomicU64,
    since: AtomicU64,
    waited_at: AtomicU64,
    /// Time that the last refill took, and the longest wait of a call. Microseconds.
    pub last_refill: AtomicU64,
    /// See above.
    pub longest_wait: AtomicU64,
    /// Ids that were published, and those that were taken out of the buffers again.
    published: AtomicU64,
    lost: AtomicU64,
    refills: AtomicU64,
    refill_time: AtomicU64,
    waits: AtomicU64,
    wait_time: AtomicU64,
    /// Counts at their last reset, and its instant.
    before: CountsCell,
    reset_at: AtomicI64,
}

/// A slot, with the parts of it that are the server's.
pub trait TagSlot {
    /// The state that the core knows.
    fn state(&self) -> &SlotState;
    /// Wakes the calls that wait for an answer.
    fn wake(&self);
    /// Takes away what is in the buffers. Only with the directory locked for writing.
    fn clear(&self);
    /// Notes how numbers are written. Only with the directory locked for writing.
    fn set_format(&self, format: &str);
}

impl SlotState {
    /// Makes it another tag's, or, with an generation that no session gets to know, free; gives what was counted of the former one.
    /// Only with the directory locked for writing.
    pub fn hand_over(&self, slot_generation: u64, now: UnixMicros) -> TagCounts {
        let left = self.segment.hand_over(slot_generation);
        let counts = self.counts_beside(left);
        // A session that asked for ids of the former tag finds it gone, and looks again.
        if let Some(ticket) = self.request.pending() {
            self.request.answer(ticket, Answer::Supplied);
        }
        self.unverified.store(false, Relaxed);
        let cells = [
            &self.wanted,
            &self.seen,
            &self.slow_start,
            &self.trouble,
            &self.pace,
            &self.row_left,
            &self.reserved_at,
            &self.since,
            &self.waited_at,
            &self.last_refill,
            &self.longest_wait,
            &self.published,
            &self.lost,
            &self.refills,
            &self.refill_time,
            &self.waits,
            &self.wait_time,
        ];
        for cell in cells {
            cell.store(0, Relaxed);
        }
        self.before.set(TagCounts::default());
        self.reset_at.store(now.0, Relaxed);
        counts
    }

    /// Takes away what is in the buffers: it is lost, unless the caller puts it back into the row. Only with the directory
    /// locked for writing.
    pub fn clear(&self) -> BufferStates {
        let left = self.segment.clear();
        self.lost.fetch_add(left.left(), Relaxed);
        self.cut_short.store(true, Relaxed);
        left
    }

    /// Notes a reservation that was published, how long it took, and that the tag exists. Only with the directory locked for writing.
    pub fn record_published(&self, reserved: &Reserved, took: Duration, uptime: Duration) {
        self.unverified.store(false, Relaxed);
        self.cut_short.store(false, Relaxed);
        self.trouble.store(0, Relaxed);
        self.published.fetch_add(reserved.supply.range.count.into(), Relaxed);
        self.refills.fetch_add(1, Relaxed);
        self.last_refill.store(instant(took), Relaxed);
        self.refill_time.fetch_add(instant(took), Relaxed);
        self.reserved_at.store(instant(uptime), Relaxed);
        // The first one stays.
        let _ = self.since.compare_exchange(0, instant(uptime), Relaxed, Relaxed);
        self.version.store(reserved.version, Relaxed);
        self.row_left.store(reserved.left, Relaxed);
        self.max_value.store(reserved.max_value, Relaxed);
        self.pace.store(u64::from(reserved.pace.step) | u64::from(reserved.pace.multiplier) << 32, Relaxed);
    }

    /// Notes that a call has to wait. `found_empty`: as it used up what there was.
    pub fn begin_wait(&self, found_empty: bool, uptime: Duration) {
        self.waits.fetch_add(1, Relaxed);
        if found_empty {
            self.waited_at.store(instant(uptime), Relaxed);
        }
    }

    /// Notes how long a wait took, and how long the call has waited in all.
    pub fn end_wait(&self, took: Duration, in_all: Duration) {
        self.wait_time.fetch_add(instant(took), Relaxed);
        self.longest_wait.fetch_max(instant(in_all), Relaxed);
    }

    /// Returns whether there never was an id in it.
    pub fn is_unused(&self) -> bool {
        self.refills.load(Relaxed) == 0
    }

    /// Returns whether ids were taken since the hand's last visit, and there was one. Only with the directory locked for writing.
    pub fn has_moved(&self) -> bool {
        let cursor_value = self.segment.cursor_value().wrapping_add(1);
        self.seen.swap(cursor_value, Relaxed) != cursor_value
    }

    /// The pace of the last reservation.
    pub fn pace(&self) -> Pace {
        let (step, multiplier) = halves(self.pace.load(Relaxed));
        Pace { step, multiplier: multiplier.max(1) }
    }

    /// The time since the last reservation, None before the first.
    pub fn lasted(&self, uptime: Duration) -> Option<Duration> {
        time_since(&self.reserved_at, uptime)
    }

    /// Returns whether the range that was published last was taken away.
    pub fn was_cut_short(&self) -> bool {
        self.cut_short.load(Relaxed)
    }

    /// The time since the first reservation.
    pub fn age(&self, uptime: Duration) -> Option<Duration> {
        time_since(&self.since, uptime)
    }

    /// The time since a call last had to wait; None where none had.
    pub fn waited_ago(&self, uptime: Duration) -> Option<Duration> {
        time_since(&self.waited_at, uptime)
    }

    /// The number of ids that calls wait for.
    pub fn wanted(&self) -> u32 {
        u32::try_from(self.wanted.load(Relaxed)).unwrap_or(u32::MAX)
    }

    /// Returns how far it is where it starts slowly.
    pub fn slow_start(&self) -> Option<SlowStart> {
        let granted = self.slow_start.load(Relaxed).checked_sub(1)?;
        Some(SlowStart { granted: u32::try_from(granted).unwrap_or(u32::MAX) })
    }

    /// Notes it. Only with the directory locked for writing.
    pub fn set_slow_start(&self, slow_start: Option<SlowStart>) {
        let number = slow_start.map_or(0, |slow_start| u64::from(slow_start.granted) + 1);
        self.slow_start.store(number, Relaxed);
    }

    /// Returns why the last attempt at a refill failed, if it did.
    pub fn trouble(&self) -> Option<Trouble> {
        let (kind, code) = halves(self.trouble.load(Relaxed));
        match kind {
            1 => Some(Trouble::RowLocked),
            2 => Some(Trouble::NoWorker),
            3 => Some(Trouble::Failed(code.cast_signed())),
            4 => Some(Trouble::Registry),
            5 => Some(Trouble::OutOfReach(code.cast_signed())),
            _ => None,
        }
    }

    /// Notes it.
    pub fn set_trouble(&self, trouble: Trouble) {
        let (kind, code) = match trouble {
            Trouble::RowLocked => (1, 0),
            Trouble::NoWorker => (2, 0),
            Trouble::Failed(code) => (3, code),
            Trouble::Registry => (4, 0),
            Trouble::OutOfReach(code) => (5, code),
        };
        self.trouble.store(kind | u64::from(code.cast_unsigned()) << 32, Relaxed);
    }

    /// Returns what was counted since it is this tag's.
    pub fn counts_in_all(&self) -> TagCounts {
        self.counts_beside(self.segment.buffer_states())
    }

    /// The same, where so much is left in the buffers.
    fn counts_beside(&self, left: BufferStates) -> TagCounts {
        let gone = self.lost.load(Relaxed).saturating_add(left.left());
        TagCounts {
            issued: self.published.load(Relaxed).saturating_sub(gone),
            refills: self.refills.load(Relaxed),
            refill_time: self.refill_time.load(Relaxed),
            waits: self.waits.load(Relaxed),
            wait_time: self.wait_time.load(Relaxed),
        }
    }

    /// Returns what was counted since counts were set back, and when that was.
    pub fn counts(&self) -> (TagCounts, UnixMicros) {
        (self.counts_in_all() - self.before.get(), UnixMicros(self.reset_at.load(Relaxed)))
    }

    /// Sets counts back. Only with the directory locked.
    pub fn reset_counts(&self, now: UnixMicros) {
        self.before.set(self.counts_in_all());
        self.longest_wait.store(0, Relaxed);
        self.reset_at.store(now.0, Relaxed);
    }
}

/// Microseconds, which are 1 for less than one: 0 stands for never.
fn instant(time: Duration) -> u64 {
    micros(time).max(1)
}

fn time_since(cell: &AtomicU64, uptime: Duration) -> Option<Duration> {
    let then = Duration::from_micros(cell.load(Relaxed));
    (!then.is_zero()).then(|| uptime.saturating_sub(then))
}

/// The low and the high half of a number.
#[allow(clippy::cast_possible_truncation, reason = "halves are what is asked for")]
const fn halves(number: u64) -> (u32, u32) {
    (number as u32, (number >> 32) as u32)
}
