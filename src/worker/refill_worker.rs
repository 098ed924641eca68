//! A refill worker: reserves segments for the tags of one database, and leaves when there is nothing to do, so that
//! the database can be dropped, renamed and copied.

mod job;
mod local;
mod remote;

use super::carry_over::CarryOvers;
use super::{pending, rest};
use crate::pg::clock::uptime;
use crate::pg::process::PerProcess;
use crate::pg::wait::Event;
use crate::pg::{libpq, server, worker};
use crate::segment::own;
use crate::shared::segments::{Segments, segments};
use crate::shared::worker_slot::WorkerSlot;
use job::Job;
use local::Served;
use remote::Remote;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

/// How soon it tries again where a row is locked, or a transaction failed.
const RETRY: Duration = Duration::from_millis(20);
const RETRY_AFTER_FAILURE: Duration = Duration::from_millis(200);
/// What is locked must not keep other tags waiting.
const LOCK_TIMEOUT: &CStr = c"20ms";
/// For how long it tries the same requests.
const GIVE_UP: Duration = Duration::from_secs(10);

/// Where this process sits.
static WORKER_SLOT: PerProcess<Cell<Option<&'static WorkerSlot>>> = PerProcess::new(Cell::new(None));

/// Runs until there was nothing to do for a while, or others wait for its place.
pub fn run(worker_slot_number: u32, database: u32) {
    let worker_slots = segments().map(|segments| segments.worker_slots).unwrap_or_default();
    let number = usize::try_from(worker_slot_number).unwrap_or(usize::MAX);
    let Some((segments, worker_slot)) = segments().zip(worker_slots.get(number)) else { return };
    worker::on_exit(go);
    if !worker_slot.is_for(database) || !worker_slot.station.enter() {
        return;
    }
    WORKER_SLOT.set(Some(worker_slot));
    worker::on_fatal_error(|code| {
        if let Some(worker_slot) = WORKER_SLOT.get() {
            worker_slot.failure.store(code, Release);
        }
    });
    libpq::bound_by(time_left);
    worker::connect(database, LOCK_TIMEOUT);
    worker_slot.connected.store(true, Release);
    // So that it knows that this database can be helped.
    segments.launcher.wake();
    own::keep_quiet(true);
    let carry_overs = CarryOvers::of_database(database);
    let mut remote = Remote::default();
    let (mut last_work, mut stuck, mut pause_until) = (uptime(), None, Duration::ZERO);
    loop {
        let jobs = jobs(segments);
        if jobs.is_empty() {
            worker_slot.served.store(true, Release);
            if worker_slot.is_dismissed()
                || segments.crowded.load(Acquire)
                || !rest_at(worker_slot, last_work)
            {
                return;
            }
            continue;
        }
        last_work = uptime();
        // What has failed is not tried again with each call that wakes this worker.
        let left = pause_until.saturating_sub(last_work);
        let (due, failed): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| left.is_zero() || !job.has_failed());
        let pause = serve(segments, &carry_overs, &mut remote, &due);
        if due.iter().any(Job::is_answered) {
            worker_slot.served.store(true, Release);
        }
        // Other databases wait. What is left to do here waits with them, for another refill worker.
        if worker_slot.is_dismissed() {
            due.iter().chain(&failed).for_each(Job::defer);
            return;
        }
        if !failed.is_empty() {
            worker::sleep(Event::RefillWorker, pause.unwrap_or(left).min(left));
            continue;
        }
        let Some(pause) = pause else {
            stuck = None;
            continue;
        };
        if uptime().saturating_sub(*stuck.get_or_insert_with(uptime)) >= GIVE_UP {
            // Whoever still waits asks again; requests that nobody waits for any more don't keep it here.
            for job in &due {
                job.supplied();
            }
            stuck = None;
        }
        pause_until = uptime() + pause;
        worker::sleep(Event::RefillWorker, pause);
    }
}

/// Sleeps where there is nothing to do; whether it is to look again.
fn rest_at(worker_slot: &WorkerSlot, last_work: Duration) -> bool {
    worker_slot.idle.store(true, Release);
    let stays = rest(Event::RefillWorker, last_work);
    worker_slot.idle.store(false, Release);
    stays
}

/// How much longer this process may go on with what it is doing; None: as long as it takes. Where that is over, it is said
/// so of its turn.
fn time_left() -> Option<Duration> {
    let worker_slot = WORKER_SLOT.get()?;
    let left = worker_slot.time_left()?;
    if left.is_zero() {
        worker_slot.cut.store(true, Release);
    }
    Some(left)
}

/// Whether this process should have left already.
fn is_overdue() -> bool {
    WORKER_SLOT.get().and_then(WorkerSlot::time_left).is_some_and(|left| left.is_zero())
}

/// Leaves the worker slot, whichever it is, and calls the launcher, which takes it back: there may be requests that came too
/// late.
fn go() {
    let Some(segments) = segments() else { return };
    for worker_slot in segments.worker_slots {
        worker_slot.station.leave();
    }
    segments.launcher.wake();
}

/// The unanswered requests of this database.
fn jobs(segments: &'static Segments) -> Vec<Job> {
    let database = server::database();
    pending(segments).into_iter().filter_map(|place| Job::at(segments, place, database)).collect()
}

/// Reserves for all of them, and publishes. Gives a pause to be made where some could not be served.
fn serve(
    segments: &Segments,
    carry_overs: &CarryOvers,
    remote: &mut Remote,
    jobs: &[Job],
) -> Option<Duration> {
    let (full, empty): (Vec<&Job>, Vec<&Job>) = jobs.iter().partition(|job| !job.needs_ids());
    for job in full {
        job.supplied();
    }
    if empty.is_empty() {
        return None;
    }
    worker::show_activity(Some(&format!("reserving ids for {} of the tags in use", empty.len())));
    // Mostly it is as it was the last time.
    if !remote.is_used() {
        match local::serve(segments, carry_overs, &empty) {
            Served::Here(pause) => return pause,
            Served::Elsewhere => {}
        }
    }
    remote.serve(segments, carry_overs, &empty)
}
