//! Progress of long calls, in shared memory: one slot for each process.

use crate::pg::server;
use crate::pg::shmem::Shmem;
use snowflake_ids_core::report::progress::ProgressSlot;

pub static PROGRESS: Shmem<&[ProgressSlot]> = Shmem::new(c"snowflake_ids progress", |rest| {
    Some(rest.array(server::max_processes(), ProgressSlot::default))
});

/// Returns the slots of all processes; empty if the library was not preloaded.
pub fn slots() -> &'static [ProgressSlot] {
    PROGRESS.get().copied().unwrap_or_default()
}

/// Returns the slot of this process.
pub fn own_slot() -> Option<&'static ProgressSlot> {
    slots().get(server::process_number())
}
