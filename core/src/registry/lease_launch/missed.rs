//! Databases that could not be looked into when the registry was looked for: in time they are.

use super::ranked::Ranked;
use crate::worker::backoff::Backoff;
use std::collections::VecDeque;
use std::time::Duration;

/// How soon they are looked into again, at first and in the end.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_mins(5));

/// What is remembered of them.
#[derive(Debug, Default)]
pub struct Missed {
    /// The registry that was found without them.
    found: Option<Ranked>,
    left: VecDeque<u32>,
    /// When the next is looked into, and the pause before the one after it.
    again: Duration,
    pause: Duration,
}

impl Missed {
    /// These, while a registry was found.
    pub fn beside(found: Ranked, left: Vec<u32>, now: Duration) -> Self {
        Self { found: Some(found), left: left.into(), again: now + BACKOFF.first, pause: BACKOFF.first }
    }

    /// The time until one is to be looked into; None where there is none.
    pub fn due(&self, now: Duration) -> Option<Duration> {
        (!self.left.is_empty()).then(|| self.again.saturating_sub(now))
    }

    /// The one to look into now.
    pub fn next(&mut self, now: Duration) -> Option<u32> {
        self.again = now + self.pause;
        self.left.pop_front()
    }

    /// It could not be looked into this time either.
    pub fn not_yet(&mut self, database: u32) {
        self.left.push_back(database);
        self.pause = BACKOFF.next(Some(self.pause));
    }

    /// Whether a database comes before the one that was found.
    pub fn comes_first(&self, this: Ranked) -> bool {
        self.found.is_some_and(|found| this < found)
    }
}
