//! The background workers.
//!
//! The server has one launcher. Each database with requests gets a refill worker, which reserves segments. A lease worker
//! runs while the lease of the server's worker id has to be obtained, renewed or checked.
//!
//! Requests are in shared memory, and a wake-up only tells a worker to read them. So a dead worker or a lost wake-up loses
//! no request.

pub mod launcher;
pub mod lease_worker;
pub mod log;
pub mod refill_worker;
mod rest;
pub mod saved_ranges;

use crate::pg::clock::uptime;
use crate::shared::leases::LEASES;
use crate::shared::registries;
use crate::shared::segments::SEGMENTS;
use crate::tag::slot;
use std::time::Duration;

/// The time that a worker may continue in a database that is about to be dropped. DROP DATABASE waits 5 s for other processes
/// to leave the database.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);

/// Frees the shared memory of a dropped database whose oid a new database is about to get. No session is connected to either
/// database.
pub fn forget_database(database: u32) {
    slot::leave_all(database, None);
    registries::forget(database);
}

/// Asks the workers to leave a database that is about to be dropped. If the drop fails, the launcher starts new workers.
pub fn leave_database(database: u32) {
    let refill = SEGMENTS.get().map(|segments| segments.worker_slots).unwrap_or_default();
    let lease = LEASES.get().map(|leases| &leases.worker_slot);
    for worker_slot in refill.iter().chain(lease).filter(|worker_slot| worker_slot.is_for(database)) {
        worker_slot.dismiss(uptime() + LEAVES_WITHIN);
    }
}
