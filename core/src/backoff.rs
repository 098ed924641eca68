//! Pauses that grow with each consecutive failure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A pause that doubles with each consecutive failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause.
    pub most: Duration,
}

impl Backoff {
    /// Returns a backoff from `first` up to `most`.
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self { first, most }
    }

    /// Returns the pause after this number of consecutive failures; zero after no failure.
    pub fn after(self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
        self.first.saturating_mul(1 << doublings.min(16)).min(self.most)
    }

    /// Returns the pause after another failure. `last` is the previous pause, or None if this is the first failure.
    pub fn next(self, last: Option<Duration>) -> Duration {
        last.map_or(self.first, |pause| pause.saturating_mul(2)).min(self.most)
    }
}

/// A schedule of retries for databases whose requests failed. A retry needs no new request.
#[derive(Debug)]
pub struct Retries<W> {
    backoff: Backoff,
    /// The time of each database's last attempt, and the pause after this attempt.
    tried: BTreeMap<W, (Duration, Duration)>,
}

impl<W: Copy + Ord> Retries<W> {
    /// Returns a schedule without attempts.
    pub const fn new(backoff: Backoff) -> Self {
        Self { backoff, tried: BTreeMap::new() }
    }

    /// Returns the databases in trouble that are due for a retry. `now` is a reading of a clock that only goes forward.
    pub fn due(&mut self, in_trouble: &BTreeSet<W>, now: Duration) -> Vec<W> {
        self.tried.retain(|one, _| in_trouble.contains(one));
        let is_due = |one: &&W| {
            let (tried, pause) = self.tried.entry(**one).or_insert((now, self.backoff.first));
            let is_due = now >= *tried + *pause;
            if is_due {
                (*tried, *pause) = (now, self.backoff.next(Some(*pause)));
            }
            is_due
        };
        in_trouble.iter().filter(is_due).copied().collect()
    }
}
