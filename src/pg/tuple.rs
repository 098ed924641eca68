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
/// OID of the index is invalid. A null snapshot stands for all committed rows. Unlike a scan with a catalog snapshot, it takes no
/// predicate locks, which would make serializable transactions fail that never named the relation.
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
    let mut any =
        pg_sys::SnapshotData { snapshot_type: pg_sys::SnapshotType::SNAPSHOT_ANY, ..Default::default() };
    // SAFETY: the caller passes an open relation. The keys and snapshots outlive the scan.
    unsafe {
        let committed = snapshot
            .is_null()
            .then(|| pg_sys::RegisterSnapshot(pg_sys::GetCatalogSnapshot((*relation).rd_id)));
        let scanned = if committed.is_some() { &raw mut any } else { snapshot };
        let is_committed = (*(*relation).rd_tableam).tuple_satisfies_snapshot;
        let scan = pg_sys::systable_beginscan(relation, index, by_index, scanned, count, keys.as_mut_ptr());
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let is_seen = match (committed, is_committed) {
                (Some(snapshot), Some(is_committed)) => is_committed(relation, (*scan).slot, snapshot),
                _ => true,
            };
            if is_seen && !each(tuple) {
                break;
            }
        }
        pg_sys::systable_endscan(scan);
        if let Some(snapshot) = committed {
            pg_sys::UnregisterSnapshot(snapshot);
        }
    }
}
