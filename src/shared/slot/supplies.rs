//! Notes of workers and callers on a tag's supply.

use crate::pg::clock::uptime;
use snowflake_ids_core::clock;
use snowflake_ids_core::sequence::reservation::Reserved;
use snowflake_ids_core::sequence::step::Pace;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The workers' notes on a tag.
#[derive(Default)]
pub struct Supplies {
    /// True if what was published last was taken away: then how long it lasted says nothing.
    pub cut_short: AtomicBool,
    /// Ids published so far.
    pub published: AtomicU64,
    /// Ids that were taken out of the buffers again.
    pub lost: AtomicU64,
    /// Number of times that ids were published.
    pub refills: AtomicU64,
    /// Time that the last refill took, and all of them, in microseconds.
    pub duration: AtomicU64,
    /// See above.
    pub took: AtomicU64,
    /// The times at which the last and the first range were reserved, in microseconds of uptime; 0: never.
    pub reserved_at: AtomicU64,
    /// See above.
    pub since: AtomicU64,
    /// The row's version since the last reservation.
    pub version: AtomicI64,
    /// Ids that the row had left after the last reservation.
    pub left: AtomicU64,
    /// The row's largest id.
    pub max_value: AtomicI64,
    /// The present step, and hunger's multiplier.
    step: AtomicU64,
    depth: AtomicU64,
}

impl Supplies {
    /// The pace of the last reservation.
    pub fn pace(&self) -> Pace {
        let number = |cell: &AtomicU64| u32::try_from(cell.load(Relaxed)).unwrap_or(u32::MAX);
        Pace { step: number(&self.step), depth: number(&self.depth).max(1) }
    }

    /// Notes a reservation that was published.
    pub fn note(&self, reserved: &Reserved, took: Duration) {
        let now = micros(uptime());
        self.cut_short.store(false, Relaxed);
        self.published.fetch_add(reserved.supply.range.count.into(), Relaxed);
        self.refills.fetch_add(1, Relaxed);
        self.duration.store(micros(took), Relaxed);
        self.took.fetch_add(micros(took), Relaxed);
        self.reserved_at.store(now, Relaxed);
        // The first one stays.
        let _ = self.since.compare_exchange(0, now, Relaxed, Relaxed);
        self.version.store(reserved.version, Relaxed);
        self.left.store(reserved.left, Relaxed);
        self.max_value.store(reserved.max_value, Relaxed);
        self.step.store(reserved.pace.step.into(), Relaxed);
        self.depth.store(reserved.pace.depth.into(), Relaxed);
    }

    /// The time since the last reservation, None before the first.
    pub fn lasted(&self) -> Option<Duration> {
        since(&self.reserved_at)
    }

    /// The time since the first reservation.
    pub fn age(&self) -> Option<Duration> {
        since(&self.since)
    }

    /// Everything anew, for another tag.
    pub fn reset(&self) {
        let cells = [
            &self.published,
            &self.lost,
            &self.refills,
            &self.duration,
            &self.took,
            &self.reserved_at,
            &self.since,
            &self.left,
            &self.step,
            &self.depth,
        ];
        for cell in cells {
            cell.store(0, Relaxed);
        }
    }
}

/// The waits of callers that found the buffers empty.
#[derive(Default)]
pub struct Waits {
    /// Number of times that one waited.
    pub count: AtomicU64,
    /// The longest time of a call, and the time of all waits, in microseconds.
    pub longest: AtomicU64,
    /// See above.
    pub took: AtomicU64,
    /// The time at which the last one began, in microseconds of uptime; 0: never.
    last: AtomicU64,
}

impl Waits {
    /// Notes that a call has to wait; whether because it used up what there was.
    pub fn begin(&self, ran_dry: bool) {
        self.count.fetch_add(1, Relaxed);
        if ran_dry {
            self.last.store(micros(uptime()), Relaxed);
        }
    }

    /// Notes how long it took, and how long the call has waited in all.
    pub fn end(&self, took: Duration, in_all: Duration) {
        self.took.fetch_add(micros(took), Relaxed);
        self.longest.fetch_max(micros(in_all), Relaxed);
    }

    /// The time since a call last had to wait.
    pub fn ago(&self) -> Option<Duration> {
        since(&self.last)
    }

    /// Everything anew, for another tag.
    pub fn reset(&self) {
        for cell in [&self.count, &self.longest, &self.took, &self.last] {
            cell.store(0, Relaxed);
        }
    }
}

/// Microseconds, which are 1 for less than one: 0 stands for never.
fn micros(time: Duration) -> u64 {
    clock::micros(time).max(1)
}

/// The time since the instant in a cell; None where there is none.
fn since(cell: &AtomicU64) -> Option<Duration> {
    let then = Duration::from_micros(cell.load(Relaxed));
    (!then.is_zero()).then(|| uptime().saturating_sub(then))
}
