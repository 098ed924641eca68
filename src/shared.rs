//! Shared memory: the generator and its counters, the tags in use with their buffers, what is known of leases and registries,
//! the keys of monotonic series, the slots of the workers, what the server did lately, how far long calls have come, and how
//! often bindings of sequences changed.

pub mod bindings;
pub mod generator;
pub mod history;
pub mod leases;
pub mod progress;
pub mod registries;
pub mod sections;
pub mod segments;
pub mod slot;
pub mod worker_slot;

use crate::pg::shmem::SharedBlock;

/// All blocks, in the order in which they are laid out.
pub static BLOCKS: [&dyn SharedBlock; 8] = [
    &generator::SHARED,
    &segments::SEGMENTS,
    &leases::LEASES,
    &registries::REGISTRIES,
    &sections::SECTIONS,
    &history::HISTORY,
    &progress::PROGRESS,
    &bindings::CHANGES,
];
