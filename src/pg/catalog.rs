//! The tables of the extension, as the catalog knows them, and the one way to open them.

use super::extension;
use super::process::PerProcess;
use super::read_lock::{Lock, Wait};
use super::relation::Relation;
use super::relcache;
use super::report::{not_ready, raise};
use super::role::{self, RoleSettings};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgRelation, check_for_interrupts, pg_sys};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::sync::Once;

/// The oid of a table of the extension, which is another one after the extension was dropped and created again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(pg_sys::Oid);

/// An action for a change of a table. Must not fail, and calls nothing of the server that may look at a catalog.
type OnChange = fn();

/// The most columns that are read of one table.
const MOST_COLUMNS: usize = 14;
/// The number of a column that an earlier version has not.
const MISSING: i16 = 0;
/// More tables than there are.
const MOST_TABLES: usize = 16;

/// The tables that this process has looked for.
static TABLES: PerProcess<Cell<[Option<&'static Table>; MOST_TABLES]>> =
    PerProcess::new(Cell::new([None; MOST_TABLES]));

/// The type of a column that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Boolean,
    Integer,
    Bigint,
    Text,
    Name,
    /// An oid, or one of the types that are stored as one.
    Oid,
}

impl Type {
    fn is(self, of: pg_sys::Oid) -> bool {
        match self {
            Self::Boolean => of == pg_sys::BOOLOID,
            Self::Integer => of == pg_sys::INT4OID,
            Self::Bigint => of == pg_sys::INT8OID,
            Self::Text => of == pg_sys::TEXTOID,
            Self::Name => of == pg_sys::NAMEOID,
            Self::Oid => [pg_sys::OIDOID, pg_sys::REGROLEOID, pg_sys::REGCLASSOID].contains(&of),
        }
    }
}

/// A table of the extension, with the columns that are read without SQL. [`Table::find`] and [`Table::open`] are the only ways to
/// one: a role that may create objects can drop the extension in the middle of a statement, and plant a table under its name.
pub struct Table {
    name: &'static CStr,
    columns: &'static [(&'static CStr, Type)],
    /// Columns that the table has not as long as its extension is of an earlier version.
    later: &'static [(&'static CStr, Type)],
    /// The relation that was found to be it, and the extension, until its relcache entry changes.
    found: PerProcess<Cell<Option<(Source, pg_sys::Oid)>>>,
    /// The numbers of the columns in it, once their types were compared.
    numbers: PerProcess<Cell<Option<[i16; MOST_COLUMNS]>>>,
    on_change: PerProcess<Cell<Option<OnChange>>>,
    watched: Once,
}

/// Reason why a table of the extension cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The extension has no such table: it was dropped, and what may be there under the name is another's.
    NoTable,
    /// It was locked for longer than it was to be waited for. After a wait the transaction can only be rolled back.
    Locked,
}

/// A table of the extension that is open and locked for reading. Errors leave both to the end of the transaction.
pub struct Open {
    table: &'static Table,
    numbers: [i16; MOST_COLUMNS],
    relation: pg_sys::Relation,
    lock: Lock,
}

impl Table {
    /// A table of this name in the extension's schema, and the columns that are read.
    pub const fn new(name: &'static CStr, columns: &'static [(&'static CStr, Type)]) -> Self {
        Self::with_later(name, columns, &[])
    }

    /// The same, with columns that may be missing.
    pub const fn with_later(
        name: &'static CStr,
        columns: &'static [(&'static CStr, Type)],
        later: &'static [(&'static CStr, Type)],
    ) -> Self {
        assert!(columns.len() + later.len() <= MOST_COLUMNS, "MOST_COLUMNS is too small");
        Self {
            name,
            columns,
            later,
            found: PerProcess::new(Cell::new(None)),
            numbers: PerProcess::new(Cell::new(None)),
            on_change: PerProcess::new(Cell::new(None)),
            watched: Once::new(),
        }
    }

    /// The table in this database; None where the extension has none of this name. Only within a transaction.
    pub fn find(&'static self) -> Option<Source> {
        self.watched.call_once(|| self.watch());
        if self.found.get().is_none() {
            let extension = |table: &Source| extension::of_member(pg_sys::RelationRelationId, table.0);
            self.found.set(self.look_up().and_then(|table| Some((table, extension(&table)?))));
        }
        self.found.get().map(|(table, _)| table)
    }

    fn watch(&'static self) {
        static ONCE: Once = Once::new();
        let mut tables = TABLES.get();
        let Some(place) = tables.iter_mut().find(|place| place.is_none()) else {
            unreachable!("there is a place for each")
        };
        *place = Some(self);
        TABLES.set(tables);
        ONCE.call_once(|| relcache::listen(changed));
    }

    /// Opens the table, and locks it for reading, which keeps other sessions from dropping the extension; this session may drop it, so each
    /// open looks whether the relation is the one that was found. 55000 is thrown where a column is missing or has another type.
    pub fn open(&'static self, wait: Wait) -> Result<Open, Unseen> {
        loop {
            let table = self.find().ok_or(Unseen::NoTable)?;
            let lock = Lock::take(table.0, wait).ok_or(Unseen::Locked)?;
            // The lock has told what changed until then.
            if self.found.get().is_some_and(|(found, _)| found == table) {
                // SAFETY: the lock is there already; null where the table is not.
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

    /// Has `action` called in this process whenever the table was changed or dropped.
    pub fn on_change(&self, action: OnChange) {
        self.on_change.set(Some(action));
    }

    fn look_up(&self) -> Option<Source> {
        // SAFETY: within a transaction, as the callers are; the names are constants.
        let table = unsafe {
            let schema = pg_sys::get_namespace_oid(c"snowflake_ids".as_ptr(), true);
            if schema == pg_sys::InvalidOid {
                return None;
            }
            pg_sys::get_relname_relid(self.name.as_ptr(), schema)
        };
        (table != pg_sys::InvalidOid).then_some(Source(table))
    }

    fn changed(&self, relation: pg_sys::Oid) {
        let is_it = |(table, _): (Source, pg_sys::Oid)| table.0 == relation;
        if relation == pg_sys::InvalidOid || self.found.get().is_some_and(is_it) {
            self.found.set(None);
            self.numbers.set(None);
            if let Some(action) = self.on_change.get() {
                action();
            }
        }
    }

    /// The numbers of the columns, whose types are compared once for each relcache entry, as is that it has rows: a view has none.
    ///
    /// # Safety
    /// The relation is open.
    unsafe fn compare(&self, relation: pg_sys::Relation) -> [i16; MOST_COLUMNS] {
        self.numbers.get().unwrap_or_else(|| {
            // SAFETY: as above.
            if unsafe { (*(*relation).rd_rel).relkind }.to_ne_bytes() != [pg_sys::RELKIND_RELATION] {
                raise(self.unlike("It is not an ordinary table."));
            }
            let mut numbers = [0; MOST_COLUMNS];
            let columns = self.columns.iter().chain(self.later).enumerate();
            for (number, (place, (name, of))) in numbers.iter_mut().zip(columns) {
                // SAFETY: as above; the name ends with a zero byte. The descriptor has a column for each number.
                *number = unsafe {
                    let number = pg_sys::get_attnum((*relation).rd_id, name.as_ptr());
                    let kind = pg_sys::get_atttype((*relation).rd_id, number);
                    if number <= 0 && place >= self.columns.len() {
                        MISSING
                    } else if number <= 0 || !of.is(kind) {
                        raise(self.without(name));
                    } else {
                        number
                    }
                };
            }
            self.numbers.set(Some(numbers));
            numbers
        })
    }

    #[cold]
    fn without(&self, column: &CStr) -> ErrorReport {
        let column = column.to_string_lossy();
        self.unlike(&format!("Column \"{column}\" is missing, or has another type."))
    }

    #[cold]
    fn unlike(&self, detail: &str) -> ErrorReport {
        let table = self.name.to_string_lossy();
        not_ready(
            format!("table \"snowflake_ids.{table}\" is not as extension \"snowflake_ids\" makes it"),
            detail,
            "Undo what was altered, or create the extension anew.",
        )
    }
}

impl Open {
    /// The relation, which stays open as long as this is.
    pub(super) fn relation(&self) -> pg_sys::Relation {
        self.relation
    }

    /// The number of a column of this type; None where an earlier version has none.
    pub(super) fn number(&self, column: &CStr, of: Type) -> Option<i16> {
        let mut columns = self.table.columns.iter().chain(self.table.later).zip(self.numbers);
        match columns.find(|((name, _), _)| *name == column) {
            Some(((_, declared), number)) if *declared == of => (number != MISSING).then_some(number),
            _ => raise(self.table.without(column)),
        }
    }

    /// The table.
    pub fn source(&self) -> Source {
        // SAFETY: the relation is open.
        Source(unsafe { (*self.relation).rd_id })
    }

    /// Closes it, and releases the lock: a call's transaction may go on for long.
    pub fn close(self) {
        // SAFETY: opened before, once.
        unsafe { pg_sys::relation_close(self.relation, pg_sys::NoLock.cast_signed()) };
        self.lock.release();
    }
}

impl Source {
    /// Returns whether it is still there.
    pub fn is_there(self) -> bool {
        // SAFETY: within a transaction; the row is only looked for.
        unsafe { pg_sys::get_rel_namespace(self.0) != pg_sys::InvalidOid }
    }

    /// Returns whether this transaction has created it. Only within a transaction. Waits for no other one: what this
    /// one has created no other has locked.
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

    /// Returns whether it has a column of this name: an earlier version may have none. Only within a transaction.
    pub fn has_column(self, name: &CStr) -> bool {
        // SAFETY: as above; the name ends with a zero byte.
        unsafe { pg_sys::get_attnum(self.0, name.as_ptr()) > 0 }
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
        Relation::find(self.0).map_or_else(|| raise(extension::missing()), |table| table.owner())
    }

    /// Runs `work` with the rights of the table's owner, and no more (see [`role::with_rights`]): who may use a tag need not be
    /// allowed to see the table, and triggers of its owner must not run with a worker's.
    pub fn as_owner<T>(self, work: impl FnOnce() -> T) -> T {
        self.keep();
        role::with_rights(self.owner(), false, RoleSettings::Stay, work)
    }

    /// The same with a lock for writing on the table, where no lock has to be waited for; None where one would have to be.
    pub fn as_owner_at_once<T>(self, work: impl FnOnce() -> T) -> Option<T> {
        let found = self.extension()?;
        let mode = pg_sys::RowExclusiveLock.cast_signed();
        // SAFETY: within a transaction; the lock is of a number, whatever that is.
        let has_locks = extension::lock_at_once(found)
            && unsafe { pg_sys::ConditionalLockRelationOid(self.0, mode) }
            && self.extension() == Some(found);
        has_locks.then(|| role::with_rights(self.owner(), false, RoleSettings::Stay, work))
    }

    /// The same for SQL in which every name is qualified, operators included: to set a `search_path` costs as much as a small statement.
    pub fn as_owner_qualified<T>(self, work: impl FnOnce() -> T) -> T {
        self.keep();
        role::with_rights_for_qualified(self.owner(), work)
    }

    /// Keeps others from dropping the extension until the transaction ends. Else, while a statement waits for a lock, another role could
    /// create objects of the same names, whose code would run with the former owner's rights. Fails where the table is no member of it.
    fn keep(self) {
        let found = self.extension().unwrap_or_else(|| raise(extension::missing()));
        extension::lock(found);
        // The lock has told what was dropped until then.
        if self.extension() != Some(found) {
            raise(extension::missing());
        }
    }

    /// The extension, where the table is a member of it.
    fn extension(self) -> Option<pg_sys::Oid> {
        let found = TABLES.get().into_iter().flatten().filter_map(|table| table.found.get());
        let known = found.into_iter().find(|(table, _)| *table == self).map(|(_, extension)| extension);
        known.or_else(|| extension::of_member(pg_sys::RelationRelationId, self.0))
    }
}

/// Tells all tables that a relation was changed or dropped; with no oid, any may have been.
fn changed(relation: pg_sys::Oid) {
    for table in TABLES.get().into_iter().flatten() {
        table.changed(relation);
    }
}

/// The function of this name and arguments in the schema of another one. Only within a transaction.
pub fn function_beside(other: pg_sys::Oid, name: &CStr, arguments: &[pg_sys::Oid]) -> Option<pg_sys::Oid> {
    let count = i32::try_from(arguments.len()).unwrap_or_default();
    // SAFETY: as above. Lives as long as the memory that the caller works in.
    let function = unsafe {
        let schema = pg_sys::get_func_namespace(other);
        let arguments = pg_sys::buildoidvector(arguments.as_ptr(), count);
        pg_sys::GetSysCacheOid(
            super::tuple::cache_id(pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP),
            pg_sys::Anum_pg_proc_oid.cast_signed().try_into().unwrap_or_default(),
            pg_sys::Datum::from(name.as_ptr()),
            pg_sys::Datum::from(arguments),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::null(),
        )
    };
    (function != pg_sys::InvalidOid).then_some(function)
}

/// Returns whether there is a table of this name in `pg_catalog`. Only within a transaction.
pub fn has_system_table(name: &CStr) -> bool {
    // SAFETY: as above; the name is a C string.
    let table =
        unsafe { pg_sys::get_relname_relid(name.as_ptr(), pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE)) };
    table != pg_sys::InvalidOid
}

/// Returns whether a role is a superuser. Only within a transaction.
pub fn is_superuser(role: pg_sys::Oid) -> bool {
    // SAFETY: as above.
    unsafe { pg_sys::superuser_arg(role) }
}

/// Takes in what other transactions have changed since the statement began. Only within a transaction.
pub fn take_in_changes() {
    // SAFETY: as above; the server does so itself at each new lock.
    unsafe { pg_sys::AcceptInvalidationMessages() };
}

/// The name of a function; None where there is none. Only within a transaction.
pub fn function_name(function: pg_sys::Oid) -> Option<CString> {
    // SAFETY: as above; null, or a copy that belongs to the transaction's memory.
    let name = unsafe { pg_sys::get_func_name(function) };
    // SAFETY: as above; a name ends with a zero byte.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_owned())
}
