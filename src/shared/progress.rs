//! The progress that each process shows of a long call, in shared memory.

use crate::pg::server;
use crate::pg::shmem::{Rest, Shmem};
use snowflake_ids_core::report::progress::ProgressPlace;

/// The block: a place for each process that runs SQL.
pub static PROGRESS: Shmem<&[ProgressPlace]> = Shmem::new(
    c"snowflake_ids progress",
    || Rest::for_array::<ProgressPlace>(server::max_processes()),
    |rest| Some(rest.array(server::max_processes(), ProgressPlace::default)),
);

/// The places of all processes; none where the library was not preloaded.
pub fn places() -> &'static [ProgressPlace] {
    PROGRESS.get().copied().unwrap_or_default()
}

/// The place of this process.
pub fn own_place() -> Option<&'static ProgressPlace> {
    places().get(server::process_number())
}
