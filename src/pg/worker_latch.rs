//! The address by which a worker is found and woken.

use pgrx::pg_sys;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// A place in shared memory for one worker at a time.
#[derive(Default)]
pub struct WorkerLatch {
    pid: AtomicI32,
    latch: AtomicPtr<pg_sys::Latch>,
}

impl WorkerLatch {
    /// Takes the place for this process; whether it was free.
    pub fn enter(&self) -> bool {
        // SAFETY: set once at the start of every process.
        let me = unsafe { pg_sys::MyProcPid };
        let free = self.pid.compare_exchange(0, me, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if free {
            // SAFETY: as above. The latch lies in shared memory, at the same address in all processes.
            self.latch.store(unsafe { pg_sys::MyLatch }, Ordering::Release);
        }
        free
    }

    /// Leaves the place, if this process has it; whether it had.
    pub fn leave(&self) -> bool {
        // SAFETY: as above.
        let mine = self.pid.load(Ordering::Acquire) == unsafe { pg_sys::MyProcPid };
        if mine {
            self.latch.store(std::ptr::null_mut(), Ordering::Release);
            self.pid.store(0, Ordering::Release);
        }
        mine
    }

    /// Returns whether a process has the place.
    pub fn is_occupied(&self) -> bool {
        self.pid.load(Ordering::Acquire) != 0
    }

    /// Wakes the process that has the place; whether there was one.
    pub fn wake(&self) -> bool {
        let latch = self.latch.load(Ordering::Acquire);
        if latch.is_null() {
            return false;
        }
        // SAFETY: latches of processes are never freed. One that has changed hands meanwhile wakes a process that
        // did not wait for this, which all that wait on latches allow for.
        unsafe { pg_sys::SetLatch(latch) };
        true
    }
}
