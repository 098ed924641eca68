//! Direct reads of the extension's tables, without SQL and without privileges on the tables.
//!
//! A read sees all committed rows, like the server's reads of its catalogs. A read releases its locks when it ends,
//! because the caller's transaction may last long.

use super::catalog::{Open, Source, Table, Type, Unseen};
use super::read_lock::{Lock, Wait};
use super::tag_text::TagText;
use super::text::bytes_of;
use super::tuple;
use pgrx::{FromDatum, IntoDatum, pg_sys};
use std::ffi::CStr;

/// The rows that a read sees.
#[derive(Clone, Copy)]
pub enum View {
    /// Committed rows, as a new snapshot sees them. Also works in parallel queries.
    Committed,
    /// Committed rows, and rows that other transactions have inserted or deleted and not yet committed.
    Dirty,
}

/// The value that a column must equal.
#[derive(Clone, Copy)]
pub enum Sought<'a> {
    Text(&'a TagText),
    Number(i64),
    Oid(pg_sys::Oid),
}

impl Sought<'_> {
    /// Returns the type of the column, the value as a datum, and the OID of the comparison function.
    fn datum(self) -> Option<(Type, pg_sys::Datum, u32)> {
        Some(match self {
            Self::Text(text) => (Type::Text, (*text).into_datum()?, pg_sys::F_TEXTEQ),
            Self::Number(number) => (Type::Bigint, number.into(), pg_sys::F_INT8EQ),
            Self::Oid(oid) => (Type::Oid, oid.into(), pg_sys::F_OIDEQ),
        })
    }
}

/// Calls `each` for each row in which the columns have these values. `columns` are the first columns of the primary key;
/// if empty, all rows match. Returns the OID of the table. Sees every committed row, even if the caller's snapshot is
/// older. Call only within a transaction.
pub fn look(
    table: &'static Table,
    wait: Wait,
    columns: &[(&CStr, Sought<'_>)],
    mut each: impl FnMut(&Row<'_>),
) -> Result<Source, Unseen> {
    look_until(table, wait, View::Committed, columns, |row| {
        each(row);
        true
    })
}

/// Returns whether the table has a row in which the columns have these values. If `columns` is empty, any row counts.
pub fn has(
    table: &'static Table,
    wait: Wait,
    view: View,
    columns: &[(&CStr, Sought<'_>)],
) -> Result<bool, Unseen> {
    let mut found = false;
    let each = |_: &Row<'_>| {
        found = true;
        false
    };
    look_until(table, wait, view, columns, each).map(|_| found)
}

/// The current row of a read. Reading a column as a type other than its declared type raises an error (55000).
pub struct Row<'a> {
    table: &'a Open,
    tuple: pg_sys::HeapTuple,
}

impl Row<'_> {
    /// Returns a text column; None if it is null, or longer than a tag may be.
    pub fn tag(&self, column: &CStr) -> Option<TagText> {
        let datum = self.value(column, Type::Text)?;
        // SAFETY: the value is a text.
        unsafe { TagText::from_polymorphic_datum(datum, false, pg_sys::TEXTOID) }
    }

    /// Returns a text column; None if it is null.
    pub fn text(&self, column: &CStr) -> Option<String> {
        let text = self.value(column, Type::Text)?;
        // SAFETY: the value is a text.
        Some(String::from_utf8_lossy(unsafe { bytes_of(text) }).into_owned())
    }

    /// Returns a column of type name; None if it is null.
    pub fn name(&self, column: &CStr) -> Option<String> {
        let name = self.value(column, Type::Name)?;
        // SAFETY: the value is a name, which ends with a zero byte.
        Some(unsafe { CStr::from_ptr(name.cast_mut_ptr()) }.to_string_lossy().into_owned())
    }

    /// Returns a bigint column; None if it is null.
    pub fn number(&self, column: &CStr) -> Option<i64> {
        self.read(column, Type::Bigint)
    }

    /// Returns a boolean column; None if it is null.
    pub fn boolean(&self, column: &CStr) -> Option<bool> {
        self.read(column, Type::Boolean)
    }

    /// Returns a column of type `"char"`; None if it is null.
    pub fn letter(&self, column: &CStr) -> Option<u8> {
        self.read(column, Type::Letter).map(i8::cast_unsigned)
    }

    /// Returns whether a text column is null.
    pub fn has_no_text(&self, column: &CStr) -> bool {
        self.value(column, Type::Text).is_none()
    }

    /// Returns an OID column; None if it is null.
    pub fn oid(&self, column: &CStr) -> Option<pg_sys::Oid> {
        self.read(column, Type::Oid)
    }

    /// Returns an integer column; None if it is null.
    pub fn int(&self, column: &CStr) -> Option<i32> {
        self.read(column, Type::Integer)
    }

    fn read<T: FromDatum>(&self, column: &CStr, of: Type) -> Option<T> {
        // SAFETY: the accessors pass the type that the column has.
        self.value(column, of).and_then(|value| unsafe { T::from_datum(value, false) })
    }

    fn value(&self, column: &CStr, of: Type) -> Option<pg_sys::Datum> {
        let number = self.table.number(column, of);
        let mut is_null = false;
        // SAFETY: the row belongs to the table, which has this column, and lives during the read.
        let value = unsafe {
            pg_sys::heap_getattr(self.tuple, number.into(), (*self.table.relation).rd_att, &mut is_null)
        };
        (!is_null).then_some(value)
    }
}

/// Does the same as [`look`], for a chosen view. Stops when `each` returns false.
fn look_until(
    table: &'static Table,
    wait: Wait,
    view: View,
    columns: &[(&CStr, Sought<'_>)],
    each: impl FnMut(&Row<'_>) -> bool,
) -> Result<Source, Unseen> {
    let table = table.open(wait)?;
    let found = look_by_key(&table, wait, view, columns, each).map(|()| table.source());
    table.close();
    found
}

fn look_by_key(
    table: &Open,
    wait: Wait,
    view: View,
    columns: &[(&CStr, Sought<'_>)],
    mut each: impl FnMut(&Row<'_>) -> bool,
) -> Result<(), Unseen> {
    let keys = columns.iter().map(|(name, sought)| key(table, name, *sought)).collect::<Option<Vec<_>>>();
    let mut keys = keys.ok_or(Unseen::NoTable)?;
    let index =
        if keys.is_empty() { pg_sys::InvalidOid } else { primary_key(table).ok_or(Unseen::NoTable)? };
    let lock = match index {
        pg_sys::InvalidOid => None,
        index => Some(Lock::take(index, wait).ok_or(Unseen::Locked)?),
    };
    let mut dirty =
        pg_sys::SnapshotData { snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY, ..Default::default() };
    let snapshot = match view {
        View::Committed => std::ptr::null_mut(),
        View::Dirty => &raw mut dirty,
    };
    // SAFETY: the table is open; the index belongs to it and is locked.
    unsafe {
        tuple::scan(table.relation, index, snapshot, &mut keys, |row| each(&Row { table, tuple: row }));
    };
    if let Some(lock) = lock {
        lock.release();
    }
    Ok(())
}

/// Returns the index of the primary key.
fn primary_key(table: &Open) -> Option<pg_sys::Oid> {
    // SAFETY: the table is open. Building the list of indexes also sets `rd_pkindex`.
    let key = unsafe {
        pg_sys::list_free(pg_sys::RelationGetIndexList(table.relation));
        (*table.relation).rd_pkindex
    };
    (key != pg_sys::InvalidOid).then_some(key)
}

/// Builds the scan key for `column = value`.
fn key(table: &Open, column: &CStr, sought: Sought<'_>) -> Option<pg_sys::ScanKeyData> {
    let (of, value, equal) = sought.datum()?;
    let number = table.number(column, of);
    let strategy = u16::try_from(pg_sys::BTEqualStrategyNumber).ok()?;
    let mut key = pg_sys::ScanKeyData::default();
    let (mut kind, mut typmod, mut collation) = (pg_sys::InvalidOid, 0, pg_sys::InvalidOid);
    // SAFETY: the table is open and has this column. The value outlives the scan.
    unsafe {
        let table = (*table.relation).rd_id;
        pg_sys::get_atttypetypmodcoll(table, number, &raw mut kind, &raw mut typmod, &raw mut collation);
        pg_sys::ScanKeyEntryInitialize(
            &raw mut key,
            0,
            number,
            strategy,
            pg_sys::InvalidOid,
            collation,
            equal.into(),
            value,
        );
    }
    Some(key)
}
