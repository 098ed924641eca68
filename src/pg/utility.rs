//! The utility hook for COPY FROM, DROP, ALTER SEQUENCE, CREATE TABLE, ALTER TABLE, CREATE and ALTER DOMAIN, CREATE TYPE ... AS RANGE,
//! RESTART IDENTITY, DISCARD and RESET ALL.

use super::per_process::PerProcess;
use super::redirect::is_node;
use super::transaction::{self, Hooks};
use super::{copying, extension, guc, identity, server};
use pgrx::{pg_guard, pg_sys};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

/// True if the innermost utility statement is COPY FROM.
static COPIES_IN: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
static mut PREVIOUS: pg_sys::ProcessUtility_hook_type = None;

/// True if a COPY FROM has planned an expression with COPY variants, and the plan may still be cached. COPY variants are
/// STABLE functions that replace the id functions within COPY FROM.
static PLANNED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// True if the innermost utility statement may be ALTER SEQUENCE.
pub(super) static ALTERS: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
/// OIDs of the sequences that the statement has altered. The list has no names, because a name may belong to another
/// sequence when the statement ends.
static ALTERED: PerProcess<RefCell<Vec<pg_sys::Oid>>> = PerProcess::new(RefCell::new(Vec::new()));

/// True if the innermost utility statement may be a CREATE TABLE or ALTER TABLE whose columns are watched.
pub(super) static CREATES: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
/// True if the innermost utility statement may be ALTER TABLE.
pub(super) static ALTERS_COLUMNS: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
/// Relations and columns that these statements have created or altered. A relation has column number 0. Outer statements come
/// first.
static CHANGED: PerProcess<RefCell<Vec<(Change, pg_sys::Oid, c_int)>>> =
    PerProcess::new(RefCell::new(Vec::new()));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Created,
    Altered,
}

/// True while this extension does what follows a statement of the user.
static FOLLOWS: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
/// The text of a statement that follows a statement of the user. Event triggers see only the user's statement.
static UNSEEN: PerProcess<RefCell<Option<CString>>> = PerProcess::new(RefCell::new(None));

/// True if the innermost utility statement may create or alter a domain, or create a range type.
pub(super) static TYPES: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
/// The types and constraints that these statements have created or altered, each with the catalog that contains it.
static CHANGED_TYPES: PerProcess<RefCell<Vec<(pg_sys::Oid, pg_sys::Oid)>>> =
    PerProcess::new(RefCell::new(Vec::new()));

/// Functions that are called in the session that causes an event. A function for a statement is called after the statement,
/// within the same transaction. A function may run SQL and may fail, unless its description says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Called when CREATE DATABASE has made a database, which does not accept connections yet. The function must not
    /// fail. CREATE DATABASE may still fail.
    pub database_created: fn(u32),
    /// Called before the database with this OID is dropped, when the database has no connections any more. The function
    /// must not fail.
    pub database_dropped: fn(u32),
    /// Called when a sequence is being dropped. A rollback may still undo the drop.
    pub sequence_dropped: fn(pg_sys::Oid),
    /// Called when a default, or a domain if the second argument is true, is being dropped. As `sequence_dropped`.
    pub default_dropped: fn(pg_sys::Oid, bool),
    /// Returns whether dropped sequences and defaults may have left something. Must not fail.
    pub has_dropped: fn() -> bool,
    /// A statement has dropped sequences or defaults.
    pub objects_dropped: fn(),
    /// Called before each call of the server's own `setval`.
    pub setval_called: fn(),
    /// Called before PREPARE TRANSACTION.
    pub preparing: fn(),
    /// ALTER SEQUENCE has run, or ALTER TABLE has altered the sequence of an identity column.
    pub sequence_altered: fn(pg_sys::Oid),
    /// SET LOGGED or SET UNLOGGED has run: for a sequence if the argument is true, otherwise for a table and its sequences.
    pub persistence_set: fn(bool),
    /// TRUNCATE ... RESTART IDENTITY has run.
    pub identities_restarted: fn(),
    /// DISCARD ALL, DISCARD SEQUENCES or RESET ALL has run.
    pub session_discarded: fn(),
    /// Returns whether new tables and columns are watched. Must not fail.
    pub watches_columns: fn() -> bool,
    /// CREATE TABLE has created this relation (column 0), or ADD COLUMN has added this column. An error that an event
    /// trigger caught may already have undone the change.
    pub columns_created: fn(pg_sys::Oid, c_int),
    /// ALTER TABLE has altered this column of the relation.
    pub column_altered: fn(pg_sys::Oid, c_int),
    pub identities: identity::IdentityWatch,
    pub copies: copying::CopyWatch,
}

pub(super) static WATCH: OnceLock<Watch> = OnceLock::new();

/// Resets the flags after an error, because an error skips the end of the hook. When a subtransaction is rolled back, every
/// COPY FROM that still runs has already planned its defaults. ALTER SEQUENCE, CREATE TABLE or a similar statement may still be
/// running, if one of its event triggers has caught the error, so the flags of these statements are then set.
static AFTER_ERRORS: Hooks = Hooks {
    committed: forget_changes,
    ended: || {
        end_after_error();
        forget_changes();
    },
    subtransaction_aborted: Some(|_| {
        end_after_error();
        ALTERS.set(true);
        CREATES.set(true);
        ALTERS_COLUMNS.set(true);
        TYPES.set(true);
    }),
    ..Hooks::none()
};

// This declaration bypasses pg_sys's guard.
unsafe extern "C-unwind" {
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

/// Installs the hook. Call only while the server loads libraries.
pub fn watch(watch: Watch) {
    WATCH.get_or_init(|| watch);
    // SAFETY: hooks are chained in the postmaster, which is single-threaded.
    unsafe {
        PREVIOUS = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(on_utility);
    }
}

/// Returns whether the innermost utility statement is COPY FROM; false if the hook is not installed.
#[inline]
pub fn copies_in() -> bool {
    COPIES_IN.get()
}

/// Records that an expression was planned with COPY variants. Only this COPY FROM may use the plan.
pub fn record_planned() {
    PLANNED.set(true);
}

/// Records a sequence that the statement has altered.
pub(super) fn record_altered(sequence: pg_sys::Oid) {
    if let Ok(mut altered) = ALTERED.try_borrow_mut()
        && !altered.contains(&sequence)
    {
        altered.push(sequence);
    }
}

/// Records a relation (column 0) or a column that the statement has created or altered.
pub(super) fn record_column(change: Change, relation: pg_sys::Oid, column: c_int) {
    if let Ok(mut changed) = CHANGED.try_borrow_mut()
        && changed.last() != Some(&(change, relation, column))
    {
        changed.push((change, relation, column));
    }
}

/// Records a type or a constraint that the statement has created or altered.
pub(super) fn record_type(class: pg_sys::Oid, object: pg_sys::Oid) {
    if let Ok(mut changed) = CHANGED_TYPES.try_borrow_mut()
        && !changed.contains(&(class, object))
    {
        changed.push((class, object));
    }
}

/// Runs this statement by `work`. Event triggers do not see it if it follows a statement of the user. They see statements of code
/// that it runs.
pub fn unseen<T>(statement: &CStr, work: impl FnOnce() -> T) -> T {
    struct Seen;
    impl Drop for Seen {
        fn drop(&mut self) {
            UNSEEN.take();
            // SAFETY: resets a flag of the running event trigger query, if there is one.
            unsafe { pg_sys::EventTriggerUndoInhibitCommandCollection() };
        }
    }
    if !FOLLOWS.get() {
        return work();
    }
    UNSEEN.replace(Some(statement.to_owned()));
    // SAFETY: sets a flag of the running event trigger query, if there is one.
    unsafe { pg_sys::EventTriggerInhibitCommandCollection() };
    // Also after an error, because the session may continue after a rollback to a savepoint.
    let _seen = Seen;
    work()
}

/// Returns whether event triggers do not see a statement with this text.
///
/// # Safety
/// The text is null, or ends with a zero byte.
unsafe fn is_unseen(text: *const c_char) -> bool {
    // SAFETY: the caller passes a valid text.
    let is = |unseen: &CString| !text.is_null() && unsafe { CStr::from_ptr(text) } == unseen.as_c_str();
    FOLLOWS.get() && UNSEEN.try_borrow().is_ok_and(|unseen| unseen.as_ref().is_some_and(is))
}

/// Does what follows a statement of the user.
fn following(work: impl FnOnce()) {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            FOLLOWS.set(self.0);
        }
    }
    let _before = Before(FOLLOWS.replace(true));
    guc::without_query_ids(work);
}

fn forget_changes() {
    ALTERS.set(false);
    ALTERED.take();
    TYPES.set(false);
    CHANGED_TYPES.take();
    CREATES.set(false);
    ALTERS_COLUMNS.set(false);
    CHANGED.take();
    identity::forget();
}

/// Returns whether the columns of a CREATE TABLE or ALTER TABLE are watched. Statements of extension scripts and of
/// `pg_upgrade` are not watched.
fn watches_columns() -> bool {
    // SAFETY: reads a variable of this process.
    let in_script = unsafe { pg_sys::creating_extension };
    !in_script && !server::upgrading() && WATCH.get().is_some_and(|watch| (watch.watches_columns)())
}

fn end_after_error() {
    COPIES_IN.set(false);
    copying::ended();
    forget_planned();
}

/// Discards cached plans of domain checks if they call COPY variants. Other roles could use these plans later, although
/// COPY FROM has checked only the privileges of its own role.
fn forget_planned() {
    if PLANNED.replace(false) {
        // SAFETY: marks the cached constraints of this process as outdated, and reads no catalog.
        unsafe {
            pg_sys::CallSyscacheCallbacks(super::tuple::cache_id(pg_sys::SysCacheIdentifier::CONSTROID), 0);
        }
    }
}

/// Runs a utility statement and then the action that follows it. This function has no pgrx guard and no values to drop, so
/// errors can safely jump over it. The function cannot panic.
unsafe extern "C-unwind" fn on_utility(
    statement: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    is_read_only: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    parameters: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    let outside = (COPIES_IN.get(), ALTERS.get(), CREATES.get(), TYPES.get(), ALTERS_COLUMNS.get());
    // The lists already contain the tables and columns of outer statements.
    let first_changed = CHANGED.try_borrow().map_or(0, |changed| changed.len());
    let first_later = identity::later();
    // SAFETY: the next function is called once, with the server's arguments. The statement is a valid node.
    let (after, persistence) = unsafe {
        let node: *const c_void = (*statement).utilityStmt.cast();
        let copy: *const pg_sys::CopyStmt = node.cast();
        let copies_in = is_node(node, pg_sys::NodeTag::T_CopyStmt) && (*copy).is_from;
        let after = After::of(node);
        let alters = after == After::AlterSequence;
        let is_create = is_node(node, pg_sys::NodeTag::T_CreateStmt);
        let watched = after == After::CreateColumns && watches_columns();
        let types = after == After::ChangeTypes;
        let alters_columns = is_node(node, pg_sys::NodeTag::T_AlterTableStmt);
        if copies_in || alters || watched || is_create || types || alters_columns {
            transaction::watch(&AFTER_ERRORS);
        }
        let persistence = if alters_columns { Persistence::of(node.cast()) } else { Persistence::Stays };
        COPIES_IN.set(copies_in);
        ALTERS.set(alters);
        CREATES.set(watched);
        TYPES.set(types);
        ALTERS_COLUMNS.set(alters_columns);
        if prepares(node) {
            before_prepare();
        }
        let statement = match WATCH.get() {
            Some(watch) if alters_columns => identity::rewritten(statement, &watch.identities),
            Some(watch) if is_create => identity::like(statement, &watch.identities),
            Some(watch) if copies_in => copying::begun(statement, &watch.copies),
            Some(watch) if alters => identity::checked_sequence(statement, &watch.identities),
            _ => statement,
        };
        if is_create && identity::later() > first_later {
            CREATES.set(true);
        }
        let subcommand = pg_sys::ProcessUtilityContext::PROCESS_UTILITY_SUBCOMMAND;
        PREVIOUS.unwrap_or(standard_ProcessUtility)(
            statement,
            query,
            is_read_only,
            if is_unseen(query) { subcommand } else { context },
            parameters,
            environment,
            receiver,
            completion,
        );
        let changes = CHANGED.try_borrow().is_ok_and(|changed| changed.len() > first_changed)
            || identity::later() > first_later;
        (if after == After::CreateColumns && !changes { After::Nothing } else { after }, persistence)
    };
    COPIES_IN.set(outside.0);
    ALTERS.set(outside.1);
    CREATES.set(outside.2);
    TYPES.set(outside.3);
    ALTERS_COLUMNS.set(outside.4);
    forget_planned();
    if after != After::Nothing {
        follow(after, first_changed, first_later);
    }
    if persistence != Persistence::Stays {
        follow_persistence(persistence == Persistence::OfSequence);
    }
    // An identity that is added in place of another one takes over what the other one leaves.
    let is_whole = context != pg_sys::ProcessUtilityContext::PROCESS_UTILITY_SUBCOMMAND;
    if is_whole && identity::later() == 0 && WATCH.get().is_some_and(|watch| (watch.has_dropped)()) {
        follow_drop();
    }
}

/// # Safety
/// The node is valid or null.
unsafe fn prepares(node: *const c_void) -> bool {
    // SAFETY: the caller passes a valid node; its tag names its struct.
    unsafe {
        is_node(node, pg_sys::NodeTag::T_TransactionStmt)
            && (*node.cast::<pg_sys::TransactionStmt>()).kind
                == pg_sys::TransactionStmtKind::TRANS_STMT_PREPARE
    }
}

#[pg_guard]
extern "C-unwind" fn before_prepare() {
    // A transaction that has failed is rolled back instead.
    if let Some(watch) = WATCH.get()
        && transaction::is_open()
    {
        (watch.preparing)();
    }
}

/// What SET LOGGED or SET UNLOGGED changes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
enum Persistence {
    Stays,
    OfTable,
    OfSequence,
}

impl Persistence {
    /// # Safety
    /// The statement is valid.
    unsafe fn of(alter: *const pg_sys::AlterTableStmt) -> Self {
        // SAFETY: the list of a valid statement holds subcommands. It is read without a call of the server.
        unsafe {
            let Some(list) = (*alter).cmds.as_ref() else { return Self::Stays };
            let sets = (0..usize::try_from(list.length).unwrap_or_default()).any(|place| {
                let command: *const pg_sys::AlterTableCmd = (*list.elements.add(place)).ptr_value.cast();
                matches!(
                    (*command).subtype,
                    pg_sys::AlterTableType::AT_SetLogged | pg_sys::AlterTableType::AT_SetUnLogged
                )
            });
            match (*alter).objtype {
                _ if !sets => Self::Stays,
                pg_sys::ObjectType::OBJECT_SEQUENCE => Self::OfSequence,
                _ => Self::OfTable,
            }
        }
    }
}

#[pg_guard]
extern "C-unwind" fn follow_persistence(of_sequence: bool) {
    if let Some(watch) = WATCH.get() {
        transaction::see_own_changes();
        following(|| (watch.persistence_set)(of_sequence));
    }
}

#[pg_guard]
extern "C-unwind" fn follow_drop() {
    // ROLLBACK is a statement, too.
    if let Some(watch) = WATCH.get()
        && transaction::is_open()
    {
        transaction::see_own_changes();
        following(watch.objects_dropped);
    }
}

/// The action that follows a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
enum After {
    Nothing,
    AlterSequence,
    CreateColumns,
    ChangeTypes,
    RestartIdentity,
    Discard,
}

impl After {
    /// # Safety
    /// The pointer is a node or null.
    unsafe fn of(statement: *const c_void) -> Self {
        use pg_sys::{DiscardMode, NodeTag, VariableSetKind};
        if statement.is_null() {
            return Self::Nothing;
        }
        // SAFETY: the tag of a node names its struct.
        unsafe {
            match (*statement.cast::<pg_sys::Node>()).type_ {
                NodeTag::T_AlterSeqStmt => Self::AlterSequence,
                NodeTag::T_CreateStmt | NodeTag::T_AlterTableStmt => Self::CreateColumns,
                NodeTag::T_CreateDomainStmt | NodeTag::T_AlterDomainStmt | NodeTag::T_CreateRangeStmt => {
                    Self::ChangeTypes
                }
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

/// Runs the action under a guard, because the action may panic.
#[pg_guard]
extern "C-unwind" fn follow(after: After, first_changed: usize, first_later: usize) {
    let Some(watch) = WATCH.get() else { return };
    following(|| follow_with(watch, after, first_changed, first_later));
}

fn follow_with(watch: &Watch, after: After, first_changed: usize, first_later: usize) {
    match after {
        After::Nothing => {}
        After::Discard => (watch.session_discarded)(),
        After::RestartIdentity => {
            transaction::see_own_changes();
            (watch.identities_restarted)();
        }
        After::AlterSequence => {
            transaction::see_own_changes();
            ALTERED.take().into_iter().for_each(watch.sequence_altered);
        }
        After::ChangeTypes => {
            transaction::see_own_changes();
            for (class, object) in CHANGED_TYPES.take() {
                extension::record_casts(class, object);
            }
        }
        After::CreateColumns => {
            let mut changed = CHANGED.take();
            let own = changed.split_off(first_changed.min(changed.len()));
            CHANGED.replace(changed);
            transaction::see_own_changes();
            let is_table = |of: &&(Change, pg_sys::Oid, c_int)| of.0 == Change::Created && of.2 == 0;
            let created: Vec<_> = own.iter().filter(is_table).map(|of| of.1).collect();
            identity::follow(first_later, &created, &watch.identities, watch.sequence_altered);
            for (change, relation, column) in own {
                match change {
                    Change::Created => (watch.columns_created)(relation, column),
                    Change::Altered => (watch.column_altered)(relation, column),
                }
            }
        }
    }
}
