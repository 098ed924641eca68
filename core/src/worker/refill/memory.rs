//! The memory that the worker shares with sessions.

use crate::clock::Clock;
use crate::sequence::directory::Tag;
use crate::sequence::reservation::{HighWaterMark, Reached};
use std::time::Duration;

/// Settings, which may change from one round to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefillSettings {
    /// Time that a segment should last.
    pub target: Duration,
    /// The share of a segment, in percent, at which the next is fetched.
    pub prefetch: u8,
    /// Time that a registry is waited for, where there is one.
    pub registry_timeout: Duration,
}

/// The memory that the worker shares with sessions, and the clock by which periods end there.
pub trait SharedMemory: Clock {
    /// A clock that only goes forward.
    fn uptime(&self) -> Duration;
    /// Does something that changes what is in buffers, or whose they are: one process at a time. It must not fail.
    fn with_directory_locked<T>(&self, work: impl FnOnce() -> T) -> T;

    /// Returns how far transactions came that were rolled back, of a tag in a table of tags.
    fn high_water_mark(&self, source: u32, tag: &Tag) -> Option<HighWaterMark>;
    /// The row knows of ids up to this one by now; None: what was noted is of no more use.
    fn clear_high_water_mark(&self, source: u32, tag: &Tag, known: Option<Reached>);
}
