//! What databases there are.

use super::worker;
use pgrx::pg_sys;

/// Whether there is a database of this oid; also where that can't be found out. For workers.
pub fn exists(database: u32) -> bool {
    // SAFETY: within a transaction; the name is only looked at.
    let known = worker::transaction(|| unsafe { !pg_sys::get_database_name(database.into()).is_null() });
    known.unwrap_or(true)
}
