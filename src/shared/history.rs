//! The last hour of the server: readings of its counters, which the launcher writes.

use crate::pg::shmem::Shmem;
use snowflake_ids_core::report::history::History;

/// The block.
pub static HISTORY: Shmem<History> = Shmem::new(c"snowflake_ids history", || 0, |_| Some(History::default()));

/// Returns what is there; None where the library was not preloaded.
pub fn history() -> Option<&'static History> {
    HISTORY.get()
}
