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

/// The schedule by which those in trouble are tried again, though nobody asks.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1));
        let pauses = [0, 1, 2, 6, 7, 40, u32::MAX].map(|failures| backoff.after(failures).as_secs());
        assert_eq!(pauses, [0, 1, 2, 32, 60, 60, 60]);
        let mut last = None;
        for failures in 1..10 {
            last = Some(backoff.next(last));
            assert_eq!(last, Some(backoff.after(failures)));
        }
    }

    #[test]
    fn what_is_in_trouble_is_tried_after_growing_pauses_until_it_is_not() {
        let mut retries = Retries::new(Backoff::new(Duration::from_secs(1), Duration::from_secs(4)));
        let mut tried = |in_trouble: &[u32], now| {
            retries.due(&in_trouble.iter().copied().collect(), Duration::from_secs(now))
        };
        let seconds = (0..16).filter(|now| !tried(&[1], *now).is_empty()).collect::<Vec<_>>();
        assert_eq!(seconds, [1, 3, 7, 11, 15]);
        assert_eq!(tried(&[1, 2], 16), [] as [u32; 0]);
        assert_eq!(tried(&[2], 17), [2]);
        assert_eq!(tried(&[1], 18), [] as [u32; 0], "the first pause again");
        assert_eq!(tried(&[1], 19), [1]);
    }
}
