//! The extension in this database: its OID, its members, and locks against DROP EXTENSION.

use super::report::{not_ready, raise};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{IntoDatum, pg_sys};

/// Returns the error for a call during which the extension was dropped.
#[cold]
pub fn missing() -> ErrorReport {
    not_ready(
        "extension \"snowflake_ids\" does not exist any more",
        "It was dropped from this database during the call.",
        "Run CREATE EXTENSION snowflake_ids.",
    )
}

/// Keeps an extension from being dropped until the transaction ends. This lock suffices, because DROP EXTENSION locks
/// the extension before it locks the members.
pub fn lock(extension: pg_sys::Oid) {
    let mode = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: the caller is within a transaction; any OID can be locked.
    unsafe { pg_sys::LockDatabaseObject(pg_sys::ExtensionRelationId, extension, 0, mode) };
}

/// Takes the same lock as [`lock`] if it is available at once. Returns whether the lock was taken.
pub fn lock_at_once(extension: pg_sys::Oid) -> bool {
    let mode = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: the caller is within a transaction; any OID can be locked.
    unsafe { pg_sys::ConditionalLockDatabaseObject(pg_sys::ExtensionRelationId, extension, 0, mode) }
}

/// Returns the OID of the extension in this database; None if not installed. Call only within a transaction.
pub fn find() -> Option<pg_sys::Oid> {
    // SAFETY: the caller is within a transaction; the name is a constant.
    let extension = unsafe { pg_sys::get_extension_oid(c"snowflake_ids".as_ptr(), true) };
    (extension != pg_sys::InvalidOid).then_some(extension)
}

/// Locks the extension against a drop until the transaction ends. Returns whether the extension is installed.
pub fn keep() -> bool {
    let Some(extension) = find() else { return false };
    lock(extension);
    // During the wait for the lock the extension may have been dropped and created again.
    find() == Some(extension)
}

/// Runs `work`, which runs code of users, and fails if that code dropped the extension. After a drop the caller's next
/// statements might use objects that the user has created under the extension's names. [`keep`] guards against other
/// sessions only. Call only within a transaction.
pub fn outlasting<T>(work: impl FnOnce() -> T) -> T {
    let before = find();
    let done = work();
    if find() != before {
        raise(missing());
    }
    done
}

/// Returns the extension if the object is its member. Users may have objects of the same name. Call only within a
/// transaction.
pub fn of_member(catalog: pg_sys::Oid, object: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: the caller is within a transaction.
    let of = unsafe { pg_sys::getExtensionOfObject(catalog, object) };
    find().filter(|extension| *extension == of)
}

/// Returns the extension's function with this schema-qualified signature. Call only within a transaction.
pub fn function(signature: &str) -> Option<pg_sys::Oid> {
    // SAFETY: the caller is within a transaction; the function takes text, and returns an OID or null.
    let found: Option<pg_sys::Oid> =
        unsafe { pgrx::direct_function_call(pg_sys::to_regprocedure, &[signature.into_datum()]) };
    found.filter(|function| of_member(pg_sys::ProcedureRelationId, *function).is_some())
}
