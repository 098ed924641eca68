//! Roles: which one is calling, what follows from membership, and running something with a role's rights and no more.

use super::guc;
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

/// The role that the session is of, whichever function of another's rights it runs.
pub fn of_session() -> pg_sys::Oid {
    // SAFETY: reads a variable of this process.
    unsafe { pg_sys::GetSessionUserId() }
}

/// Returns whether the current role has the privileges of another one. Only within a transaction.
pub fn has_privileges_of(role: pg_sys::Oid) -> bool {
    has_rights_of(current(), role)
}

/// Returns whether `member` has the rights of `role` without SET ROLE. Only within a transaction.
pub fn has_rights_of(member: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    // SAFETY: as above; a role that is no more has no members.
    unsafe { pg_sys::has_privs_of_role(member, role) }
}

/// Returns whether a role may write to the rows of a table. Only within a transaction.
pub fn may_update(role: pg_sys::Oid, table: pg_sys::Oid) -> bool {
    let update = pg_sys::AclMode::from(pg_sys::ACL_UPDATE);
    // SAFETY: as above.
    unsafe { pg_sys::pg_class_aclcheck(table, role, update) == pg_sys::AclResult::ACLCHECK_OK }
}

/// Returns whether the current role may call a function. Only within a transaction.
pub fn may_execute(function: pg_sys::Oid) -> bool {
    let execute = pg_sys::AclMode::from(pg_sys::ACL_EXECUTE);
    // SAFETY: as above.
    let result = unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let result = pg_sys::pg_proc_aclcheck(function, current(), execute);
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let result = pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, current(), execute);
        result
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// Returns what a role is called. Only within a transaction.
pub fn name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: as above; a copy that belongs to the transaction's memory.
    let name = unsafe { pg_sys::GetUserNameFromId(role, true) };
    // SAFETY: null, or a name that ends with a zero byte.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

/// The action for a change of roles.
type OnRoleChange = fn();

static ON_CHANGE: PerProcess<Cell<Option<OnRoleChange>>> = PerProcess::new(Cell::new(None));
/// Number of times that this process was told.
static CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));

/// Has `action` called whenever a role, a membership or the owner of a database was changed.
pub fn on_change(action: OnRoleChange) {
    ON_CHANGE.set(Some(action));
    watch();
}

/// Counts such changes from now on.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        use pg_sys::SysCacheIdentifier::{AUTHMEMROLEMEM, AUTHOID, DATABASEOID};
        // The owner of the database is a member of pg_database_owner.
        for cache in [AUTHOID, AUTHMEMROLEMEM, DATABASEOID] {
            // SAFETY: registered once for the life of the process.
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

/// Returns the number of such changes since [`watch`].
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

/// The end of settings that were made for the rest of the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoleSettings {
    /// They end with what was run.
    End,
    /// They stay, as they do where a function with settings of its own ends: where it was our own code that ran.
    Stay,
}

/// Runs `work` with the rights of a role, and no more, as REINDEX and VACUUM run what an index computes. That role's code
/// can neither get the caller's rights back (SET ROLE and its like are refused) nor leave anything in the session. Names
/// mean what they mean in `pg_catalog`, whatever the session's `search_path`: else its user could have functions of its own
/// run. With `all_rows` FORCE ROW LEVEL SECURITY hides nothing from the owner of a table. Only within a transaction.
pub(super) fn with_rights<T>(
    role: pg_sys::Oid,
    all_rows: bool,
    settings: RoleSettings,
    work: impl FnOnce() -> T,
) -> T {
    let all_rows = if all_rows { pg_sys::SECURITY_NOFORCE_RLS } else { 0 };
    as_role(role, all_rows, || {
        // SAFETY: within a transaction, whose end also ends the settings of all nest levels.
        let nest_level = unsafe { pg_sys::NewGUCNestLevel() };
        guc::set_for_now(c"search_path", c"pg_catalog, pg_temp");
        let done = work();
        // SAFETY: what was begun above.
        unsafe { pg_sys::AtEOXact_GUC(settings == RoleSettings::Stay, nest_level) };
        done
    })
}

/// The same for SQL in which every name is qualified: names mean what they mean in the session.
pub(super) fn with_rights_for_qualified<T>(role: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    as_role(role, 0, work)
}

fn as_role<T>(role: pg_sys::Oid, bits: u32, work: impl FnOnce() -> T) -> T {
    let (mut user, mut context) = (pg_sys::InvalidOid, 0);
    let bits =
        (pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION | bits).cast_signed();
    // SAFETY: within a transaction. Where `work` fails, the end of the transaction or subtransaction resets the user,
    // as for every error within a function of another's rights. Bits of the context are only added.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&raw mut user, &raw mut context);
        pg_sys::SetUserIdAndSecContext(role, context | bits);
    }
    let done = work();
    // SAFETY: what was read above.
    unsafe { pg_sys::SetUserIdAndSecContext(user, context) };
    done
}

/// Returns whether the current role may become another one. Only within a transaction.
pub fn can_become(role: pg_sys::Oid) -> bool {
    // SAFETY: as above.
    unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        return pg_sys::is_member_of_role(current(), role);
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        return pg_sys::member_can_set_role(current(), role);
    }
}

/// Returns whether row security lets the current role see everything. Only within a transaction.
pub fn bypasses_row_security() -> bool {
    // SAFETY: as above.
    unsafe { pg_sys::has_bypassrls_privilege(current()) }
}
