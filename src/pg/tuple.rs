//! Rows of the server's: in its caches, in scans of its catalogs, and of triggers.

use pgrx::heap_tuple::PgHeapTuple;
use pgrx::{AllocatedByPostgres, PgTriggerError, pg_sys};

/// The number of a cache of the catalog: signed from 19 on.
#[allow(clippy::useless_conversion, reason = "it is one before 19")]
pub(super) fn cache_id(cache: pg_sys::SysCacheIdentifier::Type) -> i32 {
    i32::try_from(cache).unwrap_or_default()
}

/// The result of a trigger that changes no row.
pub type NoRow<'a> = Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError>;

/// Reads the row of an oid in one of the server's caches; None where there is none. Only within a transaction.
pub(super) fn cached<T>(
    cache: pg_sys::SysCacheIdentifier::Type,
    oid: pg_sys::Oid,
    read: impl FnOnce(pg_sys::HeapTuple) -> T,
) -> Option<T> {
    // SAFETY: as above. The row is read before it is let go.
    unsafe {
        let row = pg_sys::SearchSysCache1(cache_id(cache), oid.into());
        let found = (!row.is_null()).then(|| read(row))?;
        pg_sys::ReleaseSysCache(row);
        Some(found)
    }
}

/// A column of such a row; None where it is null.
///
/// # Safety
/// The row is of this cache, and is there while the column is read.
pub(super) unsafe fn cached_column(
    cache: pg_sys::SysCacheIdentifier::Type,
    row: pg_sys::HeapTuple,
    column: i16,
) -> Option<pg_sys::Datum> {
    let mut is_null = false;
    // SAFETY: as above.
    let value = unsafe { pg_sys::SysCacheGetAttr(cache_id(cache), row, column, &raw mut is_null) };
    (!is_null).then_some(value)
}

/// Calls `each` with the rows that the keys fit, by the index, if one is given, until it says false.
///
/// # Safety
/// Within a transaction. The relation is open, and the index is one of it; the snapshot is null or valid.
pub(super) unsafe fn scan(
    relation: pg_sys::Relation,
    index: pg_sys::Oid,
    snapshot: pg_sys::Snapshot,
    keys: &mut [pg_sys::ScanKeyData],
    mut each: impl FnMut(pg_sys::HeapTuple) -> bool,
) {
    let count = i32::try_from(keys.len()).unwrap_or(0);
    let by_index = index != pg_sys::InvalidOid;
    // SAFETY: as above. The keys are kept until the scan is over.
    unsafe {
        let scan = pg_sys::systable_beginscan(relation, index, by_index, snapshot, count, keys.as_mut_ptr());
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() || !each(tuple) {
                break;
            }
        }
        pg_sys::systable_endscan(scan);
    }
}
