//! The memory that the refill worker shares with sessions.

use crate::clock::Clock;
use crate::tag::directory::Tag;
use crate::tag::reservation::{HighWaterMark, Reached};
use std::time::Duration;

/// The settings of refills, which may change between rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefillSettings {
    /// The time that a segment should last.
    pub target: Duration,
    /// The used part of a segment, in percent, at which the next segment is fetched.
    pub prefetch: u8,
    /// The time limit for a registry's response.
    pub registry_timeout: Duration,
}

/// The memory that the refill worker shares with sessions. Its clock decides when a period ends.
pub trait SharedMemory: Clock {
    /// Returns the time of a clock that only goes forward.
    fn uptime(&self) -> Duration;
    /// Runs `work` while no other process changes buffers or the owners of slots. `work` must not fail.
    fn with_directory_locked<T>(&self, work: impl FnOnce() -> T) -> T;

    /// Returns the highest id that rolled-back transactions handed out for a tag.
    fn high_water_mark(&self, source: u32, tag: &Tag) -> Option<HighWaterMark>;
    /// Drops the high-water mark of a tag, once the tag's row covers the mark. `known` is the highest id that the row
    /// covers, or None if the mark is not valid any more.
    fn clear_high_water_mark(&self, source: u32, tag: &Tag, known: Option<Reached>);
}
