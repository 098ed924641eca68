//! Utility statements: which one runs, as what it plans follows other rules than queries; and what is to be done after one.

use super::process::PerProcess;
use super::transaction::{self, Hooks};
use pgrx::{PgList, pg_guard, pg_sys};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Once, OnceLock};

/// Whether the innermost utility statement is COPY FROM.
static COPIES_IN: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
static mut PREVIOUS: pg_sys::ProcessUtility_hook_type = None;

/// Whether a COPY FROM had an expression planned by rules of its own that may still be kept.
static PLANNED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// What is called after statements, within their transaction. May run SQL, and may fail.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// ALTER SEQUENCE, or what ALTER TABLE does to an identity column's; and whether it restarted the sequence.
    pub sequence_altered: fn(pg_sys::Oid, bool),
    /// TRUNCATE ... RESTART IDENTITY.
    pub identities_restarted: fn(),
    /// DISCARD ALL, DISCARD SEQUENCES or RESET ALL.
    pub session_discarded: fn(),
}

static WATCH: OnceLock<Watch> = OnceLock::new();

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

/// Has utility statements watched, and these called. Only while the server loads libraries.
pub fn watch(watch: Watch) {
    WATCH.get_or_init(|| watch);
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
    let after = unsafe {
        let node: *const c_void = (*statement).utilityStmt.cast();
        let copies_in = is_copy_from(node);
        let after = After::of(node);
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
        after
    };
    COPIES_IN.set(outside);
    forget_planned();
    if after != After::Nothing {
        // SAFETY: a node of the server's, which lives as long as its statement, and is what it was found to be.
        unsafe { follow(after) };
    }
}

/// # Safety
/// A node of the server's, or null.
unsafe fn is_copy_from(statement: *const c_void) -> bool {
    // SAFETY: the tag tells which struct the node is.
    unsafe {
        let copy: *const pg_sys::CopyStmt = statement.cast();
        !copy.is_null() && (*copy).type_ == pg_sys::NodeTag::T_CopyStmt && (*copy).is_from
    }
}

/// What is to be followed by something.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
enum After {
    Nothing,
    AlterSequence(*const pg_sys::AlterSeqStmt),
    RestartIdentity,
    Discard,
}

impl After {
    /// # Safety
    /// A node of the server's, or null.
    unsafe fn of(statement: *const c_void) -> Self {
        use pg_sys::{DiscardMode, NodeTag, VariableSetKind};
        if statement.is_null() {
            return Self::Nothing;
        }
        // SAFETY: the tag tells which struct the node is.
        unsafe {
            match (*statement.cast::<pg_sys::Node>()).type_ {
                NodeTag::T_AlterSeqStmt => Self::AlterSequence(statement.cast()),
                NodeTag::T_TruncateStmt if (*statement.cast::<pg_sys::TruncateStmt>()).restart_seqs => {
                    Self::RestartIdentity
                }
                NodeTag::T_DiscardStmt => match (*statement.cast::<pg_sys::DiscardStmt>()).target {
                    DiscardMode::DISCARD_ALL | DiscardMode::DISCARD_SEQUENCES => Self::Discard,
                    _ => Self::Nothing,
                },
                NodeTag::T_VariableSetStmt => match (*statement.cast::<pg_sys::VariableSetStmt>()).kind {
                    VariableSetKind::VAR_RESET_ALL => Self::Discard,
                    _ => Self::Nothing,
                },
                _ => Self::Nothing,
            }
        }
    }
}

/// In a function of its own: this one may panic, and has a guard around it.
///
/// # Safety
/// The statement is one, and there still.
#[pg_guard]
unsafe extern "C-unwind" fn follow(after: After) {
    let Some(watch) = WATCH.get() else { return };
    match after {
        After::Nothing => {}
        After::Discard => (watch.session_discarded)(),
        After::RestartIdentity => {
            transaction::see_own_changes();
            (watch.identities_restarted)();
        }
        After::AlterSequence(statement) => {
            transaction::see_own_changes();
            // SAFETY: as above. The name is looked up as the statement did; none where it was not there either.
            let (sequence, is_restarted) = unsafe { altered(&*statement) };
            if sequence != pg_sys::InvalidOid {
                (watch.sequence_altered)(sequence, is_restarted);
            }
        }
    }
}

/// The sequence that a statement has altered, and whether it restarted it.
///
/// # Safety
/// The statement is valid.
unsafe fn altered(statement: &pg_sys::AlterSeqStmt) -> (pg_sys::Oid, bool) {
    // SAFETY: as above: a name, and a list of options whose names end with a zero byte.
    unsafe {
        let (lock, missing_ok) = (pg_sys::NoLock.cast_signed(), pg_sys::RVROption::RVR_MISSING_OK);
        let sequence = pg_sys::RangeVarGetRelidExtended(
            statement.sequence,
            lock,
            missing_ok,
            None,
            std::ptr::null_mut(),
        );
        let options = PgList::<pg_sys::DefElem>::from_pg(statement.options);
        let is_restarted = options.iter_ptr().any(|option| CStr::from_ptr((*option).defname) == c"restart");
        (sequence, is_restarted)
    }
}
