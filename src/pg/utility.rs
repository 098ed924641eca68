//! Which utility statement runs: what it plans follows other rules than queries.

use super::process::PerProcess;
use super::transaction::{self, Hooks};
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::sync::Once;

/// Whether the innermost utility statement is COPY FROM.
static COPIES_IN: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
static mut PREVIOUS: pg_sys::ProcessUtility_hook_type = None;

/// Whether a COPY FROM had an expression planned by rules of its own that may still be kept.
static PLANNED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// An error takes the way past the hook, and ends a transaction or subtransaction: what goes on after it is in no COPY,
/// or in one that has planned its defaults.
static AFTER_ERRORS: Hooks = Hooks {
    watched: Once::new(),
    before_commit: || {},
    before_prepare: || {},
    committed: || {},
    ended: end_after_error,
    subtransaction_aborted: |_| end_after_error(),
    subtransaction_committed: |_, _| {},
};

// The raw symbol: pg_sys's makes an error report of its own of each error, in which the constraint's name, the position
// and more is missing.
unsafe extern "C-unwind" {
    #[cfg(feature = "pg13")]
    fn standard_ProcessUtility(
        statement: *mut pg_sys::PlannedStmt,
        query: *const c_char,
        context: pg_sys::ProcessUtilityContext::Type,
        parameters: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        receiver: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
    #[cfg(not(feature = "pg13"))]
    fn standard_ProcessUtility(
        statement: *mut pg_sys::PlannedStmt,
        query: *const c_char,
        is_read_only: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        parameters: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        receiver: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

/// Has utility statements watched. Only while the server loads libraries.
pub fn watch() {
    // SAFETY: hooks are chained in the postmaster, which is single-threaded.
    unsafe {
        PREVIOUS = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(on_utility);
    }
}

/// Whether the innermost utility statement is COPY FROM; false where they are not watched.
#[inline]
pub fn copies_in() -> bool {
    COPIES_IN.get()
}

/// Notes that an expression is planned as it must be nowhere but in this COPY FROM.
pub fn note_planned() {
    PLANNED.set(true);
}

fn end_after_error() {
    COPIES_IN.set(false);
    forget_planned();
}

/// Has the checks of domains planned anew: those that were planned in a COPY FROM are kept beyond it, for all roles.
fn forget_planned() {
    if PLANNED.replace(false) {
        // SAFETY: marks what this process keeps of constraints as out of date, without a look at the catalog.
        unsafe {
            pg_sys::CallSyscacheCallbacks(pg_sys::SysCacheIdentifier::CONSTROID.cast_signed(), 0);
        }
    }
}

/// Has no guard around it, and no destructor in it: it cannot panic, and errors of the server pass through it as through
/// a function in C.
unsafe extern "C-unwind" fn on_utility(
    statement: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    #[cfg(not(feature = "pg13"))] is_read_only: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    parameters: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    let outside = COPIES_IN.get();
    // SAFETY: the server's arguments, passed on once, as the server would have. Its statement is a valid node.
    unsafe {
        let copies_in = is_copy_from((*statement).utilityStmt);
        if copies_in {
            transaction::watch(&AFTER_ERRORS);
        }
        COPIES_IN.set(copies_in);
        #[cfg(feature = "pg13")]
        PREVIOUS.unwrap_or(standard_ProcessUtility)(
            statement,
            query,
            context,
            parameters,
            environment,
            receiver,
            completion,
        );
        #[cfg(not(feature = "pg13"))]
        PREVIOUS.unwrap_or(standard_ProcessUtility)(
            statement,
            query,
            is_read_only,
            context,
            parameters,
            environment,
            receiver,
            completion,
        );
    }
    COPIES_IN.set(outside);
    forget_planned();
}

/// # Safety
/// A node of the server's, or null.
unsafe fn is_copy_from(statement: *mut pg_sys::Node) -> bool {
    // SAFETY: the tag tells which struct the node is.
    unsafe {
        let copy: *const pg_sys::CopyStmt = statement.cast::<c_void>().cast();
        !copy.is_null() && (*copy).type_ == pg_sys::NodeTag::T_CopyStmt && (*copy).is_from
    }
}
