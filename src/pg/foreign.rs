//! The hook that gives a transaction id (xid) to each transaction that may store rows on another server.
//!
//! The server gives such a transaction an xid only if the transaction also stores rows here. But snapshots and the records of
//! ended transactions know transactions by their xids. Foreign data wrappers let the other server commit before this server's
//! transaction ends, so a snapshot from before that commit lists the xid as running.

use super::server;
use pgrx::pg_sys;

static mut PREVIOUS: pg_sys::ExecutorCheckPerms_hook_type = None;

#[cfg(any(feature = "pg14", feature = "pg15"))]
const INSERT: pg_sys::AclMode = pg_sys::ACL_INSERT;
#[cfg(not(any(feature = "pg14", feature = "pg15")))]
const INSERT: pg_sys::AclMode = pg_sys::ACL_INSERT as u64;

// This declaration bypasses pg_sys's guard.
unsafe extern "C-unwind" {
    fn GetTopTransactionId() -> pg_sys::TransactionId;
}

/// Installs the hook. Call only while the server loads libraries.
pub fn assign_xids() {
    // SAFETY: hooks are chained in the postmaster, which is single-threaded.
    unsafe {
        PREVIOUS = pg_sys::ExecutorCheckPerms_hook;
        pg_sys::ExecutorCheckPerms_hook = Some(check);
    }
}

/// Called with the tables of each statement and each COPY, before its first row. This function has no pgrx guard and no values
/// to drop, so errors can safely jump over it.
unsafe extern "C-unwind" fn check(
    tables: *mut pg_sys::List,
    #[cfg(not(any(feature = "pg14", feature = "pg15")))] privileges: *mut pg_sys::List,
    raises: bool,
) -> bool {
    // SAFETY: the previous hook is called once, with the server's arguments. A transaction that may write may have an xid.
    unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let allowed = PREVIOUS.is_none_or(|previous| previous(tables, raises));
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let allowed = PREVIOUS.is_none_or(|previous| previous(tables, privileges, raises));
        let inserts = |table: &pg_sys::RangeTblEntry| {
            #[cfg(any(feature = "pg14", feature = "pg15"))]
            let required = Some(table.requiredPerms);
            #[cfg(not(any(feature = "pg14", feature = "pg15")))]
            let required = nth(privileges, table.perminfoindex.wrapping_sub(1))
                .map(|privilege: &pg_sys::RTEPermissionInfo| privilege.requiredPerms);
            required.is_some_and(|required| required & INSERT != 0)
        };
        let stores_elsewhere = |table: &pg_sys::RangeTblEntry| match table.relkind.to_ne_bytes() {
            [pg_sys::RELKIND_FOREIGN_TABLE] => table.rellockmode == pg_sys::RowExclusiveLock.cast_signed(),
            // A partition may be a foreign table.
            [pg_sys::RELKIND_PARTITIONED_TABLE] => inserts(table),
            _ => false,
        };
        if (0..).map_while(|number| nth(tables, number)).any(stores_elsewhere) && server::is_writable() {
            GetTopTransactionId();
        }
        allowed
    }
}

/// Returns an element of a list; None after the last element.
///
/// # Safety
/// The list is valid, and holds elements of this type.
unsafe fn nth<'l, T>(list: *mut pg_sys::List, number: u32) -> Option<&'l T> {
    // SAFETY: the number is below the list's length.
    unsafe {
        let list = list.as_ref().filter(|list| i64::from(number) < i64::from(list.length))?;
        (*list.elements.add(number as usize)).ptr_value.cast::<T>().as_ref()
    }
}
