//! How long another server is waited for.

use super::Failure;
use crate::pg::wait::{self, Event};
use pgrx::{check_for_interrupts, pg_sys};
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// What a socket is waited for.
#[derive(Clone, Copy)]
pub enum Need {
    /// That there is something to read.
    Read,
    /// That it takes what is written.
    Write,
    /// Either.
    ReadOrWrite,
}

impl Need {
    const fn events(self) -> u32 {
        match self {
            Self::Read => pg_sys::WL_SOCKET_READABLE,
            Self::Write => pg_sys::WL_SOCKET_WRITEABLE,
            Self::ReadOrWrite => pg_sys::WL_SOCKET_READABLE | pg_sys::WL_SOCKET_WRITEABLE,
        }
    }
}

/// A time limit for all waits together.
pub struct Patience {
    limit: Duration,
    began: Instant,
    woken: bool,
}

impl Patience {
    /// From now on.
    pub fn new(limit: Duration) -> Self {
        Self { limit, began: Instant::now(), woken: false }
    }

    /// Sleeps until the socket is ready. An interrupt ends it by the error that it throws.
    ///
    /// # Errors
    /// [`Failure::Silent`].
    pub fn wait(&mut self, socket: c_int, need: Need) -> Result<(), Failure> {
        loop {
            check_for_interrupts!();
            let left = self.limit.saturating_sub(self.began.elapsed());
            if left.is_zero() {
                return Err(Failure::Silent(self.limit));
            }
            let happened = wait::until_woken_or_ready(Event::Registry, socket, need.events(), left);
            self.woken |= happened & pg_sys::WL_LATCH_SET != 0;
            if happened & need.events() != 0 {
                return Ok(());
            }
        }
    }
}

/// Whoever woke this process may have meant something else: wake-ups that were used up here are handed on to its next
/// sleep.
impl Drop for Patience {
    fn drop(&mut self) {
        if self.woken {
            wait::wake();
        }
    }
}
