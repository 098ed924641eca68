//! A refiller: reserves segments for the tags of one database, and leaves when there is nothing to do, so that
//! the database can be dropped, renamed and copied.

mod job;
mod local;
mod remote;

use super::desk::Desk;
use super::leftover::Leftovers;
use super::{pending, rest};
use crate::pg::clock::uptime;
use crate::pg::process::PerProcess;
use crate::pg::shmem::segments::{Segments, segments};
use crate::pg::wait::Event;
use crate::pg::{libpq, server, worker};
use crate::segment::own;
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
static DESK: PerProcess<Cell<Option<&'static Desk>>> = PerProcess::new(Cell::new(None));

/// Runs until there was nothing to do for a while, or others wait for its place.
pub fn run(desk_number: u32, database: u32) {
    let desks = segments().map(|segments| segments.desks).unwrap_or_default();
    let number = usize::try_from(desk_number).unwrap_or(usize::MAX);
    let Some((segments, desk)) = segments().zip(desks.get(number)) else { return };
    worker::on_exit(go);
    if !desk.is_for(database) || !desk.station.enter() {
        return;
    }
    DESK.set(Some(desk));
    worker::on_fatal_error(|code| {
        if let Some(desk) = DESK.get() {
            desk.failure.store(code, Release);
        }
    });
    libpq::bound_by(time_left);
    worker::connect(database, LOCK_TIMEOUT);
    desk.connected.store(true, Release);
    // So that it knows that this database can be helped.
    segments.supervisor.wake();
    own::keep_quiet(true);
    let leftovers = Leftovers::of_database(database);
    let mut remote = Remote::default();
    let (mut last_work, mut stuck, mut pause_until) = (uptime(), None, Duration::ZERO);
    loop {
        let jobs = jobs(segments);
        if jobs.is_empty() {
            desk.served.store(true, Release);
            if desk.is_dismissed() || segments.crowded.load(Acquire) || !rest_at(desk, last_work) {
                return;
            }
            continue;
        }
        last_work = uptime();
        // What has failed is not tried again with each call that wakes this worker.
        let left = pause_until.saturating_sub(last_work);
        let (due, failed): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| left.is_zero() || !job.has_failed());
        let pause = serve(segments, &leftovers, &mut remote, &due);
        if due.iter().any(Job::is_answered) {
            desk.served.store(true, Release);
        }
        // Other databases wait. What is left to do here waits with them, for another refiller.
        if desk.is_dismissed() {
            due.iter().chain(&failed).for_each(Job::defer);
            return;
        }
        if !failed.is_empty() {
            worker::sleep(Event::Worker, pause.unwrap_or(left).min(left));
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
        worker::sleep(Event::Worker, pause);
    }
}

/// Sleeps where there is nothing to do; whether it is to look again.
fn rest_at(desk: &Desk, last_work: Duration) -> bool {
    desk.idle.store(true, Release);
    let stays = rest(last_work);
    desk.idle.store(false, Release);
    stays
}

/// How much longer this process may go on with what it is doing; None: as long as it takes. Where that is over, it is said
/// so of its turn.
fn time_left() -> Option<Duration> {
    let desk = DESK.get()?;
    let left = desk.time_left()?;
    if left.is_zero() {
        desk.cut.store(true, Release);
    }
    Some(left)
}

/// Whether this process should have left already.
fn is_overdue() -> bool {
    DESK.get().and_then(Desk::time_left).is_some_and(|left| left.is_zero())
}

/// Leaves the desk, whichever it is, and calls the supervisor, which takes it back: there may be requests that came too
/// late.
fn go() {
    let Some(segments) = segments() else { return };
    for desk in segments.desks {
        desk.station.leave();
    }
    segments.supervisor.wake();
}

/// The unanswered requests of this database.
fn jobs(segments: &'static Segments) -> Vec<Job> {
    let database = server::database();
    pending(segments).into_iter().filter_map(|place| Job::at(segments, place, database)).collect()
}

/// Reserves for all of them, and publishes. Gives a pause to be made where some could not be served.
fn serve(segments: &Segments, leftovers: &Leftovers, remote: &mut Remote, jobs: &[Job]) -> Option<Duration> {
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
        match local::serve(segments, leftovers, &empty) {
            Served::Here(pause) => return pause,
            Served::Elsewhere => {}
        }
    }
    remote.serve(segments, leftovers, &empty)
}
