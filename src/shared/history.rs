//! Readings of the server's counters over the last hour, which the launcher writes.

use crate::pg::shmem::Shmem;
use snowflake_ids_core::report::history::History;

pub static HISTORY: Shmem<History> = Shmem::new(c"snowflake_ids history", |_| Some(History::default()));
