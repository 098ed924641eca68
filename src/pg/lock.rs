//! An `LWLock` in shared memory, as a raw lock for the guards of `lock_api`.
//!
//! A process that holds such a lock must not allocate server memory, write to the log or run SQL, because an error there
//! would leave the guarded data half changed.

use parking_lot::lock_api::{GuardNoSend, RawRwLock};
use pgrx::pg_sys;

/// An `LWLock`. While a process waits for the lock, `pg_stat_activity` shows `LWLock` and `snowflake_ids`.
pub struct LwLock(*mut pg_sys::LWLock);

// SAFETY: an LWLock is made for many processes, and its shared memory outlives them.
unsafe impl Send for LwLock {}
// SAFETY: an LWLock is made for many processes.
unsafe impl Sync for LwLock {}

// These declarations bypass pg_sys's wrappers for functions that can fail: the wrappers cost more than the locks. The
// functions fail only if a process holds 200 locks. A process holds at most two locks of this extension.
unsafe extern "C-unwind" {
    fn LWLockAcquire(lock: *mut pg_sys::LWLock, mode: pg_sys::LWLockMode::Type) -> bool;
    fn LWLockRelease(lock: *mut pg_sys::LWLock);
}

const NAME: &std::ffi::CStr = c"snowflake_ids";

const LOCKS: i32 = 6;

/// The purposes of the locks, in the order of the locks in shared memory.
#[derive(Clone, Copy)]
pub enum For {
    /// The map from segment tags to their slots in shared memory.
    Directory,
    /// The state of the server, such as its node and high-water marks.
    State,
    /// The counters that limit repeated log lines.
    LogLimit,
    /// The removal of keys of monotonic series from shared memory.
    Sweep,
    /// The high-water marks of tags, for ids of transactions that have not committed.
    HighWaterMarks,
    /// The record that the next ended transaction is written to.
    NextRecord,
}

/// Requests the locks. Call only while the server computes the size of shared memory.
pub fn request() {
    // SAFETY: the caller calls this function while the server computes the size of shared memory; the name is a constant.
    unsafe { pg_sys::RequestNamedLWLockTranche(NAME.as_ptr(), LOCKS) }
}

impl LwLock {
    /// Returns one of the requested locks. Call only while shared memory is laid out.
    pub(super) fn requested(purpose: For) -> Self {
        // SAFETY: this number of locks was requested under this name.
        Self(unsafe { &raw mut (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr()).add(purpose as usize)).lock })
    }

    fn acquire(&self, mode: pg_sys::LWLockMode::Type) {
        // SAFETY: the lock is initialised. A held lock defers interrupts.
        unsafe { LWLockAcquire(self.0, mode) };
    }

    fn try_acquire(&self, mode: pg_sys::LWLockMode::Type) -> bool {
        // SAFETY: the lock is initialised.
        unsafe { pg_sys::LWLockConditionalAcquire(self.0, mode) }
    }

    fn release(&self) {
        // SAFETY: the holdoff count is 0 only after an error. The server then releases the lock itself.
        unsafe {
            if pg_sys::InterruptHoldoffCount > 0 {
                LWLockRelease(self.0);
            }
        }
    }
}

// SAFETY: an LWLock excludes as the trait requires; the guards stay in the process that took the lock.
unsafe impl RawRwLock for LwLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait's")]
    const INIT: Self = Self(std::ptr::null_mut());
    type GuardMarker = GuardNoSend;

    fn lock_shared(&self) {
        self.acquire(pg_sys::LWLockMode::LW_SHARED);
    }

    fn try_lock_shared(&self) -> bool {
        self.try_acquire(pg_sys::LWLockMode::LW_SHARED)
    }

    unsafe fn unlock_shared(&self) {
        self.release();
    }

    fn lock_exclusive(&self) {
        self.acquire(pg_sys::LWLockMode::LW_EXCLUSIVE);
    }

    fn try_lock_exclusive(&self) -> bool {
        self.try_acquire(pg_sys::LWLockMode::LW_EXCLUSIVE)
    }

    unsafe fn unlock_exclusive(&self) {
        self.release();
    }
}
