//! The last hour of a server: readings of its counters in a ring, and the activity between two readings.
//!
//! One process writes, and any number of processes read. A reading contains totals and not differences. A missing or
//! overwritten reading therefore costs one point of a curve and makes no other point wrong. Durations come from a
//! monotonic clock. The wall clock only dates the readings.

use crate::clock::UnixMicros;
use crate::sync::{AtomicU64, Ordering};
use std::array;
use std::time::Duration;

/// The number of slots of the ring. Readers skip the slot to which the writer may be writing.
pub const SLOTS: usize = 362;

/// The counters of a server at one moment. All counts are since the server's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterReading {
    /// The wall clock, in microseconds since 1970.
    pub at: i64,
    /// The time of a monotonic clock, in microseconds.
    pub uptime: u64,
    /// The number of snowflake ids that sessions took.
    pub ids: u64,
    /// The number of ids handed out from the buffers of tags (named id ranges), including tags that are no longer in
    /// shared memory.
    pub tag_ids: u64,
    /// The number of calls that found the buffers of a tag empty, including tags that are no longer in shared memory.
    pub waits: u64,
    /// The number of segments (ranges of ids) that refills reserved for tags, including tags that are no longer in
    /// shared memory.
    pub refills: u64,
    /// The number of backward jumps of the clock that calls noticed.
    pub steps_back: u64,
    /// The number of forward jumps of the clock that the generator followed.
    pub steps_forward: u64,
    /// The time by which the last id was ahead of the clock, in microseconds.
    pub drift: u64,
    /// The time by which the clock is ahead of the time that the generator trusts, in microseconds.
    pub clock_ahead: u64,
}

const FIELDS: usize = 10;

impl CounterReading {
    const fn fields(&self) -> [u64; FIELDS] {
        [
            self.at.cast_unsigned(),
            self.uptime,
            self.ids,
            self.tag_ids,
            self.waits,
            self.refills,
            self.steps_back,
            self.steps_forward,
            self.drift,
            self.clock_ahead,
        ]
    }

    const fn of(fields: [u64; FIELDS]) -> Self {
        let [at, uptime, ids, tag_ids, waits, refills, steps_back, steps_forward, drift, clock_ahead] =
            fields;
        let at = at.cast_signed();
        Self { at, uptime, ids, tag_ids, waits, refills, steps_back, steps_forward, drift, clock_ahead }
    }
}

/// A ring of readings in shared memory.
#[derive(Debug)]
pub struct History<const N: usize = SLOTS> {
    /// The number of readings that were added since the server's start.
    written: AtomicU64,
    slots: [[AtomicU64; FIELDS]; N],
}

impl<const N: usize> Default for History<N> {
    fn default() -> Self {
        let slot = |_| array::from_fn(|_| AtomicU64::new(0));
        Self { written: AtomicU64::new(0), slots: array::from_fn(slot) }
    }
}

impl<const N: usize> History<N> {
    /// Adds a reading. Only one process may call this function at a time.
    pub fn record(&self, reading: &CounterReading) {
        let written = self.written.load(Ordering::Relaxed);
        let Some(slot) = self.slot(written) else { return };
        // A reader that sees one of the values stored below also sees a count in `self.written` of at least the value
        // loaded above. The reader then skips this slot.
        for (cell, value) in slot.iter().zip(reading.fields()) {
            cell.store(value, Ordering::Release);
        }
        self.written.store(written + 1, Ordering::Release);
    }

    /// Returns the kept readings, oldest first: at most `N - 1`.
    pub fn readings(&self) -> Vec<CounterReading> {
        let written = self.written.load(Ordering::Acquire);
        let kept = |now: u64| now.saturating_sub(N as u64 - 1);
        let copied: Vec<_> = (kept(written)..written)
            .filter_map(|number| {
                let fields = self.slot(number)?.each_ref().map(|cell| cell.load(Ordering::Acquire));
                Some((number, CounterReading::of(fields)))
            })
            .collect();
        let first = kept(self.written.load(Ordering::Acquire));
        copied.into_iter().filter(|(number, _)| *number >= first).map(|(_, reading)| reading).collect()
    }

    fn slot(&self, number: u64) -> Option<&[AtomicU64; FIELDS]> {
        self.slots.get(usize::try_from(number % N as u64).ok()?)
    }
}

/// Returns the time until the next reading; zero if a reading is due, None if the interval is zero. Times are readings of
/// a monotonic clock.
pub fn due(last: Option<Duration>, interval: Duration, now: Duration) -> Option<Duration> {
    let next = last.map_or(now, |last| last.saturating_add(interval));
    (!interval.is_zero()).then(|| next.saturating_sub(now))
}

/// The activity of a server between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The wall-clock time of the later reading.
    pub at: UnixMicros,
    /// The time between the readings, by a monotonic clock.
    pub elapsed: Duration,
    /// The number of snowflake ids per second.
    pub ids: f64,
    /// The number of ids of tags (named id ranges) per second.
    pub tag_ids: f64,
    /// The number of calls that had to wait for ids of a tag.
    pub waits: u64,
    /// The number of segments (ranges of ids) that refills reserved for tags.
    pub refills: u64,
    /// The number of backward jumps of the clock.
    pub steps_back: u64,
    /// The number of forward jumps of the clock.
    pub steps_forward: u64,
    /// The time by which the last id was ahead of the clock.
    pub drift: Duration,
    /// The time by which the clock was ahead of the time that the generator trusts.
    pub clock_ahead: Duration,
}

/// Returns the activity between each reading and the next reading. Skips pairs of readings with no time between them,
/// because such a pair gives no rate.
pub fn samples(readings: &[CounterReading]) -> Vec<Sample> {
    let pairs = readings.iter().zip(readings.iter().skip(1));
    pairs.filter_map(|(before, after)| between(before, after)).collect()
}

fn between(before: &CounterReading, after: &CounterReading) -> Option<Sample> {
    let micros = after.uptime.checked_sub(before.uptime).filter(|micros| *micros > 0)?;
    // Counts only grow, so a smaller count would be an error. Such a count is treated as no change.
    let grown = |of: fn(&CounterReading) -> u64| of(after).saturating_sub(of(before));
    let rate = |of: fn(&CounterReading) -> u64| per_second(grown(of), micros);
    Some(Sample {
        at: UnixMicros(after.at),
        elapsed: Duration::from_micros(micros),
        ids: rate(|reading| reading.ids),
        tag_ids: rate(|reading| reading.tag_ids),
        waits: grown(|reading| reading.waits),
        refills: grown(|reading| reading.refills),
        steps_back: grown(|reading| reading.steps_back),
        steps_forward: grown(|reading| reading.steps_forward),
        drift: Duration::from_micros(after.drift),
        clock_ahead: Duration::from_micros(after.clock_ahead),
    })
}

#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn per_second(count: u64, micros: u64) -> f64 {
    count as f64 * 1e6 / micros as f64
}
