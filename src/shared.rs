//! Shared memory. Each module describes one block of it, or a part of a block.

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

/// All blocks, in the order in which they follow each other in shared memory.
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
