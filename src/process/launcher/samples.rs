//! Samples the server's counters at intervals, for the charts of the last hour.

use crate::pg::clock::{SystemClock, uptime};
use crate::settings;
use crate::shared::generator::{SHARED, Shared};
use crate::shared::history::HISTORY;
use crate::shared::segments::{SEGMENTS, Segments};
use snowflake_ids_core::Clock;
use snowflake_ids_core::clock::micros;
use snowflake_ids_core::report::history::{self, CounterReading};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

#[derive(Default)]
pub struct Samples {
    /// The time of the last sample.
    taken: Option<Duration>,
}

impl Samples {
    /// Takes a sample if one is due. Returns the time until the next sample; None if sampling is off.
    pub fn round(&mut self) -> Option<Duration> {
        let (shared, segments, history) = (SHARED.get()?, SEGMENTS.get()?, HISTORY.get()?);
        let (now, interval) = (uptime(), settings::sample_interval());
        let due = history::due(self.taken, interval, now)?;
        if !due.is_zero() {
            return Some(due);
        }
        history.record(&reading(shared, segments, now));
        self.taken = Some(now);
        Some(interval)
    }
}

/// Reads the counters.
fn reading(shared: &Shared, segments: &Segments, now: Duration) -> CounterReading {
    let snapshot = shared.generator.snapshot();
    let at = SystemClock.now();
    let drift = snapshot.last.map(|last| shared.layout.instant_of(last).since(at));
    let tags = segments.counts_in_all();
    CounterReading {
        at: at.0,
        uptime: micros(now),
        ids: shared.counted(),
        tag_ids: tags.issued,
        waits: tags.waits,
        refills: tags.refills,
        steps_back: snapshot.steps_back,
        steps_forward: shared.counts.steps_forward.load(Relaxed),
        drift: drift.map_or(0, micros),
        clock_ahead: shared.status.clock_ahead.load(Relaxed),
    }
}
