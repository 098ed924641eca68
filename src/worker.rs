//! The workers. The server has one launcher. Each database that needs one at the moment has a refill worker, which reserves
//! segments. A lease worker runs while there is something to do about the lease of the worker id.
//!
//! Nothing is passed from process to process. Requests stand in shared memory; being called only means to look
//! there. So a worker may die at any moment, and a call may get lost, without a request being so.

pub mod launcher;
pub mod lease_worker;
pub mod log;
pub mod refill_worker;
mod rest;
pub mod saved_ranges;

use crate::pg::clock::uptime;
use crate::segment::slot;
use crate::shared::leases::leases;
use crate::shared::registries;
use crate::shared::segments::segments;
use std::time::Duration;

/// Time that a worker may go on with what it is doing in a database that is about to be dropped: the server waits for 5 s.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);

/// Forgets all of a database of this oid, which is about to be created: memory of it belongs to one that was dropped. No session is
/// connected to either. If the creation fails, ids reserved for the former are a gap.
pub fn forget_database(database: u32) {
    slot::leave_all(database, None);
    registries::forget(database);
}

/// Has the workers leave a database that is about to be dropped, which waits for them. If it stays after all, others come.
pub fn leave_database(database: u32) {
    let refill = segments().map(|segments| segments.worker_slots).unwrap_or_default();
    let lease = leases().map(|leases| &leases.worker_slot);
    for worker_slot in refill.iter().chain(lease).filter(|worker_slot| worker_slot.is_for(database)) {
        worker_slot.dismiss(uptime() + LEAVES_WITHIN);
    }
}
