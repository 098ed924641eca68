//! The extension and its tables, as the catalog knows them.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{IntoDatum, PgRelation, PgSqlErrorCode, function_name, pg_sys};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::sync::Once;

use super::process::PerProcess;
use super::relation::Relation;
use super::relcache::{self, Listener};
use super::report::raise;
use super::role::{self, Settings};
use super::sequence::plan_anew;

/// A table's oid, which is another one after the extension was dropped and created again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(pg_sys::Oid);

/// What is to be done when the table changes.
type Action = fn();

static SOURCE: PerProcess<Cell<Option<Source>>> = PerProcess::new(Cell::new(None));
/// A table, and the extension that it is of, which stays so.
static EXTENSION: PerProcess<Cell<Option<(Source, pg_sys::Oid)>>> = PerProcess::new(Cell::new(None));
static ON_CHANGE: PerProcess<Cell<Option<Action>>> = PerProcess::new(Cell::new(None));

impl Source {
    /// The table of tags of this database; None where the extension is not, or no more. Looked up once, and again when
    /// the table was changed or dropped.
    pub fn find() -> Option<Self> {
        watch();
        if SOURCE.get().is_none() {
            SOURCE.set(Self::look_up(c"segment"));
        }
        SOURCE.get()
    }

    /// The table of worker ids of this database; None where the extension is not. Only within a transaction.
    pub fn registry() -> Option<Self> {
        Self::look_up(c"worker_lease")
    }

    /// One of the extension's tables in this database. Only within a transaction.
    pub fn look_up(name: &CStr) -> Option<Self> {
        // SAFETY: within a transaction, as the callers are; the names are constants.
        let table = unsafe {
            let schema = pg_sys::get_namespace_oid(c"snowflake_ids".as_ptr(), true);
            if schema == pg_sys::InvalidOid {
                return None;
            }
            pg_sys::get_relname_relid(name.as_ptr(), schema)
        };
        (table != pg_sys::InvalidOid).then_some(Self(table))
    }

    /// The table of this oid, which is known to be one.
    pub fn of(table: pg_sys::Oid) -> Self {
        Self(table)
    }

    /// Whether it is still there.
    pub fn is_there(self) -> bool {
        // SAFETY: within a transaction; the row is only looked for.
        unsafe { pg_sys::get_rel_namespace(self.0) != pg_sys::InvalidOid }
    }

    /// Whether this transaction has created it. Only within a transaction. Waits for no other one: what this one has created
    /// no other has locked.
    pub fn is_new(self) -> bool {
        let mode = pg_sys::AccessShareLock.cast_signed();
        // SAFETY: as above; the table is open while its entry is read.
        unsafe {
            if !pg_sys::ConditionalLockRelationOid(self.0, mode) {
                return false;
            }
            let is_new = PgRelation::with_lock(self.0, mode).rd_createSubid != 0;
            pg_sys::UnlockRelationOid(self.0, mode);
            is_new
        }
    }

    /// The oid in `pg_class`.
    pub fn oid(self) -> pg_sys::Oid {
        self.0
    }

    /// Has all sessions find it anew once the transaction commits, with what they know of its tags.
    pub fn announce(self) {
        // SAFETY: within a transaction.
        unsafe { pg_sys::CacheInvalidateRelcacheByRelid(self.0) };
    }

    /// As a plain number.
    pub fn number(self) -> u32 {
        self.0.to_u32()
    }

    /// Its owner, as far as this session was told. Only within a transaction. Fails where the table is no more.
    pub fn owner(self) -> pg_sys::Oid {
        // The catalog's row says it. To open the table for it would cost ten times as much, at each number of a series.
        Relation::find(self.0).map_or_else(|| raise(no_extension()), |table| table.owner())
    }

    /// Runs `work` with the rights of the table's owner, and no more (see [`role::with_rights`]): who may use a tag need not be
    /// allowed to see the table, and triggers of its owner must not run with a worker's.
    pub fn as_owner<T>(self, work: impl FnOnce() -> T) -> T {
        self.keep();
        role::with_rights(self.owner(), false, Settings::Stay, work)
    }

    /// The same for SQL of our own in which every name is qualified, operators included: nothing needs to be found by a
    /// `search_path`, and setting one costs as much as a small statement.
    pub fn as_owner_qualified<T>(self, work: impl FnOnce() -> T) -> T {
        self.keep();
        role::with_rights_for_qualified(self.owner(), work)
    }

    /// Keeps it, with the extension that it is of, from being dropped until the transaction ends. Else a statement that waits for a
    /// lock may wait for that, and what it names may be somebody's own by then, whose code would run with the rights of the former owner.
    fn keep(self) {
        let known = EXTENSION.get().filter(|(table, _)| *table == self);
        let extension = known.map_or_else(
            // SAFETY: within a transaction, as the callers are.
            || unsafe { pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, self.0) },
            |(_, extension)| extension,
        );
        // A table of nobody's extension is its owner's, with whose rights it is used.
        if extension != pg_sys::InvalidOid {
            EXTENSION.set(Some((self, extension)));
            lock(extension);
        }
    }
}

/// Why a call can't go on whose extension was dropped while it waited.
#[cold]
fn no_extension() -> ErrorReport {
    let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
    ErrorReport::new(code, "extension \"snowflake_ids\" does not exist any more", function_name!())
        .set_detail("It was dropped from this database while the call waited.")
        .set_hint("Run CREATE EXTENSION snowflake_ids.")
}

/// Keeps an extension from being dropped until the transaction ends: a drop locks it before all that it has.
fn lock(extension: pg_sys::Oid) {
    let mode = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: within a transaction; the lock is of a number, whatever that is.
    unsafe { pg_sys::LockDatabaseObject(pg_sys::ExtensionRelationId, extension, 0, mode) };
}

/// Keeps this extension from being dropped until the transaction ends. Whether it is there. Only within a transaction.
pub fn keep_extension() -> bool {
    let find = || {
        // SAFETY: as above; the name is a constant.
        let extension = unsafe { pg_sys::get_extension_oid(c"snowflake_ids".as_ptr(), true) };
        (extension != pg_sys::InvalidOid).then_some(extension)
    };
    let Some(extension) = find() else { return false };
    lock(extension);
    // It may have been dropped while its lock was waited for, and created anew.
    find() == Some(extension)
}

/// The oid of the extension in this database: the lower, the earlier it was created. None where it is not, or has no
/// table of worker ids. Only within a transaction.
pub fn extension() -> Option<u32> {
    // SAFETY: as above.
    let extension = unsafe { pg_sys::get_extension_oid(c"snowflake_ids".as_ptr(), true) };
    (extension != pg_sys::InvalidOid && Source::registry().is_some()).then_some(extension.to_u32())
}

/// The function of this signature, all names in it qualified, if it belongs to an extension. Only within a transaction.
pub fn function_of(extension: &CStr, signature: &str) -> Option<pg_sys::Oid> {
    // SAFETY: within a transaction; the function takes a text, and gives an oid or null.
    let found: Option<pg_sys::Oid> =
        unsafe { pgrx::direct_function_call(pg_sys::to_regprocedure, &[signature.into_datum()]) };
    found.filter(|function| is_of(extension, pg_sys::ProcedureRelationId, *function))
}

/// Whether a table belongs to an extension: else a user could have made one of its name. Only within a transaction.
pub fn is_table_of(extension: &CStr, table: pg_sys::Oid) -> bool {
    is_of(extension, pg_sys::RelationRelationId, table)
}

fn is_of(extension: &CStr, class: pg_sys::Oid, object: pg_sys::Oid) -> bool {
    // SAFETY: within a transaction; the name is a C string.
    let (owner, extension) = unsafe {
        (pg_sys::getExtensionOfObject(class, object), pg_sys::get_extension_oid(extension.as_ptr(), true))
    };
    extension != pg_sys::InvalidOid && owner == extension
}

/// The function of this name and arguments in the schema of another one. Only within a transaction.
pub fn function_beside(other: pg_sys::Oid, name: &CStr, arguments: &[pg_sys::Oid]) -> Option<pg_sys::Oid> {
    let count = i32::try_from(arguments.len()).unwrap_or_default();
    // SAFETY: as above. Lives as long as the memory that the caller works in.
    let function = unsafe {
        let schema = pg_sys::get_func_namespace(other);
        let arguments = pg_sys::buildoidvector(arguments.as_ptr(), count);
        pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP.cast_signed(),
            pg_sys::Anum_pg_proc_oid.cast_signed().try_into().unwrap_or_default(),
            pg_sys::Datum::from(name.as_ptr()),
            pg_sys::Datum::from(arguments),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::null(),
        )
    };
    (function != pg_sys::InvalidOid).then_some(function)
}

/// Whether there is a table of this name in `pg_catalog`. Only within a transaction.
pub fn has_system_table(name: &CStr) -> bool {
    // SAFETY: as above; the name is a C string.
    let table =
        unsafe { pg_sys::get_relname_relid(name.as_ptr(), pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE)) };
    table != pg_sys::InvalidOid
}

/// Whether a role is a superuser. Only within a transaction.
pub fn is_superuser(role: pg_sys::Oid) -> bool {
    // SAFETY: as above.
    unsafe { pg_sys::superuser_arg(role) }
}

/// Takes in what other transactions have changed since the statement began. Only within a transaction.
pub fn take_in_changes() {
    // SAFETY: as above; the server does so itself at each new lock.
    unsafe { pg_sys::AcceptInvalidationMessages() };
}

/// A table that is watched; and what is called, in each process, whenever it was changed or dropped. That must not fail, and calls
/// nothing of the server's. All statements are planned anew then: what was found in the table may be in a plan, as a constant.
pub struct Watch {
    table: PerProcess<Cell<pg_sys::Oid>>,
    action: Action,
    once: Once,
}

impl Watch {
    /// Nothing is watched yet.
    pub const fn new(action: Action) -> Self {
        Self { table: PerProcess::new(Cell::new(pg_sys::InvalidOid)), action, once: Once::new() }
    }

    /// Watches this table from now on, and no other.
    pub fn begin(&'static self, table: Source) {
        self.table.set(table.oid());
        self.once.call_once(|| relcache::listen(self));
    }
}

impl Listener for Watch {
    fn changed(&self, relation: pg_sys::Oid) {
        if relation == pg_sys::InvalidOid || self.table.get() == relation {
            (self.action)();
            plan_anew();
        }
    }
}

/// The name of a function; None where there is none. Only within a transaction.
pub fn function_name(function: pg_sys::Oid) -> Option<CString> {
    // SAFETY: as above; null, or a copy that belongs to the transaction's memory.
    let name = unsafe { pg_sys::get_func_name(function) };
    // SAFETY: as above; a name ends with a zero byte.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_owned())
}

/// Has `action` called whenever the table was changed or dropped.
pub fn on_change(action: Action) {
    ON_CHANGE.set(Some(action));
}

fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| relcache::listen(&changed));
}

fn changed(relation: pg_sys::Oid) {
    if relation == pg_sys::InvalidOid || SOURCE.get() == Some(Source(relation)) {
        SOURCE.set(None);
        if let Some(action) = ON_CHANGE.get() {
            action();
        }
    }
}
