//! A gate beside a lock: who is quick passes through it and leaves the lock alone; who holds the lock closes it.
//!
//! A lock that many processes share and can sleep on costs more than what is done under it here, a number taken. So who takes one
//! enters by the gate, one at a time, for a few instructions that neither wait nor fail. Whoever stays longer takes the lock and closes
//! the gate, waits until nobody is in, and opens it before giving up the lock. Who finds it closed takes the lock like them.

use crate::guard::{Guard, holds};
use crate::sync::{AtomicU32, Ordering, pause};

const OPEN: u32 = 0;
/// Somebody is in.
const ENTERED: u32 = 1;
/// For whoever holds the lock alone.
const CLOSED: u32 = 2;

/// How often it is tried to enter while somebody else is in: as long as a turn takes, or a few.
const TRIES: u32 = if cfg!(loom) { 1 } else { 32 };

/// The gate. All processes that share what is behind it share this value.
#[derive(Debug)]
pub struct Gate(AtomicU32);

/// How somebody was in who leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum In {
    /// By the gate.
    Entered,
    /// With the lock, which is to be given up now.
    Locked,
}

impl Gate {
    /// An open gate.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default, reason = "what a lock begins with is a constant")]
    pub const fn new() -> Self {
        Self(AtomicU32::new(OPEN))
    }

    /// The same for the model checker, whose atomics are no constants.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU32::new(OPEN))
    }

    /// Enters, unless it is closed, or others are in all the while.
    #[inline]
    pub fn enter(&self) -> bool {
        self.try_enter().is_ok() || self.keep_trying()
    }

    #[inline]
    fn try_enter(&self) -> Result<u32, u32> {
        self.0.compare_exchange(OPEN, ENTERED, Ordering::Acquire, Ordering::Relaxed)
    }

    #[cold]
    fn keep_trying(&self) -> bool {
        for attempt in 1..TRIES {
            pause(attempt);
            match self.try_enter() {
                Ok(_) => return true,
                Err(CLOSED) => return false,
                Err(_) => {}
            }
        }
        false
    }

    /// Closes it, and waits until nobody is in. Only with the lock. One that whoever held the lock before left closed stays so.
    pub fn close(&self) {
        if !holds(Guard::GateEmpty) {
            self.0.store(CLOSED, Ordering::Relaxed);
        }
        let mut attempt = 0;
        while let Err(ENTERED) = self.0.compare_exchange(OPEN, CLOSED, Ordering::Acquire, Ordering::Relaxed) {
            attempt += 1;
            pause(attempt);
        }
    }

    /// Leaves, and opens the gate. Only by who entered it or closed it; which of both it was.
    #[inline]
    pub fn leave(&self) -> In {
        let was = self.0.load(Ordering::Relaxed);
        let order = if holds(Guard::GateRelease) { Ordering::Release } else { Ordering::Relaxed };
        self.0.store(OPEN, order);
        if was == CLOSED { In::Locked } else { In::Entered }
    }
}
