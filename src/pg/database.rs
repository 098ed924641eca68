//! What databases there are.

use super::worker;
use pgrx::pg_sys;

/// Whether there is a database of this oid. Only within a transaction.
pub fn exists(database: u32) -> bool {
    // SAFETY: as above; the name is only looked at.
    unsafe { !pg_sys::get_database_name(database.into()).is_null() }
}

/// The same for workers, which have no transaction yet; true also where it can't be found out.
pub fn may_exist(database: u32) -> bool {
    worker::transaction(|| exists(database)).unwrap_or(true)
}
