//! A tag's slot in shared memory: its buffers, the requests for a refill, and statistics.
//!
//! The fields marked "one process at a time" change only while the directory is locked for writing. All instants are
//! readings of a monotonic clock.

use crate::clock::{UnixMicros, micros};
use crate::tag::counts::{CountsCell, TagCounts};
use crate::tag::definition::forecast;
use crate::tag::rate::{HALF_HOUR, Rate};
use crate::tag::reservation::Reserved;
use crate::tag::segment::{BufferStates, Segment};
use crate::tag::step::{Pace, SlowStart};
use crate::tag::tickets::{Answer, Tickets};
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use std::time::Duration;

/// Reason why the last refill failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another transaction has locked the tag's row.
    RowLocked,
    /// No worker could be started.
    NoWorker,
    /// The worker's transaction failed with this SQLSTATE.
    Failed(i32),
    /// A remote registry returned no ids.
    Registry,
    /// The worker could not connect to the database. The value is the SQLSTATE, or 0 if the worker was terminated while it
    /// waited.
    OutOfReach(i32),
}

/// The state of one tag's slot. Takers of ids only write to the first cache line of `segment`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SlotState {
    /// The two buffers.
    pub segment: Segment,
    /// The requests for a refill.
    pub request: Tickets,
    /// True if no refill has found the tag's row yet, so the tag may not exist. One process at a time.
    pub unverified: AtomicBool,
    /// The number of ids that calls wait for. The field is changed while the directory is locked.
    pub wanted: AtomicU64,
    /// The cursor at the last visit of the clock sweep, plus 1; 0 before the first visit. One process at a time.
    seen: AtomicU64,
    /// The instant of the sweep's last visit that found the cursor moved, in microseconds. One process at a time.
    moved_at: AtomicU64,
    /// The number of ids in the last grant of a slow start, plus 1; 0 if the tag is not in a slow start. One process at
    /// a time.
    slow_start: AtomicU64,
    trouble: AtomicU64,
    /// The index of the registry that supplied the last ids, in the list of registries in use.
    pub registry: AtomicU32,
    /// True if the last published range was discarded, so the time for which the range lasted says nothing about
    /// demand.
    cut_short: AtomicBool,
    /// The pace of the last reservation: the step in the low half, the multiplier in the high half.
    pace: AtomicU64,
    /// The version of the tag's row after the last reservation.
    pub version: AtomicI64,
    /// The number of ids that the row had left after the last reservation.
    pub row_left: AtomicU64,
    /// The row's largest id.
    pub max_value: AtomicI64,
    /// The instants of the last reservation and the last wait, and the instant since which refills fail, in microseconds; 0
    /// for never.
    reserved_at: AtomicU64,
    waited_at: AtomicU64,
    failed_at: AtomicU64,
    rate: Rate,
    /// The duration of the last refill, in microseconds.
    pub last_refill: AtomicU64,
    /// The longest wait of a call, in microseconds.
    pub longest_wait: AtomicU64,
    /// The number of published ids, and the number of ids that were discarded unused.
    published: AtomicU64,
    lost: AtomicU64,
    refills: AtomicU64,
    refill_time: AtomicU64,
    waits: AtomicU64,
    wait_time: AtomicU64,
    /// The counts at their last reset, and the instant of the reset.
    before: CountsCell,
    reset_at: AtomicI64,
}

/// A slot, with the parts that the server implements.
pub trait TagSlot {
    /// Returns the state that the core uses.
    fn state(&self) -> &SlotState;
    /// Wakes the calls that wait for an answer.
    fn wake(&self);
    /// Empties the buffers. The directory must be locked for writing.
    fn clear(&self);
    /// Sets the number format. The directory must be locked for writing.
    fn set_format(&self, format: &str);
}

impl SlotState {
    /// Gives the slot to another tag, and returns the counts of the previous tag. A caller that frees the slot passes a
    /// generation that no session knows. The directory must be locked for writing.
    pub fn hand_over(&self, slot_generation: u64, now: UnixMicros) -> TagCounts {
        let left = self.segment.hand_over(slot_generation);
        let counts = self.counts_beside(self.published.load(Relaxed), left);
        // A session that requested ids of the previous tag gets this answer, finds that the slot has another tag, and
        // searches for a slot again.
        if let Some(ticket) = self.request.pending() {
            self.request.answer(ticket, Answer::Supplied);
        }
        self.unverified.store(false, Relaxed);
        let cells = [
            &self.wanted,
            &self.seen,
            &self.moved_at,
            &self.slow_start,
            &self.trouble,
            &self.pace,
            &self.row_left,
            &self.reserved_at,
            &self.waited_at,
            &self.failed_at,
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
        self.rate.clear();
        self.before.set(TagCounts::default());
        self.reset_at.store(now.0, Relaxed);
        counts
    }

    /// Empties the buffers. The unused ids are lost unless the caller returns them to the row. The directory must be
    /// locked for writing.
    pub fn clear(&self) -> BufferStates {
        let left = self.segment.clear();
        self.lost.fetch_add(left.left(), Relaxed);
        self.cut_short.store(true, Relaxed);
        left
    }

    /// Records a published reservation and its duration, and that the tag exists. The directory must be locked for
    /// writing.
    pub fn record_published(&self, reserved: &Reserved, took: Duration, uptime: Duration) {
        self.unverified.store(false, Relaxed);
        self.cut_short.store(false, Relaxed);
        self.trouble.store(0, Relaxed);
        self.published.fetch_add(reserved.supply.range.count.into(), Relaxed);
        self.refills.fetch_add(1, Relaxed);
        self.last_refill.store(instant(took), Relaxed);
        self.refill_time.fetch_add(instant(took), Relaxed);
        self.reserved_at.store(instant(uptime), Relaxed);
        self.version.store(reserved.version, Relaxed);
        self.row_left.store(reserved.left, Relaxed);
        self.max_value.store(reserved.max_value, Relaxed);
        self.pace.store(u64::from(reserved.pace.step) | u64::from(reserved.pace.multiplier) << 32, Relaxed);
    }

    /// Records that a call must wait. `found_empty` is true if the buffers had ids and these ids are used up.
    pub fn begin_wait(&self, found_empty: bool, uptime: Duration) {
        self.waits.fetch_add(1, Relaxed);
        if found_empty {
            self.waited_at.store(instant(uptime), Relaxed);
        }
    }

    /// Records the duration of one wait, and the total duration of the call's waits.
    pub fn end_wait(&self, took: Duration, in_all: Duration) {
        self.wait_time.fetch_add(instant(took), Relaxed);
        self.longest_wait.fetch_max(instant(in_all), Relaxed);
    }

    /// Returns true if the slot never had an id.
    pub fn is_unused(&self) -> bool {
        self.refills.load(Relaxed) == 0
    }

    /// Records a visit of the clock sweep. Returns the time for which visits have found the cursor unmoved; None if ids were
    /// taken since the last visit. `is_used` is true if the slot was used otherwise. The directory must be locked for writing.
    pub fn visit(&self, is_used: bool, uptime: Duration) -> Option<Duration> {
        let cursor_value = self.segment.cursor_value().wrapping_add(1);
        if self.seen.swap(cursor_value, Relaxed) == cursor_value && !is_used {
            return time_since(&self.moved_at, uptime);
        }
        self.moved_at.store(instant(uptime), Relaxed);
        None
    }

    /// Returns the pace of the last reservation.
    pub fn pace(&self) -> Pace {
        let (step, multiplier) = halves(self.pace.load(Relaxed));
        Pace { step, multiplier: multiplier.max(1) }
    }

    /// Returns the time since the last reservation; None before the first reservation.
    pub fn lasted(&self, uptime: Duration) -> Option<Duration> {
        time_since(&self.reserved_at, uptime)
    }

    /// Returns true if the last published range was discarded.
    pub fn was_cut_short(&self) -> bool {
        self.cut_short.load(Relaxed)
    }

    /// Notes since when refills fail, and every half hour how many ids were taken. Only the launcher calls this function.
    pub fn note(&self, uptime: Duration) {
        if self.trouble().is_none() && !self.is_used_up() {
            self.failed_at.store(0, Relaxed);
        } else if self.failed_at.load(Relaxed) == 0 {
            self.failed_at.store(instant(uptime), Relaxed);
        }
        if !self.is_unused() && self.rate.is_due(uptime) {
            self.rate.note(self.counts_in_all().issued, uptime);
        }
    }

    /// Returns true if the tag had no number left at the last refill, and has none in the buffers.
    pub fn is_used_up(&self) -> bool {
        let buffers = self.segment.buffer_states();
        // Clearing the buffers may mean that the tag has numbers again.
        let may_have_more = self.is_unused() || self.was_cut_short() || buffers.is_dated();
        !may_have_more && buffers.left() == 0 && self.row_left.load(Relaxed) == 0
    }

    /// Returns the time for which `left` ids last at the rate of the last hour.
    pub fn lasts(&self, left: u64) -> Option<Duration> {
        forecast(left, self.rate.in_half_hour()?, HALF_HOUR)
    }

    /// Returns the time for which refills have failed, or the tag has been used up; None if neither was noted.
    pub fn failed_for(&self, uptime: Duration) -> Option<Duration> {
        time_since(&self.failed_at, uptime)
    }

    /// Returns the time since a call last had to wait; None if no call has waited.
    pub fn waited_ago(&self, uptime: Duration) -> Option<Duration> {
        time_since(&self.waited_at, uptime)
    }

    /// Returns the number of ids that calls wait for.
    pub fn wanted(&self) -> u32 {
        u32::try_from(self.wanted.load(Relaxed)).unwrap_or(u32::MAX)
    }

    /// Returns the progress of the tag's slow start; None if the tag is not in a slow start.
    pub fn slow_start(&self) -> Option<SlowStart> {
        let granted = self.slow_start.load(Relaxed).checked_sub(1)?;
        Some(SlowStart { granted: u32::try_from(granted).unwrap_or(u32::MAX) })
    }

    /// Sets the progress of a slow start. The directory must be locked for writing.
    pub fn set_slow_start(&self, slow_start: Option<SlowStart>) {
        let number = slow_start.map_or(0, |slow_start| u64::from(slow_start.granted) + 1);
        self.slow_start.store(number, Relaxed);
    }

    /// Returns the reason why the last refill failed; None if the last refill succeeded.
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

    /// Records the reason why a refill failed.
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

    /// Returns the counts since the tag got the slot. Without the directory's lock, ids may be missing that are published or
    /// discarded meanwhile: `published` is read first, and `lost` last.
    pub fn counts_in_all(&self) -> TagCounts {
        let published = self.published.load(Acquire);
        self.counts_beside(published, self.segment.buffer_states())
    }

    fn counts_beside(&self, published: u64, left: BufferStates) -> TagCounts {
        let gone = left.left().saturating_add(self.lost.load(Acquire));
        TagCounts {
            issued: published.saturating_sub(gone),
            refills: self.refills.load(Relaxed),
            refill_time: self.refill_time.load(Relaxed),
            waits: self.waits.load(Relaxed),
            wait_time: self.wait_time.load(Relaxed),
        }
    }

    /// Returns the counts since their last reset, and the instant of the reset.
    pub fn counts(&self) -> (TagCounts, UnixMicros) {
        (self.counts_in_all() - self.before.get(), UnixMicros(self.reset_at.load(Relaxed)))
    }

    /// Resets the counts. The directory must be locked.
    pub fn reset_counts(&self, now: UnixMicros) {
        self.before.set(self.counts_in_all());
        self.longest_wait.store(0, Relaxed);
        self.reset_at.store(now.0, Relaxed);
    }
}

/// Returns a time in microseconds, at least 1, because 0 means never.
fn instant(time: Duration) -> u64 {
    micros(time).max(1)
}

fn time_since(cell: &AtomicU64, uptime: Duration) -> Option<Duration> {
    let then = Duration::from_micros(cell.load(Relaxed));
    (!then.is_zero()).then(|| uptime.saturating_sub(then))
}

#[allow(clippy::cast_possible_truncation, reason = "halves are what is asked for")]
const fn halves(number: u64) -> (u32, u32) {
    (number as u32, (number >> 32) as u32)
}
