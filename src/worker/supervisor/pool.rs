//! The refillers: which databases have one, of those that wait, where the server can run fewer than there are databases.
//! [`Turns`] decides; here it is found out who waits, and done what is decided.

use crate::pg::clock::uptime;
use crate::pg::shmem::generator::shared;
use crate::pg::shmem::segments::Segments;
use crate::pg::worker;
use crate::pg::{database, guc, server};
use crate::segment::place;
use crate::segment::slot::{Slot, Trouble};
use crate::worker::desk::Desk;
use crate::worker::pending;
use pgrx::bgworkers::{BackgroundWorkerStatus, DynamicBackgroundWorker};
use snowflake_ids_core::state::Identity;
use snowflake_ids_core::turns::{End, Plan, Turns, Want};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// How soon it tries again to start a refiller where others than this extension use all of the server's workers.
const RETRY: Duration = Duration::from_millis(50);
/// How soon it looks whether one that was started has reached its database.
const ARRIVAL: Duration = Duration::from_millis(100);

/// How many refillers there may be, of the workers that the server can run: beside the supervisor, the launcher of logical
/// replication where there is one, and, where the worker id is leased, the registrar. Places that others take are not
/// known; when there is none left, starting a worker fails.
fn places() -> usize {
    let launcher = guc::shown(c"max_logical_replication_workers").is_some_and(|most| most != "0");
    let leased = shared().is_some_and(|shared| matches!(shared.identity, Identity::Leased { .. }));
    let others = 1 + usize::from(launcher) + usize::from(leased);
    server::max_workers().saturating_sub(others).max(1)
}

/// The refillers, and who waits for one.
pub struct Pool {
    segments: &'static Segments,
    /// Those that were started, by the number of their desk.
    started: BTreeMap<usize, DynamicBackgroundWorker>,
    /// Whose turn is next.
    turns: Turns<u32, usize>,
    /// Databases that the last refiller could not connect to, and the SQLSTATE of its error.
    out_of_reach: BTreeMap<u32, i32>,
}

impl Pool {
    /// Without refillers but those that a former supervisor started.
    pub fn new(segments: &'static Segments) -> Self {
        Self { segments, started: BTreeMap::new(), turns: Turns::default(), out_of_reach: BTreeMap::new() }
    }

    /// Sees to it that as many of those who wait are served as can be, with so many others who wait for a worker's place
    /// and come first. Gives the time until it should look again, None if whenever.
    pub fn round(&mut self, others: usize) -> Option<Duration> {
        self.see_off();
        let waiting = self.waiting();
        let now = self.note(&waiting);
        let (places, given) = (places(), self.given().count());
        let plan = self.turns.plan(places, places.saturating_sub(given), others, now);
        self.make_room(&plan);
        let mut due = plan.due;
        let mut short = plan.short;
        if !self.begin(&plan.begin) {
            let now = self.note(&self.waiting());
            let plan = self.turns.plan(places, 0, others, now);
            self.make_room(&plan);
            due = [due, plan.due, Some(now + RETRY)].into_iter().flatten().min();
            short = true;
        }
        self.segments.crowded.store(short, Release);
        self.tell(short);
        let arrives = self.given().any(|(_, desk)| !desk.station.is_manned());
        let due = due.map(|due| due.saturating_sub(uptime()));
        [due, arrives.then_some(ARRIVAL)].into_iter().flatten().min()
    }

    /// Takes the desks of refillers back that have ended.
    fn see_off(&mut self) {
        let ended =
            |worker: &DynamicBackgroundWorker| matches!(worker.pid(), Err(BackgroundWorkerStatus::Stopped));
        let all: Vec<usize> =
            self.started.iter().filter(|(_, worker)| ended(worker)).map(|(number, _)| *number).collect();
        for number in all {
            self.started.remove(&number);
            if let Some(desk) = self.segments.desks.get(number) {
                self.note_end(desk);
            }
        }
        // What a former supervisor started tells nobody that it has ended.
        for (number, desk) in self.given() {
            if !self.started.contains_key(&number) && !desk.station.is_manned() {
                desk.free();
            }
        }
    }

    fn note_end(&mut self, desk: &Desk) {
        let (database, end) = (desk.database.load(Acquire), desk.end());
        if end == End::OutOfReach {
            self.out_of_reach.insert(database, desk.failure.load(Relaxed));
        } else {
            self.out_of_reach.remove(&database);
        }
        self.turns.ended(database, end, uptime());
        desk.free();
    }

    /// The desks that are given out.
    fn given(&self) -> impl Iterator<Item = (usize, &'static Desk)> + use<> {
        self.segments.desks.iter().enumerate().filter(|(_, desk)| !desk.is_for(0))
    }

    /// The tags that wait for ids, and their databases.
    fn asked(&self) -> Vec<(u32, &'static Slot)> {
        let directory = self.segments.directory.read();
        let one = |place| Some((directory.get(place)?.database, self.segments.slots.get(place)?));
        pending(self.segments).into_iter().filter_map(one).collect()
    }

    /// The databases with requests and without a refiller, and what for.
    fn waiting(&self) -> BTreeMap<u32, Want> {
        let mut waiting = BTreeMap::new();
        for (database, slot) in self.asked() {
            if self.given().any(|(_, desk)| desk.is_for(database)) {
                continue;
            }
            let want = waiting.entry(database).or_insert(Want::Ahead);
            if slot.segment.shelves().left() == 0 {
                *want = Want::Now;
            }
        }
        waiting
    }

    fn note(&mut self, waiting: &BTreeMap<u32, Want>) -> Duration {
        let now = uptime();
        let served =
            self.given().map(|(number, desk)| (number, desk.database.load(Acquire), desk.idle.load(Acquire)));
        self.turns.note(waiting.iter().map(|(database, want)| (*database, *want)), served, now);
        now
    }

    /// Starts refillers for these databases; false where one could not be started.
    fn begin(&mut self, databases: &[u32]) -> bool {
        databases.iter().all(|database| {
            let exists = database::may_exist(*database);
            if !exists {
                place::leave_all(*database, None);
                self.turns.forget(|one| one == *database);
                self.out_of_reach.remove(database);
            }
            !exists || self.start(*database)
        })
    }

    fn start(&mut self, database: u32) -> bool {
        let free = |(_, desk): &(usize, &Desk)| desk.is_for(0);
        let Some((number, desk)) = self.segments.desks.iter().enumerate().find(free) else { return false };
        desk.give_out(database);
        let started = worker::start_refiller(u32::try_from(number).unwrap_or(u32::MAX), database);
        if started.is_err() {
            desk.free();
        }
        started.is_ok_and(|worker| self.started.insert(number, worker).is_none())
    }

    /// Has those leave who are to, and ends those who have not in time.
    fn make_room(&self, plan: &Plan<u32, usize>) {
        for (number, by) in &plan.leave {
            if let Some(desk) = self.segments.desks.get(*number) {
                desk.dismiss(*by);
            }
        }
        for number in &plan.end {
            if let (Some(desk), Some(Ok(pid))) =
                (self.segments.desks.get(*number), self.started.get(number).map(DynamicBackgroundWorker::pid))
            {
                desk.cut.store(true, Release);
                worker::terminate(pid);
            }
        }
    }

    /// Notes at the tags that wait why they do, so that those learn of it who wait in vain.
    fn tell(&self, short: bool) {
        if !short && self.out_of_reach.is_empty() {
            return;
        }
        for (database, slot) in self.asked() {
            if let Some(code) = self.out_of_reach.get(&database) {
                slot.trouble.set(Trouble::OutOfReach(*code));
            } else if short
                && slot.trouble.get().is_none()
                && !self.given().any(|(_, desk)| desk.is_for(database))
            {
                slot.trouble.set(Trouble::NoWorker);
            }
        }
    }
}
