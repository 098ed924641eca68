//! A number that all databases of the cluster share, that standbys receive, and that can be read without a database: a
//! security label of the tablespace `pg_global`. No dump contains it.

use pgrx::pg_sys;
use std::ffi::{CStr, CString};

static OBJECT: pg_sys::ObjectAddress = pg_sys::ObjectAddress {
    classId: pg_sys::TableSpaceRelationId,
    objectId: pg_sys::GLOBALTABLESPACE_OID,
    objectSubId: 0,
};

/// Returns the number of a provider; None if there is none. Call within a transaction.
pub fn read(provider: &CStr) -> Option<i64> {
    // SAFETY: the caller is within a transaction. The result is null or a string that the server allocated for the
    // caller.
    let label = unsafe {
        let label = pg_sys::GetSecurityLabel(&raw const OBJECT, provider.as_ptr());
        (!label.is_null()).then(|| CStr::from_ptr(label))?
    };
    label.to_str().ok()?.parse().ok()
}

/// Raises the number of a provider if it is lower. Waits for other transactions that raise it. Call within a
/// transaction, with an active snapshot.
pub fn raise(provider: &CStr, number: i64) {
    let is_lower = || read(provider).is_none_or(|stored| stored < number);
    let Ok(label) = CString::new(number.to_string()) else { return };
    if !is_lower() {
        return;
    }
    // SAFETY: the caller is within a transaction, whose end releases the lock. The server copies the strings.
    unsafe {
        let lock = pg_sys::ExclusiveLock.cast_signed();
        pg_sys::LockSharedObject(OBJECT.classId, OBJECT.objectId, 0, lock);
        if is_lower() {
            pg_sys::SetSecurityLabel(&raw const OBJECT, provider.as_ptr(), label.as_ptr());
        }
    }
}
