//! Roles: the current role, memberships and privileges, and code that runs with the rights of another role.

use super::guc;
use super::per_process::PerProcess;
use pgrx::{pg_guard, pg_sys};
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::Once;

// This declaration bypasses pg_sys's wrapper for functions that can fail. The wrapper would take longer than creating an
// id.
unsafe extern "C-unwind" {
    fn GetUserId() -> pg_sys::Oid;
}

#[inline]
pub fn current() -> pg_sys::Oid {
    // SAFETY: reads a variable of this process.
    unsafe { GetUserId() }
}

/// Returns the session user, even within SECURITY DEFINER functions.
pub fn of_session() -> pg_sys::Oid {
    // SAFETY: reads a variable of this process.
    unsafe { pg_sys::GetSessionUserId() }
}

/// Returns whether the current role has the privileges of another role. Call only within a transaction.
pub fn has_privileges_of(role: pg_sys::Oid) -> bool {
    has_rights_of(current(), role)
}

/// Returns whether `member` has the privileges of `role` without SET ROLE. Call only within a transaction.
pub fn has_rights_of(member: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: the caller is within a transaction. For a dropped role the call finds no members, and raises no error.
    unsafe { pg_sys::has_privs_of_role(member, role) }
}

/// Returns whether a role has any of these privileges on a relation. Call only within a transaction.
pub fn has_any(role: pg_sys::Oid, privileges: u32, relation: pg_sys::Oid) -> bool {
    // SAFETY: the caller is within a transaction.
    let allowed = unsafe { pg_sys::pg_class_aclcheck(relation, role, pg_sys::AclMode::from(privileges)) };
    allowed == pg_sys::AclResult::ACLCHECK_OK
}

/// Returns whether a role may update a table. Call only within a transaction.
pub fn may_update(role: pg_sys::Oid, table: pg_sys::Oid) -> bool {
    has_any(role, pg_sys::ACL_UPDATE, table)
}

/// Returns whether the current role may call a function. Call only within a transaction.
pub fn may_execute(function: pg_sys::Oid) -> bool {
    let execute = pg_sys::AclMode::from(pg_sys::ACL_EXECUTE);
    // SAFETY: the caller is within a transaction.
    let result = unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let result = pg_sys::pg_proc_aclcheck(function, current(), execute);
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let result = pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, current(), execute);
        result
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// Returns the name of a role. Call only within a transaction.
pub fn name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: the caller is within a transaction; the result is null, or a copy in the current memory context.
    let name = unsafe { pg_sys::GetUserNameFromId(role, true) };
    // SAFETY: null, or a name that ends with a zero byte.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

/// An action that runs after a change of roles.
type OnRoleChange = fn();

static ON_CHANGE: PerProcess<Cell<Option<OnRoleChange>>> = PerProcess::new(Cell::new(None));
/// The number of invalidation messages about roles, memberships and databases that this process has received.
static CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));

/// Sets the action that runs whenever a role, a membership or the owner of a database has changed.
pub fn on_change(action: OnRoleChange) {
    ON_CHANGE.set(Some(action));
    watch();
}

/// Starts to count changes of roles, memberships and database owners in this process.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        use pg_sys::SysCacheIdentifier::{AUTHMEMROLEMEM, AUTHOID, DATABASEOID};
        // The owner of the current database is an implicit member of `pg_database_owner`.
        for cache in [AUTHOID, AUTHMEMROLEMEM, DATABASEOID] {
            // SAFETY: the callback is registered once for the life of the process.
            unsafe {
                pg_sys::CacheRegisterSyscacheCallback(
                    super::tuple::cache_id(cache),
                    Some(changed),
                    pg_sys::Datum::from(0),
                );
            }
        }
    });
}

/// Returns how many changes this process has counted since [`watch`].
#[inline]
pub fn changes() -> u64 {
    CHANGES.get()
}

#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    if let Some(action) = ON_CHANGE.get() {
        action();
    }
}

/// The lifetime of the settings that `work` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoleSettings {
    /// The old values are restored when `work` ends.
    End,
    /// The new values stay until the transaction ends. Only for the extension's own code.
    Stay,
}

/// Runs `work` with only the rights of a role, as REINDEX and VACUUM run index expressions. Code of that role cannot
/// regain the caller's rights, because SET ROLE is refused. The code cannot leave temporary tables, cursors or prepared
/// statements in the session. The `search_path` is `pg_catalog`, so that the session's user cannot substitute functions.
/// With `all_rows`, FORCE ROW LEVEL SECURITY hides no rows from the owner of a table. Call only within a transaction.
pub(super) fn with_rights<T>(
    role: pg_sys::Oid,
    all_rows: bool,
    settings: RoleSettings,
    work: impl FnOnce() -> T,
) -> T {
    let all_rows = if all_rows { pg_sys::SECURITY_NOFORCE_RLS } else { 0 };
    as_role(role, all_rows, || {
        // SAFETY: the caller is within a transaction. The end of the transaction also resets the settings of all nest levels.
        let nest_level = unsafe { pg_sys::NewGUCNestLevel() };
        guc::set_for_now(c"search_path", c"pg_catalog, pg_temp");
        let done = work();
        // SAFETY: ends the nest level that was begun above.
        unsafe { pg_sys::AtEOXact_GUC(settings == RoleSettings::Stay, nest_level) };
        done
    })
}

/// Does the same as [`with_rights`] for SQL in which every name is schema-qualified. Keeps the session's `search_path`.
pub(super) fn with_rights_for_qualified<T>(role: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    as_role(role, 0, work)
}

fn as_role<T>(role: pg_sys::Oid, bits: u32, work: impl FnOnce() -> T) -> T {
    let (mut user, mut context) = (pg_sys::InvalidOid, 0);
    let bits =
        (pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION | bits).cast_signed();
    // SAFETY: the caller is within a transaction. If `work` fails, the end of the transaction or subtransaction resets the
    // user, as for a SECURITY DEFINER function. The call only adds bits to the security context, and clears none.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
        pg_sys::SetUserIdAndSecContext(role, context | bits);
    }
    let done = work();
    // SAFETY: restores the values that were read above.
    unsafe { pg_sys::SetUserIdAndSecContext(user, context) };
    done
}

/// Returns whether the current role may SET ROLE to `role`. Call only within a transaction.
pub fn can_become(role: pg_sys::Oid) -> bool {
    // SAFETY: the caller is within a transaction.
    unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        return pg_sys::is_member_of_role(current(), role);
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        return pg_sys::member_can_set_role(current(), role);
    }
}

/// Returns whether the current role bypasses row-level security. Call only within a transaction.
pub fn bypasses_row_security() -> bool {
    // SAFETY: the caller is within a transaction.
    unsafe { pg_sys::has_bypassrls_privilege(current()) }
}
