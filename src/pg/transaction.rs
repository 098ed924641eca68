//! Hooks of the session's transaction.

use super::guc;
use pgrx::{pg_guard, pg_sys};
use std::ffi::{CStr, CString, c_void};
use std::sync::Once;

/// The functions that are called at the end of transactions.
pub struct Hooks {
    /// For [`watch`].
    pub watched: Once,
    /// The transaction is about to commit. May run SQL, and may fail.
    pub before_commit: fn(),
    /// It is about to be prepared. The same.
    pub before_prepare: fn(),
    /// The transaction has committed. Must not fail.
    pub committed: fn(),
    /// The transaction was rolled back, or prepared. Must not fail.
    pub ended: fn(),
    /// A subtransaction was rolled back, with those that began within it. Must not fail.
    pub subtransaction_aborted: fn(Subtransaction),
}

impl Hooks {
    /// Hooks that do nothing.
    pub const fn none() -> Self {
        Self {
            watched: Once::new(),
            before_commit: || (),
            before_prepare: || (),
            committed: || (),
            ended: || (),
            subtransaction_aborted: |_| (),
        }
    }
}

/// The number of a subtransaction within its transaction. One that begins later has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subtransaction(u32);

impl Subtransaction {
    /// The one that the session is in; the transaction itself counts as one.
    pub fn current() -> Self {
        // SAFETY: called from SQL functions, that is, within a transaction.
        Self(unsafe { pg_sys::GetCurrentSubTransactionId() })
    }
}

/// Has the hooks called from now on, in this process. They stay for good: more calls for the same change nothing.
pub fn watch(hooks: &'static Hooks) {
    hooks.watched.call_once(|| {
        let argument: *mut c_void = std::ptr::from_ref(hooks).cast_mut().cast();
        // SAFETY: the argument is valid forever, and only read.
        unsafe {
            pg_sys::RegisterXactCallback(Some(on_transaction), argument);
            pg_sys::RegisterSubXactCallback(Some(on_subtransaction), argument);
        }
    });
}

/// Fails in a transaction that is read-only, and in a parallel query, as the server's function of this name does there.
pub fn refuse_change(command: &CStr) {
    // SAFETY: within a transaction; the name ends with a zero byte.
    unsafe {
        pg_sys::PreventCommandIfReadOnly(command.as_ptr());
        pg_sys::PreventCommandIfParallelMode(command.as_ptr());
    }
}

/// Has the rest of this transaction run in this process alone, with whose memory it goes on: no more parallel plans or workers.
pub fn stay_in_one_process() {
    for setting in [c"max_parallel_workers_per_gather", c"max_parallel_workers"] {
        guc::set_for_transaction(setting, c"0");
    }
}

/// The number of the present transaction in this process, unlike those of 4 billion others. Only within a transaction.
#[inline]
pub fn number() -> u32 {
    // SAFETY: MyProc points to this process's own entry from its start to its end, which nobody else writes to here.
    unsafe {
        #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16")))]
        let number = (*pg_sys::MyProc).vxid.lxid;
        #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16"))]
        let number = (*pg_sys::MyProc).lxid;
        number
    }
}

/// The transaction's id with its epoch; None if it has changed nothing. Also while it ends.
pub fn xid() -> Option<u64> {
    // SAFETY: looks at variables of this process.
    Some(unsafe { pg_sys::GetTopFullTransactionIdIfAny() }.value).filter(|xid| *xid != 0)
}

/// Returns whether this process works for the transaction of another one, in a parallel query.
pub fn is_of_leader() -> bool {
    // SAFETY: a plain variable of this process.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// Returns whether a parallel query is running, in which no SQL can.
pub fn is_parallel() -> bool {
    // SAFETY: looks at variables of this process.
    unsafe { pg_sys::IsInParallelMode() }
}

/// Returns whether this process is in a transaction.
pub fn is_open() -> bool {
    // SAFETY: looks at variables of this process.
    unsafe { pg_sys::IsTransactionState() }
}

/// Returns whether the user has begun the transaction, and ends it.
pub fn is_block() -> bool {
    // SAFETY: looks at variables of this process.
    unsafe { pg_sys::IsTransactionBlock() }
}

/// Returns whether each statement sees earlier commits, so that a row that others have changed is no error.
pub fn sees_new_commits() -> bool {
    // SAFETY: looks at variables of this process.
    unsafe { pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ.cast_signed() }
}

/// Refuses where the user has begun the transaction: what `function` does could not be rolled back.
pub fn refuse_block(function: &'static str) {
    let name = CString::new(function).unwrap_or_default();
    // SAFETY: within a transaction; the name is used for the message alone.
    unsafe { pg_sys::PreventInTransactionBlock(true, name.as_ptr()) };
}

/// Has what the transaction has changed until now seen from here on.
pub fn see_own_changes() {
    // SAFETY: within a transaction.
    unsafe { pg_sys::CommandCounterIncrement() };
}

/// Runs SQL where the transaction is about to end, and has no snapshot any more.
pub fn with_snapshot<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: within a transaction. An error ends it, with its snapshots and its being read-only, which it may
    // have become after it wrote.
    let read_only = unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let read_only = pg_sys::XactReadOnly;
        pg_sys::XactReadOnly = false;
        read_only
    };
    let done = work();
    // SAFETY: what was pushed and replaced above.
    unsafe {
        pg_sys::XactReadOnly = read_only;
        pg_sys::PopActiveSnapshot();
    }
    done
}

#[pg_guard]
unsafe extern "C-unwind" fn on_transaction(event: pg_sys::XactEvent::Type, hooks: *mut c_void) {
    use pg_sys::XactEvent;
    // SAFETY: what `watch` passed.
    let hooks = unsafe { &*hooks.cast::<Hooks>() };
    match event {
        XactEvent::XACT_EVENT_PRE_COMMIT => (hooks.before_commit)(),
        XactEvent::XACT_EVENT_PRE_PREPARE => (hooks.before_prepare)(),
        XactEvent::XACT_EVENT_COMMIT => (hooks.committed)(),
        XactEvent::XACT_EVENT_ABORT | XactEvent::XACT_EVENT_PREPARE => (hooks.ended)(),
        _ => {}
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_subtransaction(
    event: pg_sys::SubXactEvent::Type,
    this: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    hooks: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // SAFETY: what `watch` passed.
        let hooks = unsafe { &*hooks.cast::<Hooks>() };
        (hooks.subtransaction_aborted)(Subtransaction(this));
    }
}
