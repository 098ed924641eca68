//! A refill worker, which reserves segments for the tags of one database. The worker exits when there is nothing to do, so
//! that the database can be dropped, renamed or copied.

mod host;

use super::saved_ranges;
use crate::issuer;
use crate::pg::per_process::PerProcess;
use crate::pg::{libpq, process};
use crate::registry::call::{Libpq, RegistryCaller};
use crate::shared::segments::SEGMENTS;
use crate::shared::worker_slot::WorkerSlot;
use crate::tag::transaction_tags;
use host::RefillServer;
use snowflake_ids_core::process::refill as core;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;

/// The longest wait for a lock. The limit is short, because the database's other tags must wait meanwhile.
const LOCK_TIMEOUT: &CStr = c"20ms";
static WORKER_SLOT: PerProcess<Cell<Option<&'static WorkerSlot>>> = PerProcess::new(Cell::new(None));

/// Runs until there has been no work for a while, or until another database needs the worker slot.
pub fn run(worker_slot_number: u32, database: u32) {
    let worker_slots = SEGMENTS.get().map(|segments| segments.worker_slots).unwrap_or_default();
    let number = usize::try_from(worker_slot_number).unwrap_or(usize::MAX);
    let Some((segments, worker_slot)) = SEGMENTS.get().zip(worker_slots.get(number)) else { return };
    process::on_exit(leave);
    if !worker_slot.is_for(database) || !worker_slot.worker_latch.enter() {
        return;
    }
    WORKER_SLOT.set(Some(worker_slot));
    process::on_fatal_error(|code| {
        if let Some(worker_slot) = WORKER_SLOT.get() {
            worker_slot.failure.store(code, Release);
        }
    });
    libpq::bound_by(time_left);
    process::connect(database, LOCK_TIMEOUT);
    issuer::record_reserved();
    worker_slot.connected.store(true, Release);
    // Tells the launcher that a worker can connect to this database.
    segments.launcher.wake();
    transaction_tags::keep_quiet(true);
    let saved_ranges = saved_ranges::of_database(database);
    let host = RefillServer { segments, worker_slot, database };
    core::RefillWorker::new(&host, RegistryCaller::new(Libpq), saved_ranges).run();
}

/// Returns the time that this process may still run; None without a limit. If no time is left, marks the time slice as cut
/// short.
fn time_left() -> Option<Duration> {
    let worker_slot = WORKER_SLOT.get()?;
    let left = worker_slot.time_left()?;
    if left.is_zero() {
        worker_slot.cut.store(true, Release);
    }
    Some(left)
}

/// Leaves the worker slot and wakes the launcher, which frees the slot. The launcher also finds requests that arrived after
/// this worker's last search.
fn leave() {
    let Some(segments) = SEGMENTS.get() else { return };
    for worker_slot in segments.worker_slots {
        worker_slot.worker_latch.leave();
    }
    segments.launcher.wake();
}
