//! Rows of the server: syscache entries, catalog scans and trigger results.

use pgrx::heap_tuple::PgHeapTuple;
use pgrx::{AllocatedByPostgres, PgTriggerError, pg_sys};

/// Returns the number of a syscache, which is signed since Postgres 19.
#[allow(clippy::useless_conversion, reason = "it is one before 19")]
pub(super) fn cache_id(cache: pg_sys::SysCacheIdentifier::Type) -> i32 {
    i32::try_from(cache).unwrap_or_default()
}

/// The result of a trigger that changes no row.
pub type NoRow<'a> = Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgTriggerError>;

/// Reads the syscache entry of an OID; None if there is no entry. Call only within a transaction.
pub(super) fn cached<T>(
    cache: pg_sys::SysCacheIdentifier::Type,
    oid: pg_sys::Oid,
    read: impl FnOnce(pg_sys::HeapTuple) -> T,
) -> Option<T> {
    // SAFETY: the caller is within a transaction. The row is read before it is released.
    unsafe {
        let row = pg_sys::SearchSysCache1(cache_id(cache), oid.into());
        let found = (!row.is_null()).then(|| read(row))?;
        pg_sys::ReleaseSysCache(row);
        Some(found)
    }
}

/// Returns a column of a syscache entry; None if it is null.
///
/// # Safety
/// The row belongs to this cache, and is not released yet.
pub(super) unsafe fn cached_column(
    cache: pg_sys::SysCacheIdentifier::Type,
    row: pg_sys::HeapTuple,
    column: i16,
) -> Option<pg_sys::Datum> {
    let mut is_null = false;
    // SAFETY: the caller passes a row of this cache.
    let value = unsafe { pg_sys::SysCacheGetAttr(cache_id(cache), row, column, &raw mut is_null) };
    (!is_null).then_some(value)
}

/// Calls `each` for the rows that match the keys, until `each` returns false. Scans the index, or the whole relation if the
/// OID of the index is invalid.
///
/// # Safety
/// The caller is within a transaction. The relation is open, and the index belongs to it. The snapshot is null or valid.
pub(super) unsafe fn scan(
    relation: pg_sys::Relation,
    index: pg_sys::Oid,
    snapshot: pg_sys::Snapshot,
    keys: &mut [pg_sys::ScanKeyData],
    mut each: impl FnMut(pg_sys::HeapTuple) -> bool,
) {
    let count = i32::try_from(keys.len()).unwrap_or(0);
    let by_index = index != pg_sys::InvalidOid;
    // SAFETY: the caller passes an open relation. The keys outlive the scan.
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
