//! Roles: who is calling, and what follows from membership.

use super::process::PerProcess;
use pgrx::{pg_guard, pg_sys};
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::Once;

// The raw symbol: pg_sys's is wrapped for functions that can fail, which would cost more than an id does.
unsafe extern "C-unwind" {
    fn GetUserId() -> pg_sys::Oid;
}

/// The role whose rights count at the moment.
#[inline]
pub fn current() -> pg_sys::Oid {
    // SAFETY: reads a variable of this process.
    unsafe { GetUserId() }
}

/// Whether `member` has the rights of `role` without SET ROLE. Only within a transaction.
pub fn has_rights_of(member: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: as above; a role that is no more has no members.
    unsafe { pg_sys::has_privs_of_role(member, role) }
}

/// Whether a role may write to the rows of a table. Only within a transaction.
pub fn may_update(role: pg_sys::Oid, table: pg_sys::Oid) -> bool {
    let update = pg_sys::AclMode::from(pg_sys::ACL_UPDATE);
    // SAFETY: as above.
    unsafe { pg_sys::pg_class_aclcheck(table, role, update) == pg_sys::AclResult::ACLCHECK_OK }
}

/// What a role is called. Only within a transaction.
pub fn name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: as above; a copy that belongs to the transaction's memory.
    let name = unsafe { pg_sys::GetUserNameFromId(role, true) };
    // SAFETY: null, or a name that ends with a zero byte.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

/// What is to be done when roles change.
type Action = fn();

static ON_CHANGE: PerProcess<Cell<Option<Action>>> = PerProcess::new(Cell::new(None));

/// Has `action` called whenever a role was changed or dropped, or memberships were granted or revoked.
pub fn on_change(action: Action) {
    static ONCE: Once = Once::new();
    ON_CHANGE.set(Some(action));
    ONCE.call_once(|| {
        for cache in [pg_sys::SysCacheIdentifier::AUTHOID, pg_sys::SysCacheIdentifier::AUTHMEMROLEMEM] {
            // SAFETY: registered once for the life of the process.
            unsafe {
                pg_sys::CacheRegisterSyscacheCallback(
                    cache.cast_signed(),
                    Some(changed),
                    pg_sys::Datum::from(0),
                );
            }
        }
    });
}

#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    if let Some(action) = ON_CHANGE.get() {
        action();
    }
}
