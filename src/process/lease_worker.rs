//! The lease worker's process. The logic is in the core's `LeaseWorker`. The worker exits when there is nothing to do, so
//! that the database can be dropped or copied.

pub mod host;

use super::rest::rest;
use crate::issuer::issuer;
use crate::lease;
use crate::pg::clock::uptime;
use crate::pg::process;
use crate::pg::wait::Event;
use crate::registry::call::{Libpq, RegistryCaller};
use crate::shared::generator::SHARED;
use crate::shared::leases::{LEASES, Leases};
use host::LeaseServer;
use pgrx::{PgSqlErrorCode as Code, PgTryBuilder};
use snowflake_ids_core::registry::lease_launch::{DatabaseUse, LeaseTask};
use snowflake_ids_core::registry::lease_worker::{LeaseWorker, Round};
use std::ffi::CStr;
use std::sync::atomic::Ordering::{AcqRel, Release};

/// The longest wait for a lock.
const LOCK_TIMEOUT: &CStr = c"1s";

/// Runs until there has been no work for a while, or until no work is possible in this database.
pub fn run(task: LeaseTask, database: u32) {
    let Some((leases, shared)) = LEASES.get().zip(SHARED.get()) else { return };
    process::on_exit(go);
    if !leases.worker_slot.is_for(database) || !leases.worker_slot.worker_latch.enter() {
        return;
    }
    connect(leases, database);
    leases.arrivals.fetch_add(1, AcqRel);
    let mut server = LeaseServer { shared, leases, caller: RegistryCaller::new(Libpq) };
    match task {
        LeaseTask::Look => report(leases, server.look()),
        LeaseTask::Serve => serve(server),
    }
}

/// Connects to the database. If the database is locked, records the lock in shared memory and fails.
fn connect(leases: &Leases, database: u32) {
    let locked_out = &leases.locked_out;
    locked_out.store(0, Release);
    PgTryBuilder::new(|| process::connect(database, LOCK_TIMEOUT))
        .catch_when(Code::ERRCODE_LOCK_NOT_AVAILABLE, move |error| {
            locked_out.store(database, Release);
            error.rethrow()
        })
        .execute();
}

/// Leaves the worker slot and wakes the launcher, because requests may have arrived after this worker's last search.
fn go() {
    let Some(leases) = LEASES.get() else { return };
    if leases.worker_slot.worker_latch.leave() {
        leases.worker_slot.free();
    }
    lease::call(leases);
}

/// Records for the launcher whether this database is a registry, uses a registry, or neither. Stores 0 if this is unknown.
fn report(leases: &Leases, found: Option<DatabaseUse>) {
    leases.found.store(found.map_or(0, |found| 1 + found as u32), Release);
}

fn serve(server: LeaseServer) {
    let (mut last_work, leases) = (uptime(), server.leases);
    let mut worker = LeaseWorker::new(issuer(server.shared), server, &leases.requests);
    loop {
        match worker.round() {
            Round::Served => last_work = uptime(),
            Round::Idle if leases.worker_slot.is_dismissed() => return,
            Round::Idle if rest(Event::LeaseWorker, last_work) => {}
            Round::Idle | Round::Elsewhere => return,
            Round::Nowhere => return report(leases, Some(DatabaseUse::None)),
        }
    }
}
