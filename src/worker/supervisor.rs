//! The supervisor: sees to it that each database with unanswered requests has a refiller.

mod leases;
mod marks;

use super::desk::Desk;
use super::{leftover, pending};
use crate::pg::clock::uptime;
use crate::pg::shmem::generator::shared;
use crate::pg::shmem::registries;
use crate::pg::shmem::segments::{Segments, segments};
use crate::pg::wait::Event;
use crate::pg::worker::{self, Sleep, Unavailable};
use crate::pg::{database, guc, server};
use crate::segment::place;
use crate::segment::slot::Trouble;
use leases::Leases;
use marks::Marks;
use pgrx::bgworkers::{BackgroundWorkerStatus, DynamicBackgroundWorker};
use snowflake_ids_core::state::Identity;
use snowflake_ids_core::turns::{TURN, Turns};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often it looks around unasked.
const LOOK_AROUND: Duration = Duration::from_secs(5);
/// How often at most it looks at all tags, however often it is called.
const LOOK_AT_TAGS: Duration = Duration::from_secs(1);
/// How soon it tries again to start a refiller, at first and in the end.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// When a failure is forgotten.
const FORGIVE: Duration = Duration::from_mins(1);

/// Runs until the server stops.
pub fn run() {
    let Some(segments) = segments() else { return };
    if !segments.supervisor.enter() {
        return;
    }
    worker::on_exit(|| {
        if let Some(segments) = crate::pg::shmem::segments::segments() {
            segments.supervisor.leave();
        }
    });
    let mut supervisor = Supervisor {
        segments,
        started: BTreeMap::new(),
        refused: BTreeMap::new(),
        turns: Turns::default(),
        looked: None,
        marks: Marks::default(),
        leases: Leases::new(),
    };
    supervisor.marks.begin();
    loop {
        let pause = supervisor.round();
        if worker::sleep(Event::Supervisor, pause) == Sleep::Stopped {
            supervisor.marks.end();
            leftover::save(segments);
            worker::end();
        }
    }
}

/// What became of a database that waits.
enum Helped {
    /// Its refiller is on the way.
    Started,
    /// There is no place for one.
    NoPlace,
    /// The last one did not get through just before, or the database is not there.
    NotNow,
}

/// How many refillers there may be, of the workers that the server can run: beside the supervisor, the launcher of logical
/// replication where there is one, and, where the worker id is leased, the registrar. Places that others take are not
/// known; when there is none left, starting a worker fails.
fn most_refillers() -> usize {
    let launcher = guc::shown(c"max_logical_replication_workers").is_some_and(|most| most != "0");
    let leased = shared().is_some_and(|shared| matches!(shared.identity, Identity::Leased { .. }));
    let others = 1 + usize::from(launcher) + usize::from(leased);
    server::max_workers().saturating_sub(others).max(1)
}

struct Supervisor {
    segments: &'static Segments,
    /// The refillers it started, by the number of their desk.
    started: BTreeMap<usize, DynamicBackgroundWorker>,
    /// Databases whose refiller could not be started or did not get through, and when to try again.
    refused: BTreeMap<u32, (Instant, Duration)>,
    /// Whose refiller is next where there are more databases than workers: by the number of the desk, and its database.
    turns: Turns<u32, (usize, u32)>,
    /// When it looked at all tags last.
    looked: Option<Instant>,
    /// The high-water mark of snowflake ids.
    marks: Marks,
    /// The worker id.
    leases: Leases,
}

impl Supervisor {
    /// Looks around once; gives the time until it should do so again.
    fn round(&mut self) -> Duration {
        self.clear_desks();
        self.forgive();
        // First: the worker id is the whole server's.
        let lease_due = self.leases.round();
        let short = self.serve_in_turn();
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_AT_TAGS) {
            self.looked = Some(Instant::now());
            self.look_at_tags();
        }
        let due = [self.marks.round(), lease_due, short.then_some(TURN)].into_iter().flatten().min();
        self.pause().min(due.unwrap_or(LOOK_AROUND))
    }

    /// The time until something is due.
    fn pause(&self) -> Duration {
        let now = Instant::now();
        // A desk that is given out and not taken yet is looked at again soon.
        let starting = self.segments.desks.iter().any(|desk| !desk.is_for(0) && !desk.station.is_manned());
        let soon = if starting { BACKOFF.0 } else { LOOK_AROUND };
        let again = self.refused.values().map(|(again, _)| *again).filter(|again| *again > now).min();
        again.map_or(soon, |again| (again - now).clamp(Duration::from_millis(10), soon))
    }

    /// Starts refillers for the databases that wait, as many as there may be; where that is not enough, those that have
    /// been at work for longest make room. Whether somebody goes on waiting for a place.
    fn serve_in_turn(&mut self) -> bool {
        let now = uptime();
        let given = self.segments.desks.iter().filter(|desk| !desk.is_for(0)).count();
        let mut room = most_refillers().saturating_sub(given);
        self.turns.note(self.databases_waiting(), self.at_work(), now);
        let mut short = usize::from(self.leases.is_short());
        if short > 0 {
            room = 0;
        }
        for database in self.turns.queue() {
            match self.help(database, room > 0) {
                Helped::Started => room -= 1,
                Helped::NoPlace => {
                    room = 0;
                    short += 1;
                }
                Helped::NotNow => {}
            }
        }
        for (number, _) in self.turns.leavers(short, now) {
            if let Some(desk) = self.segments.desks.get(number) {
                desk.dismiss();
            }
        }
        short > 0
    }

    /// Frees the desks of refillers that ended before they sat down.
    fn clear_desks(&mut self) {
        let ended: Vec<usize> = self
            .started
            .iter()
            .filter(|(_, worker)| matches!(worker.pid(), Err(BackgroundWorkerStatus::Stopped)))
            .map(|(number, _)| *number)
            .collect();
        for number in ended {
            self.started.remove(&number);
            if let Some(desk) = self.segments.desks.get(number).filter(|desk| !desk.station.is_manned()) {
                desk.free();
            }
        }
    }

    /// Forgets the failures of databases whose refiller got through, or that need none any more.
    fn forgive(&mut self) {
        let reached = |desk: &Desk| desk.connected.load(Ordering::Relaxed);
        let now = Instant::now();
        self.refused.retain(|database, (again, _)| {
            let helped = self.segments.desks.iter().any(|desk| desk.is_for(*database) && reached(desk));
            !helped && now < *again + FORGIVE
        });
    }

    /// The databases with requests and without a refiller.
    fn databases_waiting(&self) -> BTreeSet<u32> {
        let directory = self.segments.directory.read();
        pending(self.segments)
            .filter_map(|place| Some(directory.get(place)?.database))
            .filter(|database| !self.segments.desks.iter().any(|desk| desk.is_for(*database)))
            .collect()
    }

    /// The desks of the refillers that have reached their databases, and these.
    fn at_work(&self) -> Vec<(usize, u32)> {
        let reached = |(_, desk): &(usize, &Desk)| desk.connected.load(Ordering::Relaxed);
        let desks = self.segments.desks.iter().enumerate().filter(reached);
        desks.map(|(number, desk)| (number, desk.database.load(Ordering::Acquire))).collect()
    }

    /// Starts a refiller for a database, if there is room for one.
    fn help(&mut self, database: u32, has_room: bool) -> Helped {
        let now = Instant::now();
        let delay = match self.refused.get(&database) {
            Some((again, _)) if *again > now => return Helped::NotNow,
            Some((_, delay)) => (*delay * 2).min(BACKOFF.1),
            None => BACKOFF.0,
        };
        if !database::may_exist(database) {
            place::leave_all(database, None);
            self.refused.remove(&database);
            return Helped::NotNow;
        }
        if !has_room || self.start(database).is_err() {
            self.note_trouble(database);
            return Helped::NoPlace;
        }
        // Should the refiller not get through, it is not tried again at once.
        self.refused.insert(database, (now + delay, delay));
        Helped::Started
    }

    fn start(&mut self, database: u32) -> Result<(), Unavailable> {
        let free = |(_, desk): &(usize, &Desk)| desk.is_for(0);
        let (number, desk) = self.segments.desks.iter().enumerate().find(free).ok_or(Unavailable)?;
        desk.give_out(database);
        let started = worker::start_refiller(u32::try_from(number).unwrap_or(u32::MAX), database);
        match started {
            Ok(worker) => {
                self.started.insert(number, worker);
                Ok(())
            }
            Err(unavailable) => {
                desk.free();
                Err(unavailable)
            }
        }
    }

    /// So that those who wait in vain learn why.
    fn note_trouble(&self, database: u32) {
        let directory = self.segments.directory.read();
        for place in pending(self.segments) {
            if directory.get(place).is_some_and(|key| key.database == database)
                && let Some(slot) = self.segments.slots.get(place)
            {
                slot.trouble.set(Trouble::NoWorker);
            }
        }
    }

    /// Looks at all tags: those of dropped databases go; of the others it becomes known which were not used for a
    /// while.
    fn look_at_tags(&self) {
        if !server::in_recovery() {
            let dropped =
                registries::databases().into_iter().filter(|database| !database::may_exist(*database));
            dropped.for_each(registries::forget);
        }
        if self.segments.directory.read().is_empty() || server::in_recovery() {
            return;
        }
        place::forget_dropped_databases(self.segments, database::may_exist);
        place::look_around(self.segments);
    }
}
