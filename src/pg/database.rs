//! What databases there are.

use super::worker;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// Whether there is a database of this oid. Only within a transaction.
pub fn exists(database: u32) -> bool {
    name(database).is_some()
}

/// The same for workers, which have no transaction yet; true also where it can't be found out.
pub fn may_exist(database: u32) -> bool {
    worker::transaction(|| exists(database)).unwrap_or(true)
}

/// What a database is called. Only within a transaction.
pub fn name(database: u32) -> Option<String> {
    // SAFETY: as above; the name is copied.
    unsafe {
        let name = pg_sys::get_database_name(database.into());
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

/// The database of this name. Only within a transaction.
pub fn of_name(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: as above; the name outlives the call.
    let found = unsafe { pg_sys::get_database_oid(name.as_ptr(), true) };
    (found != pg_sys::InvalidOid).then_some(found.to_u32())
}

/// The databases that can be connected to. Only within a transaction.
pub fn all_open() -> Vec<u32> {
    let mut found = Vec::new();
    // SAFETY: as above. A scan of the shared catalog from its beginning to its end; rows of it begin with the struct's
    // fields.
    unsafe {
        let lock = pg_sys::AccessShareLock.cast_signed();
        let catalog = pg_sys::table_open(pg_sys::DatabaseRelationId, lock);
        let (nothing, no_keys) = (std::ptr::null_mut(), std::ptr::null_mut());
        let scan = pg_sys::systable_beginscan(catalog, pg_sys::InvalidOid, false, nothing, 0, no_keys);
        loop {
            let row = pg_sys::systable_getnext(scan);
            if row.is_null() {
                break;
            }
            let database: *const pg_sys::FormData_pg_database = pg_sys::GETSTRUCT(row).cast();
            if (*database).datallowconn {
                found.push((*database).oid.to_u32());
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
    }
    found
}
