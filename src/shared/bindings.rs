//! Counts of changes of each database's bindings of sequences. A process that cannot read them, as their table is locked,
//! goes by what it read last where this is as it was then.

use crate::pg::server;
use crate::pg::shmem::Shmem;
use std::sync::atomic::{AtomicU64, Ordering};

/// More databases than this share counters: a change in one has processes of another read once more.
const COUNTERS: usize = 256;

pub struct Changes([AtomicU64; COUNTERS]);

pub static CHANGES: Shmem<Changes> =
    Shmem::new(c"snowflake_ids bindings", || 0, |_| Some(Changes([const { AtomicU64::new(0) }; COUNTERS])));

impl Changes {
    fn of_database(&self) -> Option<&AtomicU64> {
        let database = usize::try_from(server::database()).unwrap_or_default();
        self.0.get(database % COUNTERS)
    }

    /// The changes of this database's bindings that were committed since the server started.
    pub fn count(&self) -> Option<u64> {
        self.of_database().map(|count| count.load(Ordering::Acquire))
    }

    /// Counts one, which others can see by now, and whose locks are still held.
    pub fn add(&self) {
        if let Some(count) = self.of_database() {
            count.fetch_add(1, Ordering::AcqRel);
        }
    }
}
