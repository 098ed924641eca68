//! The extension's tables in the catalog, and the only functions that open them.

use super::error::ServerError;
use super::extension;
use super::per_process::PerProcess;
use super::read_lock::{Lock, Wait};
use super::relation::Relation;
use super::relcache;
use super::report::raise;
use super::role::{self, RoleSettings};
use super::sequence;
use super::tuple::{cache_id, cached};
use pgrx::pg_sys::SysCacheIdentifier::TYPEOID;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{check_for_interrupts, pg_guard, pg_sys};
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};
use std::ptr::null_mut;
use std::sync::Once;

/// The OID of one of the extension's tables. A table gets another OID if the extension is dropped and created again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(pg_sys::Oid);

/// An action that runs when a table has changed. The action must not fail, and must not cause a read of a catalog.
type OnChange = fn();

/// The highest number of columns that the extension reads from one table.
const MOST_COLUMNS: usize = 14;

/// The tables that this process has looked up.
static TABLES: PerProcess<RefCell<Vec<&'static Table>>> = PerProcess::new(RefCell::new(Vec::new()));

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Boolean,
    /// The type `"char"`.
    Letter,
    Integer,
    Bigint,
    Text,
    Name,
    /// An OID, or a type that is stored as an OID.
    Oid,
}

impl Type {
    fn is(self, of: pg_sys::Oid) -> bool {
        match self {
            Self::Boolean => of == pg_sys::BOOLOID,
            Self::Letter => of == pg_sys::CHAROID,
            Self::Integer => of == pg_sys::INT4OID,
            Self::Bigint => of == pg_sys::INT8OID,
            Self::Text => of == pg_sys::TEXTOID,
            Self::Name => of == pg_sys::NAMEOID,
            Self::Oid => [pg_sys::OIDOID, pg_sys::REGROLEOID, pg_sys::REGCLASSOID].contains(&of),
        }
    }
}

/// A table of the extension, with the columns that are read without SQL. A role may drop the extension during a statement,
/// and create another table under the same name. [`Table::find`] and [`Table::open`] detect such a table.
pub struct Table {
    name: &'static CStr,
    columns: &'static [(&'static CStr, Type)],
    /// The found table. Cleared when the relcache entry of the table changes.
    found: PerProcess<Cell<Option<FoundTable>>>,
    /// The attribute numbers of the columns, after their types were checked.
    numbers: PerProcess<Cell<Option<[i16; MOST_COLUMNS]>>>,
    on_change: PerProcess<Cell<Option<OnChange>>>,
    watched: Once,
}

/// A table that was looked up.
#[derive(Clone, Copy, Debug)]
struct FoundTable {
    table: Source,
    extension: pg_sys::Oid,
    /// The hash by which the syscache names the table's row type in messages.
    announcement: u32,
}

/// The reason why a table of the extension cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The extension has no such table. A table of this name may exist outside the extension.
    NoTable,
    /// The lock was not available in time. If the call waited, the transaction must be rolled back.
    Locked,
}

/// An open table of the extension, locked for reading. After an error, the server closes the table when the transaction ends.
pub struct Open {
    table: &'static Table,
    numbers: [i16; MOST_COLUMNS],
    /// The relation, which is open as long as `self` exists.
    pub(super) relation: pg_sys::Relation,
    lock: Lock,
}

impl Table {
    /// Declares a table in the extension's schema, and the columns to be read.
    pub const fn new(name: &'static CStr, columns: &'static [(&'static CStr, Type)]) -> Self {
        assert!(columns.len() <= MOST_COLUMNS, "MOST_COLUMNS is too small");
        Self {
            name,
            columns,
            found: PerProcess::new(Cell::new(None)),
            numbers: PerProcess::new(Cell::new(None)),
            on_change: PerProcess::new(Cell::new(None)),
            watched: Once::new(),
        }
    }

    /// Returns the table in this database; None if the extension has no such table. Call only within a transaction.
    pub fn find(&'static self) -> Option<Source> {
        self.watched.call_once(|| self.watch());
        if self.found.get().is_none() {
            self.found.set(self.look_up());
        }
        self.found.get().map(|found| found.table)
    }

    fn watch(&'static self) {
        static ONCE: Once = Once::new();
        TABLES.borrow_mut().push(self);
        ONCE.call_once(|| {
            relcache::listen(changed);
            // SAFETY: the callback is registered once in the life of the process.
            unsafe { pg_sys::CacheRegisterSyscacheCallback(cache_id(TYPEOID), Some(announced), 0.into()) };
        });
    }

    /// Opens the table and locks it for reading. The lock keeps other sessions from dropping the extension. This session
    /// itself may drop the extension, so each call checks that the found table still exists under this OID. Throws 55000 if
    /// a column is missing or has another type.
    pub fn open(&'static self, wait: Wait) -> Result<Open, Unseen> {
        loop {
            let table = self.find().ok_or(Unseen::NoTable)?;
            let lock = Lock::take(table.0, wait).ok_or(Unseen::Locked)?;
            // The server processed invalidation messages when it granted the lock. After a drop, these messages clear `found`.
            if self.found.get().is_some_and(|found| found.table == table) {
                // SAFETY: the lock is held; the function returns null if the table is gone.
                let relation = unsafe { pg_sys::try_relation_open(table.0, pg_sys::NoLock.cast_signed()) };
                if !relation.is_null() {
                    // SAFETY: the relation is open.
                    let numbers = unsafe { self.compare(relation) };
                    return Ok(Open { table: self, numbers, relation, lock });
                }
                self.found.set(None);
            }
            lock.release();
            check_for_interrupts!();
        }
    }

    /// Sets the action that this process runs whenever the table has changed or was dropped.
    pub fn on_change(&self, action: OnChange) {
        self.on_change.set(Some(action));
    }

    /// Refuses PREPARE TRANSACTION after a change of what the table says, because the session that runs COMMIT PREPARED runs no
    /// hooks of this session. Allows it if this transaction has created the table: no other session then remembers any of it.
    pub fn refuse_to_prepare(&'static self, error: impl Into<ErrorReport>) {
        if !self.find().is_some_and(Source::is_new) {
            raise(error);
        }
    }

    fn look_up(&self) -> Option<FoundTable> {
        // SAFETY: the callers are within a transaction; the names are constants.
        let (table, announcement) = unsafe {
            let schema = pg_sys::get_namespace_oid(c"snowflake_ids".as_ptr(), true);
            if schema == pg_sys::InvalidOid {
                return None;
            }
            let table = pg_sys::get_relname_relid(self.name.as_ptr(), schema);
            if table == pg_sys::InvalidOid {
                return None;
            }
            let (row_type, unused) = (pg_sys::get_rel_type_id(table), pg_sys::Datum::from(0));
            (table, pg_sys::GetSysCacheHashValue(cache_id(TYPEOID), row_type.into(), unused, unused, unused))
        };
        let extension = extension::of_member(pg_sys::RelationRelationId, table)?;
        Some(FoundTable { table: Source(table), extension, announcement })
    }

    fn changed(&self, relation: pg_sys::Oid) {
        let is_it = |found: FoundTable| found.table.0 == relation;
        if relation == pg_sys::InvalidOid || self.found.get().is_some_and(is_it) {
            self.found.set(None);
            self.numbers.set(None);
            if let Some(action) = self.on_change.get() {
                action();
            }
        }
    }

    /// Returns the attribute numbers of the columns. Once for each relcache entry, checks that the relation is an ordinary
    /// table and that the columns have the declared types.
    ///
    /// # Safety
    /// The relation is open.
    unsafe fn compare(&self, relation: pg_sys::Relation) -> [i16; MOST_COLUMNS] {
        self.numbers.get().unwrap_or_else(|| {
            // SAFETY: the caller has opened the relation.
            if unsafe { (*(*relation).rd_rel).relkind }.to_ne_bytes() != [pg_sys::RELKIND_RELATION] {
                raise(self.unlike(None));
            }
            let mut numbers = [0; MOST_COLUMNS];
            for (number, (name, of)) in numbers.iter_mut().zip(self.columns) {
                // SAFETY: the caller has opened the relation; the name ends with a zero byte.
                *number = unsafe {
                    let number = pg_sys::get_attnum((*relation).rd_id, name.as_ptr());
                    let kind = pg_sys::get_atttype((*relation).rd_id, number);
                    if number <= 0 || !of.is(kind) {
                        raise(self.unlike(Some(name)));
                    }
                    number
                };
            }
            self.numbers.set(Some(numbers));
            numbers
        })
    }

    #[cold]
    fn unlike(&self, column: Option<&CStr>) -> ServerError {
        let shown = |name: &CStr| name.to_string_lossy().into_owned();
        ServerError::OtherTable { table: shown(self.name), column: column.map(shown) }
    }
}

impl Open {
    /// Returns the attribute number of a column. Raises an error if the column was declared with another type.
    pub(super) fn number(&self, column: &CStr, of: Type) -> i16 {
        let mut columns = self.table.columns.iter().zip(self.numbers);
        match columns.find(|((name, _), _)| *name == column) {
            Some(((_, declared), number)) if *declared == of => number,
            _ => raise(self.table.unlike(Some(column))),
        }
    }

    /// Returns the OID of the table.
    pub fn source(&self) -> Source {
        // SAFETY: the relation is open.
        Source(unsafe { (*self.relation).rd_id })
    }

    /// Closes the table and releases the lock now, because the caller's transaction may last long.
    pub fn close(self) {
        // SAFETY: `open` has opened the relation. `close` consumes `self`, so the relation is closed only once.
        unsafe { pg_sys::relation_close(self.relation, pg_sys::NoLock.cast_signed()) };
        self.lock.release();
    }
}

impl Source {
    /// Returns whether the table still exists.
    pub fn is_there(self) -> bool {
        // SAFETY: the caller is within a transaction; the function only reads the catalog.
        unsafe { pg_sys::get_rel_namespace(self.0) != pg_sys::InvalidOid }
    }

    /// Returns whether this transaction has created the table. Never waits: no other session can have locked a table that
    /// this transaction has created. Call only within a transaction.
    pub fn is_new(self) -> bool {
        let Some(lock) = Lock::take(self.0, Wait::No) else { return false };
        let is_new = sequence::is_new(self.0);
        lock.release();
        is_new
    }

    /// Returns the OID of the table in `pg_class`.
    pub fn oid(self) -> pg_sys::Oid {
        self.0
    }

    /// Makes all sessions discard their cached data about the table when the transaction commits. The message names the row
    /// type of the table. A session that has the table open rebuilds its relcache entry for each message about the table
    /// itself. While it rebuilds, it receives the next message, and so on until its stack ends.
    pub fn announce(self) {
        // SAFETY: the caller is within a transaction. The row belongs to the opened catalog.
        unsafe {
            let catalog = pg_sys::table_open(pg_sys::TypeRelationId, pg_sys::AccessShareLock.cast_signed());
            cached(TYPEOID, pg_sys::get_rel_type_id(self.0), |row| {
                pg_sys::CacheInvalidateHeapTuple(catalog, row, null_mut());
            });
            // Makes this session receive the message at the end of the command, too, even if the command changed no catalog.
            pg_sys::GetCurrentCommandId(true);
            pg_sys::table_close(catalog, pg_sys::AccessShareLock.cast_signed());
        }
    }

    /// Returns the OID as a `u32`.
    pub fn number(self) -> u32 {
        self.0.to_u32()
    }

    /// Returns the owner of the table. Fails if the table is gone. Call only within a transaction.
    pub fn owner(self) -> pg_sys::Oid {
        // The syscache is ten times cheaper than opening the table, and monotonic series need the owner for each number.
        Relation::find(self.0).map_or_else(|| raise(ServerError::Dropped), |table| table.owner())
    }

    /// Runs `work` with only the rights of the table's owner (see [`role::with_rights`]). A session that takes ids therefore
    /// needs no privilege on the table. A background worker is a superuser, but the owner's triggers do not get the worker's
    /// rights.
    pub fn as_owner<T>(self, work: impl FnOnce() -> T) -> T {
        self.keep();
        role::with_rights(self.owner(), false, RoleSettings::Stay, work)
    }

    /// Does the same as [`Self::as_owner`], and locks the table for writing. Returns None if a lock is not available without
    /// a wait, or if the table does not belong to the extension.
    pub fn as_owner_at_once<T>(self, work: impl FnOnce() -> T) -> Option<T> {
        let found = self.extension()?;
        let mode = pg_sys::RowExclusiveLock.cast_signed();
        // SAFETY: the caller is within a transaction; any OID can be locked.
        let has_locks = extension::lock_at_once(found)
            && unsafe { pg_sys::ConditionalLockRelationOid(self.0, mode) }
            && self.extension() == Some(found);
        has_locks.then(|| role::with_rights(self.owner(), false, RoleSettings::Stay, work))
    }

    /// Does the same as [`Self::as_owner`] for SQL in which every name and operator is schema-qualified. Leaves
    /// `search_path` unchanged, because changing it costs as much as a small statement.
    pub fn as_owner_qualified<T>(self, work: impl FnOnce() -> T) -> T {
        self.keep();
        role::with_rights_for_qualified(self.owner(), work)
    }

    /// Keeps other sessions from dropping the extension until the transaction ends. Fails if the table does not belong
    /// to the extension. Without this lock, another role could drop the extension while a statement waits, and create
    /// objects under the same names. The code of these objects would run with the rights of the old table's owner.
    fn keep(self) {
        let found = self.extension().unwrap_or_else(|| raise(ServerError::Dropped));
        extension::lock(found);
        // The server processed pending invalidation messages when it granted the lock, so a drop is known now.
        if self.extension() != Some(found) {
            raise(ServerError::Dropped);
        }
    }

    /// Returns the extension if the table belongs to it.
    fn extension(self) -> Option<pg_sys::Oid> {
        let known =
            TABLES.borrow().iter().filter_map(|table| table.found.get()).find(|found| found.table == self);
        known
            .map(|found| found.extension)
            .or_else(|| extension::of_member(pg_sys::RelationRelationId, self.0))
    }
}

/// Tells all tables in [`TABLES`] that a relation was changed or dropped. An invalid OID means every relation.
fn changed(relation: pg_sys::Oid) {
    for table in TABLES.borrow().iter() {
        table.changed(relation);
    }
}

/// Passes on the message of [`Source::announce`]. A zero hash stands for all tables.
#[pg_guard]
unsafe extern "C-unwind" fn announced(_argument: pg_sys::Datum, _cache: i32, hash: u32) {
    let is_it = |found: &FoundTable| hash == 0 || found.announcement == hash;
    let tables: Vec<_> = TABLES.borrow().iter().filter_map(|table| table.found.get()).filter(is_it).collect();
    for found in tables {
        relcache::tell(found.table.0);
    }
}

/// Returns whether `pg_catalog` has a table of this name. Call only within a transaction.
pub fn has_system_table(name: &CStr) -> bool {
    // SAFETY: the caller is within a transaction; the name is a C string.
    let table =
        unsafe { pg_sys::get_relname_relid(name.as_ptr(), pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE)) };
    table != pg_sys::InvalidOid
}

/// Returns whether a role is a superuser. Call only within a transaction.
pub fn is_superuser(role: pg_sys::Oid) -> bool {
    // SAFETY: the caller is within a transaction.
    unsafe { pg_sys::superuser_arg(role) }
}

/// Processes the pending invalidation messages of committed transactions. Call only within a transaction.
pub fn take_in_changes() {
    // SAFETY: the caller is within a transaction; the server itself calls this function for each new lock.
    unsafe { pg_sys::AcceptInvalidationMessages() };
}

/// Returns the name of a function, or None if the function does not exist. Call only within a transaction.
pub fn function_name(function: pg_sys::Oid) -> Option<CString> {
    // SAFETY: the caller is within a transaction; the result is null, or a copy in the current memory context.
    let name = unsafe { pg_sys::get_func_name(function) };
    // SAFETY: a name ends with a zero byte.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_owned())
}
