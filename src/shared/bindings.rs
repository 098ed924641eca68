//! Counters of changes to the bound sequences of each database (sequences whose numbers come from this extension). A process
//! that cannot read the table of bindings because of a lock uses its cached bindings. The cached bindings are valid if the
//! counter has not changed since they were read.

use crate::pg::server;
use crate::pg::shmem::Shmem;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of counters. If there are more databases, some databases share a counter. Sessions in these databases read
/// their bindings more often than needed.
const COUNTERS: usize = 256;

pub struct Changes([AtomicU64; COUNTERS]);

pub static CHANGES: Shmem<Changes> =
    Shmem::new(c"snowflake_ids bindings", |_| Some(Changes([const { AtomicU64::new(0) }; COUNTERS])));

impl Changes {
    fn of_database(&self) -> &AtomicU64 {
        &self.0[server::database() as usize % COUNTERS]
    }

    /// Returns the number of changes to this database's bindings since server start.
    pub fn count(&self) -> u64 {
        self.of_database().load(Ordering::Acquire)
    }

    /// Counts a change that was committed, prepared or rolled back. The caller still holds the locks of its transaction.
    pub fn add(&self) {
        self.of_database().fetch_add(1, Ordering::AcqRel);
    }
}
