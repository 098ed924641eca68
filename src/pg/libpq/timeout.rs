//! The limit of the wait for another server.

use crate::pg::process::PerProcess;
use crate::pg::wait::{self, Event};
use pgrx::{check_for_interrupts, pg_sys};
use snowflake_ids_core::registry::error::ConnectionError;
use std::cell::Cell;
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// The time that this process may still wait, for any server; None: without end.
type WaitBound = fn() -> Option<Duration>;

static BOUND: PerProcess<Cell<Option<WaitBound>>> = PerProcess::new(Cell::new(None));

/// Has this process wait no longer for other servers than `bound` says. The process that makes that shorter wakes this one.
pub fn bound_by(bound: WaitBound) {
    BOUND.set(Some(bound));
}

/// A server that gave no answer in this time is silent, even if others would have liked to wait less.
const SILENT: Duration = Duration::from_secs(1);

/// A time limit for all waits together.
pub struct Timeout {
    limit: Duration,
    began: Instant,
    woken: bool,
}

impl Timeout {
    /// A limit that begins now.
    pub fn new(limit: Duration) -> Self {
        Self { limit, began: Instant::now(), woken: false }
    }

    /// Sleeps until the socket is ready for one of these events. An interrupt ends it by the error that it throws.
    ///
    /// # Errors
    /// [`ConnectionError::Silent`] and [`ConnectionError::GivenUp`].
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

/// A process that woke this one may have meant something else: wake-ups that were used up here are handed on to its next
/// sleep.
impl Drop for Timeout {
    fn drop(&mut self) {
        if self.woken {
            wait::wake();
        }
    }
}
