//! A gate beside a lock: a process that is quick enters by the gate and leaves the lock alone; a process that holds the lock closes the
//! gate.
//!
//! A lock that many processes share and can sleep on costs more than what is done under it here, a number taken. So a process that takes
//! a number enters by the gate, one at a time, for a few instructions that neither wait nor fail. A process that stays longer takes the
//! lock, closes the gate and waits until it is alone; it opens the gate before it gives the lock up. A process that finds the gate closed
//! takes the lock in the same way.

use crate::guard::{Guard, holds};
use crate::sync::{AtomicU32, Ordering, pause};

const OPEN: u32 = 0;
/// A process is inside by the gate.
const ENTERED: u32 = 1;
/// Only the process that holds the lock is inside, or is about to be.
const CLOSED: u32 = 2;

/// How often a process tries to enter while another one is inside: for as long as a turn takes, or a few.
const TRIES: u32 = if cfg!(loom) { 1 } else { 32 };

/// The gate. All processes that share what is behind it share this value.
#[derive(Debug)]
pub struct Gate(AtomicU32);

/// How a process that leaves came in.
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

    /// Enters, unless the gate is closed, or other processes are inside all the while.
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

    /// Closes the gate, and waits until no process is inside. Only with the lock. A gate that the last holder of the lock left closed
    /// stays so.
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

    /// Leaves, and opens the gate; says how the process came in. Only for the process that has entered or closed it.
    #[inline]
    pub fn leave(&self) -> In {
        let was = self.0.load(Ordering::Relaxed);
        let order = if holds(Guard::GateRelease) { Ordering::Release } else { Ordering::Relaxed };
        self.0.store(OPEN, order);
        if was == CLOSED { In::Locked } else { In::Entered }
    }
}
