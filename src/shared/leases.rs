//! What sessions, the launcher and the lease worker tell each other of leased worker ids, in shared memory.

use crate::pg::condition::Condition;
use crate::pg::shmem::Block;
use crate::shared::slot::SharedText;
use crate::shared::worker_slot::WorkerSlot;
use snowflake_ids_core::lease_worker::LeaseRequests;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The block.
#[repr(C, align(64))]
pub struct Leases {
    /// What is asked of the lease worker.
    pub requests: LeaseRequests,
    /// Broadcast when a request was answered.
    pub answered: Condition,
    /// The lease worker's place: there is one at a time. Given out by the launcher.
    pub worker_slot: WorkerSlot,
    /// What a look into a database found: its oid, and below it how it ranks; 0 when that was read.
    pub survey: AtomicU64,
    /// How many lease workers have reached their database.
    pub arrivals: AtomicU64,
    /// The database whose lock a lease worker waited for in vain when it was to connect last; else 0.
    pub locked_out: AtomicU32,
    /// The foreign server that the worker id is leased from; empty: this server. Written under the state lock.
    pub origin: SharedText<8>,
    /// Why there is no lease. Written by the lease worker, or by the launcher while the worker slot is free.
    pub trouble: SharedText<512>,
}

static LEASES: AtomicPtr<Leases> = AtomicPtr::new(std::ptr::null_mut());

/// The block; None where the library was not preloaded.
pub fn leases() -> Option<&'static Leases> {
    // SAFETY: null, or what `attach` left there, which lives and stays where it is as long as this process.
    unsafe { LEASES.load(Ordering::Relaxed).as_ref() }
}

/// The block, as the server lays it out.
pub const BLOCK: Block = Block { name: c"snowflake_ids leases", size, fill, attach };

fn size() -> usize {
    size_of::<Leases>()
}

unsafe fn attach(block: *mut u8) {
    LEASES.store(block.cast(), Ordering::Relaxed);
}

#[allow(clippy::cast_ptr_alignment, reason = "blocks begin with a cache line")]
unsafe fn fill(block: *mut u8) {
    let leases = Leases {
        requests: LeaseRequests::default(),
        answered: Condition::new(),
        worker_slot: WorkerSlot::default(),
        survey: AtomicU64::new(0),
        arrivals: AtomicU64::new(0),
        locked_out: AtomicU32::new(0),
        origin: SharedText::default(),
        trouble: SharedText::default(),
    };
    let block: *mut Leases = block.cast();
    // SAFETY: the block is writable, aligned to a cache line and of the size above.
    unsafe { block.write(leases) };
}
