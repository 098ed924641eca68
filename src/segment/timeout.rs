//! For how long a call may wait.

use crate::pg::clock::uptime;
use crate::settings;
use snowflake_ids_core::worker::locked::LockedError;
use std::cell::OnceCell;
use std::time::Duration;

/// For how long a call may wait in all, from the moment on in which it first has to.
pub struct SegmentTimeout {
    limit: Duration,
    began: OnceCell<Duration>,
}

impl SegmentTimeout {
    /// As long as the setting says.
    pub fn new() -> Self {
        Self { limit: settings::segment_wait_timeout(), began: OnceCell::new() }
    }

    /// All of the time that the call may wait.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// It begins to wait, unless it has.
    pub fn begin(&self) {
        self.began.get_or_init(uptime);
    }

    /// Returns the time that it has waited so far. It begins to with this.
    pub fn waited(&self) -> Duration {
        uptime().saturating_sub(*self.began.get_or_init(uptime))
    }

    /// Returns the time that it may go on. It begins to wait with this.
    pub fn left(&self) -> Duration {
        self.limit.saturating_sub(self.waited())
    }

    /// A table was locked for all of that time.
    pub fn locked(&self, table: &'static str) -> LockedError {
        LockedError { table, limit: self.limit }
    }

    /// Returns whether it has begun to wait.
    pub fn has_begun(&self) -> bool {
        self.began.get().is_some()
    }

    /// Returns whether it must not wait any longer.
    pub fn is_over(&self) -> bool {
        self.has_begun() && self.left().is_zero()
    }
}
