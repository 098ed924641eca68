//! The tables that a table inherits from, or is a partition of.

use super::rows;
use pgrx::{FromDatum, pg_sys};
use std::num::NonZeroUsize;

/// `pg_inherits`, and its index by the table below.
const INHERITS: u32 = 2611;
const INHERITS_BY_TABLE: u32 = 2680;

/// The columns of the same name in the tables directly above. Only within a transaction.
pub fn columns_above(table: pg_sys::Oid, column: i16) -> Vec<(pg_sys::Oid, i16)> {
    // SAFETY: as above; null, or a copy that belongs to the transaction's memory.
    let name = unsafe { pg_sys::get_attname(table, column, true) };
    if name.is_null() {
        return Vec::new();
    }
    // SAFETY: the same; 0 where there is none of that name.
    let column_of = |parent| unsafe { pg_sys::get_attnum(parent, name) };
    let columns = parents(table).into_iter().map(|parent| (parent, column_of(parent)));
    columns.filter(|(_, column)| *column > 0).collect()
}

fn parents(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    const TABLE: i16 = 1;
    const PARENT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);
    let mut found = Vec::new();
    // SAFETY: within a transaction. What is opened is what is closed; the columns of a row are never null.
    unsafe {
        let lock = pg_sys::AccessShareLock.cast_signed();
        let inherits = pg_sys::table_open(INHERITS.into(), lock);
        let mut key = pg_sys::ScanKeyData::default();
        #[allow(clippy::cast_possible_truncation, reason = "the number of a strategy")]
        let equal = pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber;
        pg_sys::ScanKeyInit(&raw mut key, TABLE, equal, pg_sys::F_OIDEQ.into(), table.into());
        rows::scan(inherits, INHERITS_BY_TABLE.into(), std::ptr::null_mut(), &mut [key], |row| {
            let parent = pgrx::htup::heap_getattr_raw(row, PARENT, (*inherits).rd_att);
            found.extend(parent.and_then(|parent| pg_sys::Oid::from_datum(parent, false)));
            true
        });
        pg_sys::table_close(inherits, lock);
    }
    found
}
