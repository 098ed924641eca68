//! What sessions, the launcher and the lease worker tell each other of leased worker ids, in shared memory.

use crate::pg::condition::Condition;
use crate::pg::shmem::Block;
use crate::shared::slot::SharedText;
use crate::shared::worker_slot::WorkerSlot;
use snowflake_ids_core::request::Request;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The block.
#[repr(C, align(64))]
pub struct Leases {
    /// Requests to look after the lease.
    pub request: Request,
    /// Broadcast when a request was answered.
    pub answered: Condition,
    /// The lease worker's place: there is one at a time. Given out by the launcher.
    pub worker_slot: WorkerSlot,
    /// Whether the lease is to be renewed, however far its expiry is. Stays until it was.
    pub renew: AtomicBool,
    /// The era of the generator in which a caller found the clock behind, and wants another worker id; plus 1, and 0 when
    /// nobody does.
    pub behind: AtomicU64,
    /// The database that is to be the registry from now on, by its oid, or [`ANY`], until the launcher has seen it;
    /// else 0.
    pub moved_to: AtomicU32,
    /// The database whose wish to be the registry, or not to be it any more, was rolled back, until the launcher has
    /// seen it; else 0.
    pub stays: AtomicU32,
    /// What a look into a database found: its oid, and below it how it ranks; 0 when that was read.
    pub survey: AtomicU64,
    /// How many lease workers have reached their database.
    pub arrivals: AtomicU64,
    /// The database whose lock a lease worker waited for in vain when it was to connect last; else 0.
    pub locked_out: AtomicU32,
    /// For how long the registry granted the lease when it was asked last, in microseconds, and when that was, by uptime; 0
    /// where it is not known. Written by the lease worker.
    pub granted: AtomicU64,
    /// When.
    pub granted_at: AtomicU64,
    /// The foreign server that the worker id is leased from; empty: this server. Written under the state lock.
    pub origin: SharedText<8>,
    /// Why there is no lease. Written by the lease worker, or by the launcher while the worker slot is free.
    pub trouble: SharedText<512>,
}

/// No database in particular.
pub const ANY: u32 = u32::MAX;

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
        request: Request::default(),
        answered: Condition::new(),
        worker_slot: WorkerSlot::default(),
        renew: AtomicBool::new(false),
        behind: AtomicU64::new(0),
        moved_to: AtomicU32::new(0),
        stays: AtomicU32::new(0),
        survey: AtomicU64::new(0),
        arrivals: AtomicU64::new(0),
        locked_out: AtomicU32::new(0),
        granted: AtomicU64::new(0),
        granted_at: AtomicU64::new(0),
        origin: SharedText::default(),
        trouble: SharedText::default(),
    };
    let block: *mut Leases = block.cast();
    // SAFETY: the block is writable, aligned to a cache line and of the size above.
    unsafe { block.write(leases) };
}
