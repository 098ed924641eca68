//! Read locks on relations, with a limit for the wait.

use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// The permitted wait for a lock that another process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// No wait.
    No,
    /// A wait for at most this time; None for a wait without a limit.
    Yes(Option<Duration>),
}

/// A read lock (`AccessShareLock`). After an error, the end of the transaction or subtransaction releases the lock.
pub struct Lock(pg_sys::Oid);

const MODE: pg_sys::LOCKMODE = pg_sys::AccessShareLock.cast_signed();

impl Lock {
    /// Takes the lock. Returns None if the lock was not available in time; after a wait, the transaction must be rolled back.
    pub fn take(relation: pg_sys::Oid, wait: Wait) -> Option<Self> {
        // SAFETY: the caller is within a transaction; any OID can be locked.
        let at_once = || unsafe { pg_sys::ConditionalLockRelationOid(relation, MODE) };
        // SAFETY: the caller is within a transaction; any OID can be locked.
        let in_the_end = || unsafe { pg_sys::LockRelationOid(relation, MODE) };
        let taken = match wait {
            Wait::No => at_once(),
            Wait::Yes(None) => {
                in_the_end();
                true
            }
            Wait::Yes(Some(limit)) => at_once() || within(limit, in_the_end).is_some(),
        };
        taken.then_some(Self(relation))
    }

    /// Releases the lock before the transaction ends.
    pub fn release(self) {
        // SAFETY: `take` has taken the lock. `release` consumes `self`, so the lock is released only once.
        unsafe { pg_sys::UnlockRelationOid(self.0, MODE) };
    }
}

/// Runs `work` with a limit for each wait for a lock. Returns None if a lock was not available in time; the transaction must
/// then be rolled back. A shorter `lock_timeout` of the user takes precedence, and raises the server's error.
pub fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> Option<T> {
    let ours = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX).max(1);
    // SAFETY: a plain variable of this process, which the server reads when a wait begins.
    let theirs = unsafe { pg_sys::LockTimeout };
    // SAFETY: a plain variable of this process.
    let set = |timeout| unsafe { pg_sys::LockTimeout = timeout };
    if theirs > 0 && theirs <= ours {
        return Some(work());
    }
    set(ours);
    PgTryBuilder::new(AssertUnwindSafe(|| Some(work())))
        .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, |_| None)
        .finally(move || set(theirs))
        .execute()
}
