//! The time limit for waits for another server.

use crate::pg::per_process::PerProcess;
use crate::pg::wait::{self, Event};
use pgrx::{check_for_interrupts, pg_sys};
use snowflake_ids_core::registry::error::ConnectionError;
use std::cell::Cell;
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// Returns the time that this process may still wait for any server; None if there is no limit.
type WaitBound = fn() -> Option<Duration>;

static BOUND: PerProcess<Cell<Option<WaitBound>>> = PerProcess::new(Cell::new(None));

/// Limits the waits of this process to the time that `bound` returns. Another process that shortens this time must wake this
/// process.
pub fn bound_by(bound: WaitBound) {
    BOUND.set(Some(bound));
}

/// If `bound` ends a wait of at least this length, the error is [`ConnectionError::Silent`]. After a shorter wait, the error
/// is [`ConnectionError::GivenUp`].
const SILENT: Duration = Duration::from_secs(1);

/// A common time limit for several waits.
pub struct Timeout {
    limit: Duration,
    began: Instant,
    woken: bool,
}

impl Timeout {
    /// Starts the time limit now.
    pub fn new(limit: Duration) -> Self {
        Self { limit, began: Instant::now(), woken: false }
    }

    /// Sleeps until the socket is ready for one of the events. An interrupt throws an error.
    ///
    /// # Errors
    /// Returns [`ConnectionError::Silent`] after the time limit, and [`ConnectionError::GivenUp`] if `bound` has ended a
    /// short wait.
    pub fn wait(&mut self, socket: c_int, events: u32) -> Result<(), ConnectionError> {
        loop {
            check_for_interrupts!();
            let left = self.limit.saturating_sub(self.began.elapsed());
            if left.is_zero() {
                return Err(ConnectionError::Silent(self.limit));
            }
            let bound = BOUND.get().and_then(|bound| bound()).unwrap_or(left);
            if bound.is_zero() {
                let waited = self.began.elapsed();
                return Err(if waited >= SILENT {
                    ConnectionError::Silent(waited)
                } else {
                    ConnectionError::GivenUp
                });
            }
            let left = left.min(bound);
            let happened = wait::until_woken_or_ready(Event::Registry, socket, events, left);
            self.woken |= happened & pg_sys::WL_LATCH_SET != 0;
            if happened & events != 0 {
                return Ok(());
            }
        }
    }
}

/// Sets the process's latch again if a wait has consumed a wake-up, because the wake-up may concern other code.
impl Drop for Timeout {
    fn drop(&mut self) {
        if self.woken {
            wait::wake();
        }
    }
}
