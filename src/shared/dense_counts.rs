//! What is counted of dense series.

use snowflake_ids_core::clock::micros;
use snowflake_ids_core::series::dense::RoundCounts;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The counts of all databases since the server's start.
#[derive(Default)]
pub struct DenseCounts {
    rounds: AtomicU64,
    reservations: AtomicU64,
    reserved: AtomicU64,
    evictions: AtomicU64,
    evicted: AtomicU64,
    waits: AtomicU64,
    /// What these took, in microseconds.
    waited: AtomicU64,
}

impl DenseCounts {
    /// Adds what a worker did.
    pub fn add(&self, round: &RoundCounts) {
        for (cell, more) in self.cells().into_iter().zip(to_array(round)) {
            cell.fetch_add(more, Relaxed);
        }
    }

    /// What workers did.
    pub fn rounds(&self) -> RoundCounts {
        let [rounds, reservations, reserved, evictions, evicted] =
            self.cells().map(|cell| cell.load(Relaxed));
        RoundCounts { rounds, reservations, reserved, evictions, evicted }
    }

    /// Notes that a call has waited for its number.
    pub fn note_wait(&self, took: Duration) {
        self.waits.fetch_add(1, Relaxed);
        self.waited.fetch_add(micros(took), Relaxed);
    }

    /// How many calls have waited, and what that took.
    pub fn waits(&self) -> (u64, Duration) {
        (self.waits.load(Relaxed), Duration::from_micros(self.waited.load(Relaxed)))
    }

    const fn cells(&self) -> [&AtomicU64; 5] {
        [&self.rounds, &self.reservations, &self.reserved, &self.evictions, &self.evicted]
    }
}

const fn to_array(round: &RoundCounts) -> [u64; 5] {
    let RoundCounts { rounds, reservations, reserved, evictions, evicted } = *round;
    [rounds, reservations, reserved, evictions, evicted]
}
