//! The workers. The server has one launcher. Each database that needs one at the moment has a refill worker, which reserves
//! segments. A lease worker runs while there is something to do about the lease of the worker id.
//!
//! Nothing is passed from process to process. Requests stand in shared memory; being called only means to look
//! there. So a worker may die at any moment, and a call may get lost, without a request being so.

pub mod carry_over;
pub mod first_lease;
pub mod launcher;
pub mod lease_worker;
pub mod log;
pub mod refill_worker;
mod rest;

use crate::segment::place;
use crate::shared::registries;

/// Forgets what is in memory of a database of this oid, which is about to be created: all of it belongs to one that was
/// dropped. No session is connected to either. Where the creation fails, what was reserved for the former is a gap.
pub fn forget_database(database: u32) {
    place::leave_all(database, None);
    registries::forget(database);
}
