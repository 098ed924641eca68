//! A look at rows of the extension's tables as the server looks at its catalogs: with what is committed by now, without
//! SQL, and without rights on them. It leaves no lock behind, as a call's transaction may go on for long.

use super::catalog::{Open, Source, Table, Type, Unseen};
use super::read_lock::{Lock, Wait};
use super::tag::TagText;
use super::text::bytes_of;
use super::tuple;
use pgrx::{FromDatum, IntoDatum, pg_sys};
use std::ffi::CStr;

/// The rows that count.
#[derive(Clone, Copy)]
pub enum View {
    /// Those that are committed by now: by the server's newest snapshot, also in parallel queries.
    Committed,
    /// Those, too, that other transactions have inserted or deleted and not committed yet.
    Dirty,
}

/// The value that a column is compared with.
#[derive(Clone, Copy)]
pub enum Sought<'a> {
    Text(&'a TagText),
    Number(i64),
    Oid(pg_sys::Oid),
}

impl Sought<'_> {
    /// The type of the column, the value as the server has it, and the function that compares.
    fn datum(self) -> Option<(Type, pg_sys::Datum, u32)> {
        Some(match self {
            Self::Text(text) => (Type::Text, (*text).into_datum()?, pg_sys::F_TEXTEQ),
            Self::Number(number) => (Type::Bigint, number.into(), pg_sys::F_INT8EQ),
            Self::Oid(oid) => (Type::Oid, oid.into(), pg_sys::F_OIDEQ),
        })
    }
}

/// Calls `each` with the rows of a table in which these columns, which its primary key begins with or is, have these values; with all rows
/// where there are none. Gives the table. Only within a transaction, of which it sees more than that does: all that is committed by now.
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

/// Returns whether a table has such a row; with no columns, any.
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

/// A row that is looked at. To read a column as another type than the table declares is an error (55000).
pub struct Row<'a> {
    table: &'a Open,
    tuple: pg_sys::HeapTuple,
}

impl Row<'_> {
    /// A column of text, of a tag's length at most; None where it is null, or longer.
    pub fn tag(&self, column: &CStr) -> Option<TagText> {
        let datum = self.value(column, Type::Text)?;
        // SAFETY: it is a text.
        unsafe { TagText::from_polymorphic_datum(datum, false, pg_sys::TEXTOID) }
    }

    /// A column of text; None where it is null.
    pub fn text(&self, column: &CStr) -> Option<String> {
        let text = self.value(column, Type::Text)?;
        // SAFETY: it is a text.
        Some(String::from_utf8_lossy(unsafe { bytes_of(text) }).into_owned())
    }

    /// A column that is a name; None where it is null.
    pub fn name(&self, column: &CStr) -> Option<String> {
        let name = self.value(column, Type::Name)?;
        // SAFETY: it is a name, which ends with a zero byte.
        Some(unsafe { CStr::from_ptr(name.cast_mut_ptr()) }.to_string_lossy().into_owned())
    }

    /// A column that is a bigint; None where it is null.
    pub fn number(&self, column: &CStr) -> Option<i64> {
        self.read(column, Type::Bigint)
    }

    /// A column that is a boolean; None where it is null, or an earlier version has none.
    pub fn boolean(&self, column: &CStr) -> Option<bool> {
        self.read(column, Type::Boolean)
    }

    /// Returns whether a column of text is null.
    pub fn has_no_text(&self, column: &CStr) -> bool {
        self.value(column, Type::Text).is_none()
    }

    /// A column that is an oid; None where it is null.
    pub fn oid(&self, column: &CStr) -> Option<pg_sys::Oid> {
        self.read(column, Type::Oid)
    }

    /// A column that is an integer; None where it is null.
    pub fn int(&self, column: &CStr) -> Option<i32> {
        self.read(column, Type::Integer)
    }

    fn read<T: FromDatum>(&self, column: &CStr, of: Type) -> Option<T> {
        // SAFETY: the accessors above ask for the type that the column has.
        self.value(column, of).and_then(|value| unsafe { T::from_datum(value, false) })
    }

    fn value(&self, column: &CStr, of: Type) -> Option<pg_sys::Datum> {
        let number = self.table.number(column, of)?;
        let mut is_null = false;
        // SAFETY: the row is one of the table's, which has this column, and there while it is looked at.
        let value = unsafe {
            pg_sys::heap_getattr(self.tuple, number.into(), (*self.table.relation()).rd_att, &mut is_null)
        };
        (!is_null).then_some(value)
    }
}

/// The same until `each` has seen enough and says false.
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
    // SAFETY: the table is open, and the index, if any, is its own and locked.
    unsafe {
        tuple::scan(table.relation(), index, snapshot, &mut keys, |row| each(&Row { table, tuple: row }));
    };
    if let Some(lock) = lock {
        lock.release();
    }
    Ok(())
}

/// The index of the primary key.
fn primary_key(table: &Open) -> Option<pg_sys::Oid> {
    // SAFETY: the table is open. Its list of indexes, when it was made, says which one that is.
    let key = unsafe {
        pg_sys::list_free(pg_sys::RelationGetIndexList(table.relation()));
        (*table.relation()).rd_pkindex
    };
    (key != pg_sys::InvalidOid).then_some(key)
}

/// The condition that a column has this value.
fn key(table: &Open, column: &CStr, sought: Sought<'_>) -> Option<pg_sys::ScanKeyData> {
    let (of, value, equal) = sought.datum()?;
    let number = table.number(column, of)?;
    let strategy = u16::try_from(pg_sys::BTEqualStrategyNumber).ok()?;
    let mut key = pg_sys::ScanKeyData::default();
    let (mut kind, mut typmod, mut collation) = (pg_sys::InvalidOid, 0, pg_sys::InvalidOid);
    // SAFETY: the table is open, and has this column. The key's fields are written; what it
    // compares with lives as long as the call.
    unsafe {
        let table = (*table.relation()).rd_id;
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
