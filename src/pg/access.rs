//! Events of objects that the server tells of: a database is created, a sequence altered or dropped, a type dropped, a function about
//! to be called.

use super::{extension, redirect, sequence, utility};
use pgrx::{pg_guard, pg_sys};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// The functions that are called.
#[derive(Clone, Copy, Debug)]
pub struct AccessWatch {
    /// Before a session can connect to a new database. Must not fail. The creation may fail later.
    pub database_created: fn(u32),
    /// A database of this oid is about to be dropped, once no process is connected to it. Must not fail.
    pub database_dropped: fn(u32),
    /// A sequence is dropped, unless the transaction is rolled back.
    pub sequence_dropped: fn(pg_sys::Oid),
    /// The server's own setval is about to be called, in an expression or by itself.
    pub setval_called: fn(),
}

static WATCH: OnceLock<AccessWatch> = OnceLock::new();
static mut PREVIOUS: pg_sys::object_access_hook_type = None;

/// Has these called, in the session that it happens in. Only while the server loads libraries.
pub fn watch(watch: AccessWatch) {
    WATCH.get_or_init(|| watch);
    // SAFETY: hooks are chained in the postmaster, which is single-threaded.
    unsafe {
        PREVIOUS = pg_sys::object_access_hook;
        pg_sys::object_access_hook = Some(on_access);
    }
}

/// Has no guard around it, and no destructor in it: an error of the hook before passes through it whole, as through a
/// function in C.
unsafe extern "C-unwind" fn on_access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    part: c_int,
    argument: *mut c_void,
) {
    // SAFETY: the hook that was set before ours is called once, as the server would have.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(access, class, object, part, argument);
        }
    }
    let is_watched = match class {
        pg_sys::DatabaseRelationId => true,
        pg_sys::TypeRelationId => access == pg_sys::ObjectAccessType::OAT_DROP,
        pg_sys::RelationRelationId => {
            let is_altered = access == pg_sys::ObjectAccessType::OAT_POST_ALTER && utility::alters_sequence();
            part == 0 && (is_altered || access == pg_sys::ObjectAccessType::OAT_DROP)
        }
        _ => access == pg_sys::ObjectAccessType::OAT_FUNCTION_EXECUTE && redirect::is_setval(object),
    };
    if is_watched {
        notify(access, class, object);
    }
}

#[pg_guard]
extern "C-unwind" fn notify(access: pg_sys::ObjectAccessType::Type, class: pg_sys::Oid, object: pg_sys::Oid) {
    use pg_sys::ObjectAccessType as Access;
    let Some(watch) = WATCH.get() else { return };
    match (class, access) {
        (pg_sys::DatabaseRelationId, Access::OAT_POST_CREATE) => (watch.database_created)(object.to_u32()),
        (pg_sys::DatabaseRelationId, Access::OAT_DROP) => (watch.database_dropped)(object.to_u32()),
        (pg_sys::TypeRelationId, Access::OAT_DROP) => extension::keep_columns_of(object),
        (pg_sys::RelationRelationId, Access::OAT_DROP) if sequence::is_sequence(object) => {
            (watch.sequence_dropped)(object);
        }
        (pg_sys::RelationRelationId, Access::OAT_POST_ALTER) if sequence::is_sequence(object) => {
            utility::record_altered(object);
        }
        (_, Access::OAT_FUNCTION_EXECUTE) => (watch.setval_called)(),
        _ => {}
    }
}
