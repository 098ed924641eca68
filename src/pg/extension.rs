//! The extension in this database: its oid, its members, and keeping it from being dropped.

use super::report::{not_ready, raise};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{IntoDatum, pg_sys};

/// Returns the reason why a call cannot go on whose extension was dropped.
#[cold]
pub fn missing() -> ErrorReport {
    not_ready(
        "extension \"snowflake_ids\" does not exist any more",
        "It was dropped from this database during the call.",
        "Run CREATE EXTENSION snowflake_ids.",
    )
}

/// Keeps an extension from being dropped until the transaction ends: a drop locks it before all that it has.
pub fn lock(extension: pg_sys::Oid) {
    let mode = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: within a transaction; the lock is of a number, whatever that is.
    unsafe { pg_sys::LockDatabaseObject(pg_sys::ExtensionRelationId, extension, 0, mode) };
}

/// The same if that lock is to be had at once. Whether it was.
pub fn lock_at_once(extension: pg_sys::Oid) -> bool {
    let mode = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: as above.
    unsafe { pg_sys::ConditionalLockDatabaseObject(pg_sys::ExtensionRelationId, extension, 0, mode) }
}

/// The oid of the extension in this database; None where it is not. Only within a transaction.
pub fn find() -> Option<pg_sys::Oid> {
    // SAFETY: as above; the name is a constant.
    let extension = unsafe { pg_sys::get_extension_oid(c"snowflake_ids".as_ptr(), true) };
    (extension != pg_sys::InvalidOid).then_some(extension)
}

/// Keeps this extension from being dropped until the transaction ends. Whether it is there. Only within a transaction.
pub fn keep() -> bool {
    let Some(extension) = find() else { return false };
    lock(extension);
    // It may have been dropped while its lock was waited for, and created anew.
    find() == Some(extension)
}

/// Runs `work`, which runs code of users. Fails where that code dropped the extension: the names in what the caller runs next could
/// be the user's. [`keep`] holds it against other sessions only. Only within a transaction.
pub fn outlasting<T>(work: impl FnOnce() -> T) -> T {
    let before = find();
    let done = work();
    if find() != before {
        raise(missing());
    }
    done
}

/// The extension, where an object of a catalog is its member: a user could have made one of that name. Only within a transaction.
pub fn of_member(catalog: pg_sys::Oid, object: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: as above.
    let of = unsafe { pg_sys::getExtensionOfObject(catalog, object) };
    find().filter(|extension| *extension == of)
}

/// The function of the extension with this signature, all names in it qualified. Only within a transaction.
pub fn function(signature: &str) -> Option<pg_sys::Oid> {
    // SAFETY: within a transaction; the function takes a text, and gives an oid or null.
    let found: Option<pg_sys::Oid> =
        unsafe { pgrx::direct_function_call(pg_sys::to_regprocedure, &[signature.into_datum()]) };
    found.filter(|function| of_member(pg_sys::ProcedureRelationId, *function).is_some())
}
