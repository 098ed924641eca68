//! A look at rows of the extension's tables as the server looks at its catalogs: with what is committed by now, without
//! SQL, and without rights on them. It leaves no lock behind, as a call's transaction may go on for long.

use super::catalog::{Open, Source, Table, Type, Unseen};
use super::read_lock::{Lock, Wait};
use super::tag::TagText;
use super::text::bytes_of;
use pgrx::{FromDatum, IntoDatum, pg_sys};
use std::ffi::CStr;
use std::time::Duration;

/// Returns whether a table has a row in which these columns, which its primary key begins with or is, say this. Does
/// not wait for a lock. Only within a transaction, of which it sees more than that does: all that is committed by now.
pub fn has(table: &'static Table, columns: &[(&CStr, TagText)]) -> Result<bool, Unseen> {
    let mut found = false;
    let columns: Vec<_> = columns.iter().map(|(name, text)| (*name, Sought::Text(text))).collect();
    look(table, Wait::No, &columns, |_| found = true).map(|_| found)
}

/// The same, where a row counts, too, that another transaction has inserted or deleted and not committed yet.
pub fn may_have(table: &'static Table, columns: &[(&CStr, TagText)]) -> Result<bool, Unseen> {
    let mut found = false;
    let columns: Vec<_> = columns.iter().map(|(name, text)| (*name, Sought::Text(text))).collect();
    look_at(table, Wait::No, View::Dirty, &columns, |_| found = true).map(|_| found)
}

/// Returns what a column of text says in all rows. As [`has`].
pub fn texts(table: &'static Table, column: &CStr) -> Result<Vec<TagText>, Unseen> {
    let mut texts = Vec::new();
    look(table, Wait::No, &[], |row| texts.extend(row.tag(column))).map(|_| texts)
}

/// Calls `each` with every row of a table, and gives the table. Where it is locked this `waits` for as long as any statement
/// does, or not at all. Only within a transaction, as above.
pub fn each(table: &'static Table, waits: bool, each: impl FnMut(&Row<'_>)) -> Result<Source, Unseen> {
    look(table, wait(waits), &[], each)
}

/// The same, which waits for so long.
pub fn each_within(
    table: &'static Table,
    limit: Duration,
    each: impl FnMut(&Row<'_>),
) -> Result<Source, Unseen> {
    look(table, Wait::Yes(Some(limit)), &[], each)
}

/// Calls `each` with every row of a table whose column `tag`, which its primary key begins with or is, says this. Waits
/// where the table is locked: for so long, or, where no time is given, for as long as any statement does. Only within a
/// transaction, as above.
pub fn of_tag(
    table: &'static Table,
    tag: &TagText,
    limit: Option<Duration>,
    each: impl FnMut(&Row<'_>),
) -> Result<Source, Unseen> {
    look(table, Wait::Yes(limit), &[(c"tag", Sought::Text(tag))], each)
}

/// Calls `each` with every row of a table whose column, which its primary key is, says this. Waits for so long where the table is
/// locked. Only within a transaction, as above.
pub fn of_key(
    table: &'static Table,
    column: &CStr,
    key: &TagText,
    limit: Duration,
    each: impl FnMut(&Row<'_>),
) -> Result<Source, Unseen> {
    look(table, Wait::Yes(Some(limit)), &[(column, Sought::Text(key))], each)
}

/// The same for a column of bigints that the primary key begins with or is.
pub fn of_number(
    table: &'static Table,
    column: &CStr,
    number: i64,
    limit: Duration,
    each: impl FnMut(&Row<'_>),
) -> Result<Source, Unseen> {
    look(table, Wait::Yes(Some(limit)), &[(column, Sought::Number(number))], each)
}

/// The same for a column of oids, which waits for a lock or not.
pub fn of_oid(
    table: &'static Table,
    column: &CStr,
    oid: pg_sys::Oid,
    waits: bool,
    each: impl FnMut(&Row<'_>),
) -> Result<Source, Unseen> {
    look(table, wait(waits), &[(column, Sought::Oid(oid))], each)
}

/// Returns whether a table has any row. Waits for a lock or not. Only within a transaction, as above.
pub fn is_any(table: &'static Table, waits: bool) -> Result<bool, Unseen> {
    let table = table.open(wait(waits))?;
    let mut is_any = false;
    scan(&table, pg_sys::InvalidOid, View::Committed, Vec::new(), |_| {
        is_any = true;
        false
    });
    table.close();
    Ok(is_any)
}

/// A wait for as long as any statement does, or none.
fn wait(waits: bool) -> Wait {
    if waits { Wait::Yes(None) } else { Wait::No }
}

/// Which rows are looked at.
#[derive(Clone, Copy)]
enum View {
    /// Those that are committed by now. Without a snapshot of the session's: the server takes the newest, which it does in parallel
    /// queries, too.
    Committed,
    /// Those, too, that other transactions have inserted or deleted and not committed yet.
    Dirty,
}

/// What a column is to say.
#[derive(Clone, Copy)]
enum Sought<'a> {
    Text(&'a TagText),
    Number(i64),
    Oid(pg_sys::Oid),
}

impl Sought<'_> {
    fn column_type(self) -> Type {
        match self {
            Self::Text(_) => Type::Text,
            Self::Number(_) => Type::Bigint,
            Self::Oid(_) => Type::Oid,
        }
    }

    /// As the server has it, with the function that compares.
    fn datum(self) -> Option<(pg_sys::Datum, u32)> {
        match self {
            Self::Text(text) => (*text).into_datum().map(|text| (text, pg_sys::F_TEXTEQ)),
            Self::Number(number) => Some((number.into(), pg_sys::F_INT8EQ)),
            Self::Oid(oid) => Some((oid.into(), pg_sys::F_OIDEQ)),
        }
    }
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
        // SAFETY: it is a bigint.
        self.value(column, Type::Bigint).and_then(|number| unsafe { i64::from_datum(number, false) })
    }

    /// A column that is a boolean; None where it is null, or an earlier version has none.
    pub fn boolean(&self, column: &CStr) -> Option<bool> {
        // SAFETY: it is a boolean.
        self.value(column, Type::Boolean).and_then(|value| unsafe { bool::from_datum(value, false) })
    }

    /// Returns whether a column of text is null.
    pub fn has_no_text(&self, column: &CStr) -> bool {
        self.value(column, Type::Text).is_none()
    }

    /// A column that is an oid; None where it is null.
    pub fn oid(&self, column: &CStr) -> Option<pg_sys::Oid> {
        // SAFETY: it is an oid.
        self.value(column, Type::Oid).and_then(|oid| unsafe { pg_sys::Oid::from_datum(oid, false) })
    }

    /// A column that is an integer; None where it is null.
    pub fn int(&self, column: &CStr) -> Option<i32> {
        // SAFETY: it is an integer.
        self.value(column, Type::Integer).and_then(|number| unsafe { i32::from_datum(number, false) })
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

/// Looks at the rows that these columns fit, by the primary key; at all rows where there are none.
fn look(
    table: &'static Table,
    wait: Wait,
    columns: &[(&CStr, Sought<'_>)],
    each: impl FnMut(&Row<'_>),
) -> Result<Source, Unseen> {
    look_at(table, wait, View::Committed, columns, each)
}

fn look_at(
    table: &'static Table,
    wait: Wait,
    view: View,
    columns: &[(&CStr, Sought<'_>)],
    each: impl FnMut(&Row<'_>),
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
    mut each: impl FnMut(&Row<'_>),
) -> Result<(), Unseen> {
    let each = |row: &Row<'_>| {
        each(row);
        true
    };
    if columns.is_empty() {
        scan(table, pg_sys::InvalidOid, view, Vec::new(), each);
        return Ok(());
    }
    let index = primary_key(table).ok_or(Unseen::NoTable)?;
    let keys = columns.iter().map(|(name, sought)| key(table, name, *sought)).collect::<Option<Vec<_>>>();
    let keys = keys.ok_or(Unseen::NoTable)?;
    let lock = Lock::take(index, wait).ok_or(Unseen::Locked)?;
    scan(table, index, view, keys, each);
    lock.release();
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

/// That a column says this.
fn key(table: &Open, column: &CStr, sought: Sought<'_>) -> Option<pg_sys::ScanKeyData> {
    let (number, (value, equal)) = (table.number(column, sought.column_type())?, sought.datum()?);
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

/// Has all rows looked at that the keys fit, by the index, if one is given, until `each` has seen enough and says false.
fn scan(
    table: &Open,
    index: pg_sys::Oid,
    view: View,
    mut keys: Vec<pg_sys::ScanKeyData>,
    mut each: impl FnMut(&Row<'_>) -> bool,
) {
    let count = i32::try_from(keys.len()).unwrap_or(0);
    let by_index = index != pg_sys::InvalidOid;
    let mut dirty =
        pg_sys::SnapshotData { snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY, ..Default::default() };
    let snapshot = match view {
        View::Committed => std::ptr::null_mut(),
        View::Dirty => &raw mut dirty,
    };
    // SAFETY: the table is open, and the index, if any, is its own and locked. The keys and the snapshot are kept until the scan
    // is over.
    unsafe {
        let scan =
            pg_sys::systable_beginscan(table.relation(), index, by_index, snapshot, count, keys.as_mut_ptr());
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() || !each(&Row { table, tuple }) {
                break;
            }
        }
        pg_sys::systable_endscan(scan);
    }
}
