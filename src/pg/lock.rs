//! A lock of Postgres's that all processes of the server share, as the raw lock of `lock_api`'s guards.
//!
//! A process that holds one allocates nothing of the server's, logs nothing and runs no SQL: an error would leave
//! what it guards half done.

use parking_lot::lock_api::{GuardNoSend, RawRwLock};
use pgrx::pg_sys;

/// An `LWLock`. Where it is waited for, `pg_stat_activity` shows `LWLock` and `snowflake_ids`.
pub struct LwLock(*mut pg_sys::LWLock);

// SAFETY: made to be used by many processes; it lies in shared memory as long as they live.
unsafe impl Send for LwLock {}
// SAFETY: as above.
unsafe impl Sync for LwLock {}

// The raw symbols: pg_sys's are wrapped for functions that can fail, which costs more than the locks do. These fail where a process
// holds 200 locks, and here it holds two at most, besides those of the server's, which calls us with none.
unsafe extern "C-unwind" {
    fn LWLockAcquire(lock: *mut pg_sys::LWLock, mode: pg_sys::LWLockMode::Type) -> bool;
    fn LWLockRelease(lock: *mut pg_sys::LWLock);
}

const NAME: &std::ffi::CStr = c"snowflake_ids";

const LOCKS: i32 = 6;

/// The purposes of the locks, in the order in which they lie.
#[derive(Clone, Copy)]
pub enum For {
    /// The slots of tags.
    Directory,
    /// The state of the server: which node issues, and how far.
    State,
    /// The lines that the log got.
    LogLimit,
    /// Sweeping away what sections left.
    Sweep,
    /// The ids that transactions gave out and that may be rolled back.
    HighWaterMarks,
    /// The transactions that ended last.
    EndedTransactions,
}

/// Asks the server for the locks. Only while it adds up what shared memory is needed.
pub fn request() {
    // SAFETY: the caller sees to the time; the name is a constant.
    unsafe { pg_sys::RequestNamedLWLockTranche(NAME.as_ptr(), LOCKS) }
}

impl LwLock {
    /// One of the locks that were requested. Only while shared memory is laid out.
    pub fn requested(purpose: For) -> Self {
        // SAFETY: as many were requested under this name.
        Self(unsafe { &raw mut (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr()).add(purpose as usize)).lock })
    }

    fn acquire(&self, mode: pg_sys::LWLockMode::Type) {
        // SAFETY: the lock is initialised. It holds off interrupts until it is released.
        unsafe { LWLockAcquire(self.0, mode) };
    }

    fn try_acquire(&self, mode: pg_sys::LWLockMode::Type) -> bool {
        // SAFETY: as above.
        unsafe { pg_sys::LWLockConditionalAcquire(self.0, mode) }
    }

    fn release(&self) {
        // SAFETY: after an error the server has released its locks, and let interrupts in, by itself.
        unsafe {
            if pg_sys::InterruptHoldoffCount > 0 {
                LWLockRelease(self.0);
            }
        }
    }
}

// SAFETY: an LWLock excludes as the trait asks; the guards stay in the process that took it.
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
