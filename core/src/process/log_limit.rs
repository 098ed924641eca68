//! Recent log messages, so that the log does not repeat a message with every attempt.

use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

/// The time after which a message is logged again.
pub const AGAIN: Duration = Duration::from_mins(1);

/// The number of messages that are remembered. At most this many different messages are logged within [`AGAIN`].
const KEPT: usize = 64;

/// Recent log messages. Plain data of fixed size, for shared memory. Times are readings of any clock that only goes
/// forward.
#[derive(Clone, Debug)]
pub struct LogLimit([Option<Logged>; KEPT]);

#[derive(Clone, Copy, Debug)]
struct Logged {
    hash: u64,
    said: Duration,
    /// The number of repetitions since the message was logged.
    more: u64,
}

impl Default for LogLimit {
    fn default() -> Self {
        Self([None; KEPT])
    }
}

impl LogLimit {
    /// Returns the number of unlogged repetitions if the message is to be logged now; None if the message is not to be
    /// logged.
    pub fn say(&mut self, what: &impl Hash, now: Duration) -> Option<u64> {
        let hash = FxBuildHasher.hash_one(what);
        let is_old = |saying: &Logged| now.saturating_sub(saying.said) >= AGAIN;
        let same = |saying: &Option<Logged>| saying.is_some_and(|saying| saying.hash == hash);
        let fresh = Logged { hash, said: now, more: 0 };
        if let Some(saying) = self.0.iter_mut().find(|saying| same(saying)).and_then(Option::as_mut) {
            if !is_old(saying) {
                saying.more += 1;
                return None;
            }
            return Some(std::mem::replace(saying, fresh).more);
        }
        let room = self.0.iter_mut().find(|saying| saying.as_ref().is_none_or(is_old))?;
        *room = Some(fresh);
        Some(0)
    }
}
