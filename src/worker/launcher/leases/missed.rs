//! Databases that could not be looked into when the registry was looked for: in time they are.

use crate::pg::clock::uptime;
use std::collections::VecDeque;
use std::time::Duration;

/// How soon they are looked into again, at first and in the end.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(5));

/// What is remembered of them.
#[derive(Default)]
pub struct Missed {
    /// How the registry ranks that was found without them, and its database.
    found: (u32, u32),
    left: VecDeque<u32>,
    /// When the next is looked into, by uptime, and the pause before the one after it.
    again: Duration,
    pause: Duration,
}

impl Missed {
    /// These, while a registry was found.
    pub fn beside(found: (u32, u32), left: Vec<u32>) -> Self {
        Self { found, left: left.into(), again: uptime() + BACKOFF.0, pause: BACKOFF.0 }
    }

    /// The time until one is to be looked into; None where there is none.
    pub fn due(&self) -> Option<Duration> {
        (!self.left.is_empty()).then(|| self.again.saturating_sub(uptime()))
    }

    /// The one to look into now.
    pub fn next(&mut self) -> Option<u32> {
        self.again = uptime() + self.pause;
        self.left.pop_front()
    }

    /// It could not be looked into this time either.
    pub fn not_yet(&mut self, database: u32) {
        self.left.push_back(database);
        self.pause = (self.pause * 2).min(BACKOFF.1);
    }

    /// Whether a database comes before the one that was found.
    pub fn comes_first(&self, this: (u32, u32)) -> bool {
        this < self.found
    }
}
