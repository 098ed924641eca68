//! Transactions of the session: hooks, state and restrictions.

use super::guc;
use pgrx::{pg_guard, pg_sys};
use std::ffi::{CStr, CString, c_void};
use std::sync::Once;

/// Functions that are called at the end of transactions.
pub struct Hooks {
    /// Used by [`watch`] to register the hooks only once.
    pub watched: Once,
    /// The transaction is about to commit. The function may run SQL and may fail.
    pub before_commit: fn(),
    /// The transaction is about to be prepared. The function may run SQL and may fail.
    pub before_prepare: fn(),
    /// The transaction has committed. The function must not fail.
    pub committed: fn(),
    /// The transaction was rolled back or prepared. The function must not fail.
    pub ended: fn(),
    /// A subtransaction and all subtransactions in it were rolled back. The function must not fail. If None, no callback for
    /// subtransactions is registered.
    pub subtransaction_aborted: Option<fn(Subtransaction)>,
}

impl Hooks {
    /// Returns hooks that do nothing.
    pub const fn none() -> Self {
        Self {
            watched: Once::new(),
            before_commit: || (),
            before_prepare: || (),
            committed: || (),
            ended: || (),
            subtransaction_aborted: None,
        }
    }
}

/// The number of a subtransaction within its transaction. Later subtransactions have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subtransaction(u32);

impl Subtransaction {
    /// Returns the current subtransaction. The top-level transaction counts as a subtransaction.
    pub fn current() -> Self {
        // SAFETY: the caller is within a transaction.
        Self(unsafe { pg_sys::GetCurrentSubTransactionId() })
    }
}

/// Registers the hooks until this process ends. Further calls with the same hooks have no effect.
pub fn watch(hooks: &'static Hooks) {
    hooks.watched.call_once(|| {
        let argument: *mut c_void = std::ptr::from_ref(hooks).cast_mut().cast();
        // SAFETY: the argument is valid forever, and is only read.
        unsafe {
            pg_sys::RegisterXactCallback(Some(on_transaction), argument);
            if hooks.subtransaction_aborted.is_some() {
                pg_sys::RegisterSubXactCallback(Some(on_subtransaction), argument);
            }
        }
    });
}

/// Raises the server's error for `command` if the transaction is read-only, or if a parallel query is running.
pub fn refuse_change(command: &CStr) {
    // SAFETY: the caller is within a transaction; `command`, a `CStr`, ends with a zero byte.
    unsafe {
        pg_sys::PreventCommandIfReadOnly(command.as_ptr());
        pg_sys::PreventCommandIfParallelMode(command.as_ptr());
    }
}

/// Turns off parallel query for the rest of this transaction, because the transaction needs data that only this process has.
pub fn stay_in_one_process() {
    for setting in [c"max_parallel_workers_per_gather", c"max_parallel_workers"] {
        guc::set_for_transaction(setting, c"0");
    }
}

/// Returns the local id (`lxid`) of the current transaction. The id repeats after 4 billion transactions of this process.
#[inline]
pub fn number() -> u32 {
    // SAFETY: MyProc points to this process's own entry during the life of the process. Only this process changes the number.
    unsafe {
        #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16")))]
        let number = (*pg_sys::MyProc).vxid.lxid;
        #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16"))]
        let number = (*pg_sys::MyProc).lxid;
        number
    }
}

/// Returns the id of the top-level transaction, with its epoch; None if no id is assigned. Also works while the transaction
/// ends.
pub fn xid() -> Option<u64> {
    // SAFETY: reads variables of this process.
    Some(unsafe { pg_sys::GetTopFullTransactionIdIfAny() }.value).filter(|xid| *xid != 0)
}

/// Returns whether this process is a parallel worker, which works for the transaction of its leader.
pub fn is_of_leader() -> bool {
    // SAFETY: reads a variable of this process.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// Returns whether this process takes part in a parallel query, so that it cannot run SQL through SPI.
pub fn is_parallel() -> bool {
    // SAFETY: reads variables of this process.
    unsafe { pg_sys::IsInParallelMode() }
}

/// Returns whether this process is in a transaction.
pub fn is_open() -> bool {
    // SAFETY: reads variables of this process.
    unsafe { pg_sys::IsTransactionState() }
}

/// Returns whether the user has begun a transaction block.
pub fn is_block() -> bool {
    // SAFETY: reads variables of this process.
    unsafe { pg_sys::IsTransactionBlock() }
}

/// Returns whether each statement sees all earlier commits (READ COMMITTED). An UPDATE of a row that another transaction has
/// changed then raises no serialization error.
pub fn sees_new_commits() -> bool {
    // SAFETY: reads variables of this process.
    unsafe { pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ.cast_signed() }
}

/// Raises the server's error within a transaction block, because a rollback could not undo the effect of `function`.
pub fn refuse_block(function: &'static str) {
    let name = CString::new(function).unwrap_or_default();
    // SAFETY: the caller is within a transaction; the name is used for the message only.
    unsafe { pg_sys::PreventInTransactionBlock(true, name.as_ptr()) };
}

/// Makes the changes of this transaction visible to its next command.
pub fn see_own_changes() {
    // SAFETY: the caller is within a transaction.
    unsafe { pg_sys::CommandCounterIncrement() };
}

/// Runs the triggers that wait for the end of the transaction, as SET CONSTRAINTS ALL IMMEDIATE does.
pub fn run_deferred_triggers() {
    let mut statement = pg_sys::ConstraintsSetStmt {
        type_: pg_sys::NodeTag::T_ConstraintsSetStmt,
        constraints: std::ptr::null_mut(),
        deferred: false,
    };
    // SAFETY: the caller is within a transaction; the statement is valid during the call.
    unsafe { pg_sys::AfterTriggerSetState(&raw mut statement) };
}

/// Writes the present time to the WAL, as the time of a subtransaction that is rolled back. PREPARE TRANSACTION writes
/// no time that a standby remembers.
pub fn log_time() {
    // SAFETY: the caller is in a statement of a transaction. The end of the subtransaction does not restore the memory
    // context and the resource owner, so both are restored here.
    unsafe {
        let (context, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        // Without a transaction id, nothing would be written.
        pg_sys::GetCurrentTransactionId();
        pg_sys::RollbackAndReleaseCurrentSubTransaction();
        (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner) = (context, owner);
    }
}

/// Runs `work`, which uses SQL, at the end of a transaction, when no snapshot is active any more. `work` can write even if
/// the user has made the transaction read-only after its own writes.
pub fn with_snapshot<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the caller is within a transaction. After an error, the end of the transaction releases the snapshot and
    // resets the variable.
    let read_only = unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let read_only = pg_sys::XactReadOnly;
        pg_sys::XactReadOnly = false;
        read_only
    };
    let done = guc::without_query_ids(work);
    // SAFETY: pops the snapshot that was pushed above, and restores the variable.
    unsafe {
        pg_sys::XactReadOnly = read_only;
        pg_sys::PopActiveSnapshot();
    }
    done
}

#[pg_guard]
unsafe extern "C-unwind" fn on_transaction(event: pg_sys::XactEvent::Type, hooks: *mut c_void) {
    use pg_sys::XactEvent;
    // SAFETY: `watch` passed this pointer.
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
        // SAFETY: `watch` passed this pointer.
        let hooks = unsafe { &*hooks.cast::<Hooks>() };
        if let Some(aborted) = hooks.subtransaction_aborted {
            aborted(Subtransaction(this));
        }
    }
}
