//! The object access hook, which reports new, dropped and altered objects, and calls of `setval`.

use super::utility::{self, Change};
use super::{extension, redirect, sequence};
use pgrx::{pg_guard, pg_sys};
use std::ffi::{c_int, c_void};

static mut PREVIOUS: pg_sys::object_access_hook_type = None;

/// Installs the hook, which calls functions of [`utility::Watch`]. Call this function only while the server loads libraries.
pub fn watch() {
    // SAFETY: hooks are chained in the postmaster, which is single-threaded.
    unsafe {
        PREVIOUS = pg_sys::object_access_hook;
        pg_sys::object_access_hook = Some(on_access);
    }
}

/// Handles an event. This function has no pgrx guard and no values to drop, so errors of the previous hook can safely jump
/// over it.
unsafe extern "C-unwind" fn on_access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    part: c_int,
    argument: *mut c_void,
) {
    // SAFETY: the previous hook is called once, with the server's arguments.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(access, class, object, part, argument);
        }
    }
    let is_watched = match class {
        pg_sys::DatabaseRelationId => true,
        pg_sys::AttrDefaultRelationId => access == pg_sys::ObjectAccessType::OAT_DROP,
        pg_sys::TypeRelationId => access == pg_sys::ObjectAccessType::OAT_DROP || utility::TYPES.get(),
        pg_sys::ConstraintRelationId => {
            access == pg_sys::ObjectAccessType::OAT_POST_CREATE && utility::TYPES.get()
        }
        pg_sys::RelationRelationId => match access {
            pg_sys::ObjectAccessType::OAT_POST_CREATE => utility::CREATES.get(),
            pg_sys::ObjectAccessType::OAT_POST_ALTER if part == 0 => utility::ALTERS.get(),
            pg_sys::ObjectAccessType::OAT_POST_ALTER => utility::ALTERS_COLUMNS.get(),
            _ => part == 0 && access == pg_sys::ObjectAccessType::OAT_DROP,
        },
        _ => access == pg_sys::ObjectAccessType::OAT_FUNCTION_EXECUTE && redirect::is_setval(object),
    };
    if is_watched {
        notify(access, class, object, part);
    }
}

#[pg_guard]
extern "C-unwind" fn notify(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    part: c_int,
) {
    use pg_sys::ObjectAccessType as Access;
    let Some(watch) = utility::WATCH.get() else { return };
    match (class, access) {
        (pg_sys::DatabaseRelationId, Access::OAT_POST_CREATE) => (watch.database_created)(object.to_u32()),
        (pg_sys::DatabaseRelationId, Access::OAT_DROP) => (watch.database_dropped)(object.to_u32()),
        (pg_sys::AttrDefaultRelationId, _) => (watch.default_dropped)(object, false),
        (pg_sys::TypeRelationId, Access::OAT_DROP) => {
            extension::keep_columns_of(object);
            (watch.default_dropped)(object, true);
        }
        (pg_sys::TypeRelationId, Access::OAT_POST_CREATE | Access::OAT_POST_ALTER)
        | (pg_sys::ConstraintRelationId, _) => utility::record_type(class, object),
        (pg_sys::RelationRelationId, Access::OAT_DROP) if sequence::is_sequence(object) => {
            (watch.sequence_dropped)(object);
        }
        (pg_sys::RelationRelationId, Access::OAT_POST_CREATE) => {
            utility::record_column(Change::Created, object, part);
        }
        (pg_sys::RelationRelationId, Access::OAT_POST_ALTER) if part != 0 => {
            utility::record_column(Change::Altered, object, part);
        }
        (pg_sys::RelationRelationId, Access::OAT_POST_ALTER) if sequence::is_sequence(object) => {
            utility::record_altered(object);
        }
        (_, Access::OAT_FUNCTION_EXECUTE) => (watch.setval_called)(),
        _ => {}
    }
}
