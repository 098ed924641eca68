//! Locks for reading a relation, which are waited for no longer than a call may.

use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// The wait for a lock that is not to be had at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It is not waited for.
    No,
    /// As long as this, if it is bounded.
    Yes(Option<Duration>),
}

/// A lock for reading. After an error the end of the transaction, or subtransaction, releases it.
pub struct Lock(pg_sys::Oid);

const MODE: pg_sys::LOCKMODE = pg_sys::AccessShareLock.cast_signed();

impl Lock {
    /// Takes the lock of a relation; None where it was not to be had in time. The transaction can only be rolled back then.
    pub fn take(relation: pg_sys::Oid, wait: Wait) -> Option<Self> {
        // SAFETY: within a transaction; the lock is of a number, whatever that is.
        let at_once = || unsafe { pg_sys::ConditionalLockRelationOid(relation, MODE) };
        // SAFETY: as above.
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

    /// Releases it before the transaction ends.
    pub fn release(self) {
        // SAFETY: taken above, once.
        unsafe { pg_sys::UnlockRelationOid(self.0, MODE) };
    }
}

/// Does something that waits for each lock no longer than this; None where one was not to be had: the transaction can only be rolled
/// back then. The user's own `lock_timeout` holds where it is shorter.
pub fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> Option<T> {
    let ours = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX).max(1);
    // SAFETY: a plain variable of this process, which the server reads when it begins to wait.
    let theirs = unsafe { pg_sys::LockTimeout };
    // SAFETY: as above.
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
