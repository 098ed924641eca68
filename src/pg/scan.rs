//! Reading a few rows of the extension's tables as the server reads its catalogs: with what is committed now, and without
//! SQL, rights or a snapshot of the session's.

use super::tag::{TagText, bytes_of};
use pgrx::{IntoDatum, heap_getattr_raw, pg_sys};
use snowflake_ids_core::directory::Tag;
use std::ffi::CStr;
use std::num::NonZeroUsize;

/// A row that was found.
pub struct Row {
    tuple: pg_sys::HeapTuple,
    columns: pg_sys::TupleDesc,
}

impl Row {
    /// A column that is an oid, counted from 1; None where it is null.
    pub fn oid(&self, column: usize) -> Option<pg_sys::Oid> {
        let value = self.value(column)?;
        u32::try_from(value.value()).ok().map(pg_sys::Oid::from)
    }

    /// A column that is a text; None where it is null.
    pub fn text(&self, column: usize) -> Option<String> {
        // SAFETY: the callers ask for texts.
        self.value(column).map(|value| String::from_utf8_lossy(unsafe { bytes_of(value) }).into_owned())
    }

    fn value(&self, column: usize) -> Option<pg_sys::Datum> {
        let column = NonZeroUsize::new(column)?;
        // SAFETY: the row and its description are there while the scan is.
        unsafe { heap_getattr_raw(self.tuple, column, self.columns) }
    }
}

/// Calls `each` with every row of a table of the schema `snowflake_ids` whose first column is this tag. Nothing where there
/// is no such table. Only within a transaction.
pub fn rows_of_tag(table: &CStr, index: &CStr, tag: &Tag, mut each: impl FnMut(&Row)) {
    // SAFETY: within a transaction; names are constants. The table is open and locked while it is scanned, and an error ends
    // both. The key is compared by the function that is named with it, under collation "C" as the column's.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"snowflake_ids".as_ptr(), true);
        if schema == pg_sys::InvalidOid {
            return;
        }
        let table = pg_sys::get_relname_relid(table.as_ptr(), schema);
        if table == pg_sys::InvalidOid {
            return;
        }
        let index = pg_sys::get_relname_relid(index.as_ptr(), schema);
        let lock = pg_sys::AccessShareLock.cast_signed();
        let relation = pg_sys::table_open(table, lock);
        let mut key = pg_sys::ScanKeyData::default();
        let equal = pg_sys::BTEqualStrategyNumber.try_into().unwrap_or_default();
        let wanted = TagText(*tag).into_datum().unwrap_or(pg_sys::Datum::null());
        pg_sys::ScanKeyInit(&raw mut key, 1, equal, pg_sys::F_TEXTEQ.into(), wanted);
        let (by_index, now) = (index != pg_sys::InvalidOid, std::ptr::null_mut());
        let scan = pg_sys::systable_beginscan(relation, index, by_index, now, 1, &raw mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            each(&Row { tuple, columns: (*relation).rd_att });
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, lock);
    }
}
