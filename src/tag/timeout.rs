//! The limit on the time that a call may wait for an id of a tag.

use crate::pg::clock::uptime;
use crate::settings;
use snowflake_ids_core::process::locked::LockedError;
use std::cell::{Cell, OnceCell};
use std::time::Duration;

/// The longest time that a call may wait in all, counted from its first wait.
pub struct SegmentTimeout {
    limit: Cell<Duration>,
    began: OnceCell<Duration>,
}

impl SegmentTimeout {
    pub fn new() -> Self {
        Self { limit: Cell::new(settings::segment_wait_timeout()), began: OnceCell::new() }
    }

    pub fn limit(&self) -> Duration {
        self.limit.get()
    }

    /// Shortens the limit, because the registry is known not to answer.
    pub fn shorten(&self) {
        self.limit.set(self.limit().min(settings::registry_down_timeout()));
    }

    pub fn begin(&self) {
        self.began.get_or_init(uptime);
    }

    /// Returns the time since the wait began. Begins the wait if it has not begun.
    pub fn waited(&self) -> Duration {
        uptime().saturating_sub(*self.began.get_or_init(uptime))
    }

    /// Returns the time that the call may still wait. Begins the wait if it has not begun.
    pub fn left(&self) -> Duration {
        self.limit().saturating_sub(self.waited())
    }

    pub fn locked(&self, table: &'static str) -> LockedError {
        LockedError { table, limit: self.limit() }
    }

    pub fn has_begun(&self) -> bool {
        self.began.get().is_some()
    }

    pub fn is_over(&self) -> bool {
        self.has_begun() && self.left().is_zero()
    }
}
