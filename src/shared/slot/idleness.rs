//! For how long no session has used a tag.

use super::time::{micros, since};
use crate::pg::clock::uptime;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// When a tag was last used, found out by looking at it now and then: users don't note it, for that would cost
/// each of them a write.
#[derive(Default)]
pub struct Idleness {
    mark: AtomicU64,
    since: AtomicU64,
}

impl Idleness {
    /// It is used now.
    pub fn reset(&self) {
        self.since.store(micros(uptime()), Relaxed);
        self.mark.store(0, Relaxed);
    }

    /// It was not used since the machine was started; `mark` as below.
    pub fn age(&self, mark: u64) {
        self.since.store(1, Relaxed);
        self.mark.store(mark, Relaxed);
    }

    /// How long it has been so; `mark` changes with each use.
    pub fn look(&self, mark: u64) -> Duration {
        if self.mark.swap(mark, Relaxed) != mark {
            self.since.store(micros(uptime()), Relaxed);
        }
        since(&self.since).unwrap_or_default()
    }
}
