//! The latch of a worker, in shared memory, so that other processes can wake the worker.

use pgrx::pg_sys;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// A slot in shared memory for the latch of one process.
#[derive(Default)]
pub struct WorkerLatch {
    pid: AtomicI32,
    latch: AtomicPtr<pg_sys::Latch>,
}

impl WorkerLatch {
    /// Takes the slot for this process. Returns whether the slot was free.
    pub fn enter(&self) -> bool {
        // SAFETY: the variable is set once, at the start of every process.
        let me = unsafe { pg_sys::MyProcPid };
        let free = self.pid.compare_exchange(0, me, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if free {
            // SAFETY: the variable is set at process start. The latch lies in shared memory, at the same address in all
            // processes.
            self.latch.store(unsafe { pg_sys::MyLatch }, Ordering::Release);
        }
        free
    }

    /// Frees the slot if this process holds it. Returns whether the slot was freed.
    pub fn leave(&self) -> bool {
        // SAFETY: the variable is set once, at the start of every process.
        let mine = self.pid.load(Ordering::Acquire) == unsafe { pg_sys::MyProcPid };
        if mine {
            self.latch.store(std::ptr::null_mut(), Ordering::Release);
            self.pid.store(0, Ordering::Release);
        }
        mine
    }

    /// Returns whether a process holds the slot.
    pub fn is_occupied(&self) -> bool {
        self.pid.load(Ordering::Acquire) != 0
    }

    /// Wakes the process that holds the slot. Returns whether a process held the slot.
    pub fn wake(&self) -> bool {
        let latch = self.latch.load(Ordering::Acquire);
        if latch.is_null() {
            return false;
        }
        // SAFETY: latches are never freed. The latch may already belong to a new process, which tolerates the wake-up.
        unsafe { pg_sys::SetLatch(latch) };
        true
    }
}
