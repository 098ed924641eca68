//! Pauses that grow with each failure in a row.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A pause that doubles, from the first failure on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause.
    pub most: Duration,
}

impl Backoff {
    /// One that doubles from `first` up to `most`.
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self { first, most }
    }

    /// The pause after so many failures in a row; zero after none.
    pub fn after(self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
        self.first.saturating_mul(1 << doublings.min(16)).min(self.most)
    }

    /// The pause after one more failure; None: it is the first in a row.
    pub fn next(self, last: Option<Duration>) -> Duration {
        last.map_or(self.first, |pause| pause.saturating_mul(2)).min(self.most)
    }
}

/// The schedule of new attempts for tags in trouble, without a call that asks for them.
#[derive(Debug)]
pub struct Retries<W> {
    backoff: Backoff,
    /// The last attempt of each, and the pause after it.
    tried: BTreeMap<W, (Duration, Duration)>,
}

impl<W: Copy + Ord> Retries<W> {
    /// None were tried.
    pub const fn new(backoff: Backoff) -> Self {
        Self { backoff, tried: BTreeMap::new() }
    }

    /// Those of the ones in trouble that are to be tried now. `now` is of a clock that only goes forward.
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
