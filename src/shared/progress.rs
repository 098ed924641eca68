//! The progress that each process shows of a long call, in shared memory.

use crate::pg::server;
use crate::pg::shmem::{Rest, Shmem};
use snowflake_ids_core::report::progress::ProgressSlot;

/// The block: a slot for each process that runs SQL.
pub static PROGRESS: Shmem<&[ProgressSlot]> = Shmem::new(
    c"snowflake_ids progress",
    || Rest::for_array::<ProgressSlot>(server::max_processes()),
    |rest| Some(rest.array(server::max_processes(), ProgressSlot::default)),
);

/// The slots of all processes; none where the library was not preloaded.
pub fn slots() -> &'static [ProgressSlot] {
    PROGRESS.get().copied().unwrap_or_default()
}

/// The slot of this process.
pub fn own_slot() -> Option<&'static ProgressSlot> {
    slots().get(server::process_number())
}
