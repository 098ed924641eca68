//! Messages between sessions, the launcher and the lease worker about leased worker ids, in shared memory.

use crate::pg::shmem::Shmem;
use crate::pg::wait::Condition;
use crate::shared::slot::SharedText;
use crate::shared::worker_slot::WorkerSlot;
use snowflake_ids_core::registry::lease_worker::LeaseRequests;
use std::sync::atomic::{AtomicU32, AtomicU64};

#[derive(Default)]
#[repr(C, align(64))]
pub struct Leases {
    pub requests: LeaseRequests,
    /// The condition variable that is signalled when a request was answered.
    pub answered: Condition,
    /// The slot of the lease worker, assigned by the launcher. At most one lease worker runs at a time.
    pub worker_slot: WorkerSlot,
    /// The `DatabaseUse` (role in leases of worker ids) of the database that the last lease worker inspected, plus 1.
    /// The launcher resets the field to 0 when reading it.
    pub found: AtomicU32,
    /// The number of lease workers, since server start, that have connected to their database.
    pub arrivals: AtomicU64,
    /// The database that the last lease worker could not connect to, because the database was locked; else 0.
    pub locked_out: AtomicU32,
    /// The foreign server that the worker id is leased from; empty if the worker id comes from this server. Written under the
    /// state lock.
    pub origin: SharedText<8>,
    /// The reason why there is no lease. Written by the lease worker, or by the launcher while the worker slot is free.
    pub trouble: SharedText<512>,
}

pub static LEASES: Shmem<Leases> = Shmem::new(c"snowflake_ids leases", |_| Some(Leases::default()));
