//! Pauses that grow with each failure in a row.

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
}
