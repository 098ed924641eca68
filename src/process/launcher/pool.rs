//! The refill workers. If more databases wait than refill workers can run, the databases share them by time slices.
//! [`TimeSlices`] plans the workers' time slices; this module collects the input and executes the plan.

use crate::pg::clock::uptime;
use crate::pg::process;
use crate::pg::{database, guc, server};
use crate::shared::generator::SHARED;
use crate::shared::registries;
use crate::shared::segments::Segments;
use crate::shared::slot::Slot;
use crate::shared::worker_slot::WorkerSlot;
use crate::tag::slot;
use pgrx::bgworkers::{BackgroundWorkerStatus, DynamicBackgroundWorker};
use snowflake_ids_core::backoff::Retries;
use snowflake_ids_core::process::time_slices::{SliceEnd, SlicePlan, TimeSlices, Urgency};
use snowflake_ids_core::registry::failover;
use snowflake_ids_core::server::state::Identity;
use snowflake_ids_core::tag::slot::Trouble;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// The pause before another attempt to start a refill worker, if all worker processes are in use by other extensions.
const RETRY: Duration = Duration::from_millis(50);
/// The interval between two checks of a started worker that has not connected yet.
const ARRIVAL: Duration = Duration::from_millis(100);

/// Returns the number of refill workers that the server can run. This launcher needs one worker process. The logical
/// replication launcher needs one too, unless the configuration turns it off. A server that leases its worker id needs one
/// for the lease worker. Other extensions need an unknown number of worker processes. If too few are left, starting a refill
/// worker fails.
fn capacity() -> usize {
    let launcher = guc::shown(c"max_logical_replication_workers").is_some_and(|most| most != "0");
    let leased = SHARED.get().is_some_and(|shared| matches!(shared.identity, Identity::Leased { .. }));
    let others = 1 + usize::from(launcher) + usize::from(leased);
    server::max_workers().saturating_sub(others).max(1)
}

/// The refill workers, and the databases that wait for a refill worker.
pub struct Pool {
    segments: &'static Segments,
    /// The workers that this launcher started, by the index of their worker slot.
    started: BTreeMap<usize, DynamicBackgroundWorker>,
    time_slices: TimeSlices<u32, usize>,
    /// Databases to which the latest refill worker could not connect, each with the SQLSTATE of the error.
    out_of_reach: BTreeMap<u32, i32>,
    /// Databases with tags whose last refill failed.
    retries: Retries<u32>,
}

impl Pool {
    /// Creates a pool. Refill workers that a previous launcher started are in the worker slots, not in `started`.
    pub fn new(segments: &'static Segments) -> Self {
        let (started, time_slices, out_of_reach) = (BTreeMap::new(), TimeSlices::default(), BTreeMap::new());
        Self { segments, started, time_slices, out_of_reach, retries: Retries::new(failover::BACKOFF) }
    }

    /// Serves as many of the waiting databases as possible. `others` is the number of workers of other kinds that wait for a
    /// worker process and have priority. Returns the time until the next round; None if there will be no work.
    pub fn round(&mut self, others: usize) -> Option<Duration> {
        self.collect_ended();
        let waiting = self.waiting();
        let now = self.record(&waiting);
        let (capacity, given) = (capacity(), self.given().count());
        let plan = self.time_slices.plan(capacity, capacity.saturating_sub(given), others, now);
        self.make_room(&plan);
        let mut due = plan.due;
        let mut short = plan.short;
        if !self.begin(&plan.begin) {
            let now = self.record(&self.waiting());
            let plan = self.time_slices.plan(capacity, 0, others, now);
            self.make_room(&plan);
            due = [due, plan.due, Some(now + RETRY)].into_iter().flatten().min();
            short = true;
        }
        self.segments.crowded.store(short, Release);
        self.record_obstacles(short);
        let arrives = self.given().any(|(_, worker_slot)| !worker_slot.worker_latch.is_occupied());
        let due = due.map(|due| due.saturating_sub(uptime()));
        [due, arrives.then_some(ARRIVAL)].into_iter().flatten().min()
    }

    /// Requests refills at intervals for tags whose last refill failed, although no call waits for their ids. Without these
    /// requests, the status views would keep showing errors after their cause is gone. Skips tags whose refill could not
    /// begin, because the server would log each attempt.
    pub fn retry(&mut self) {
        let tag_slots = self.segments.slots.iter().filter_map(|slot| Some((slot.database()?, slot)));
        let has_begun = |trouble| !matches!(trouble, Trouble::OutOfReach(_) | Trouble::NoWorker);
        let in_trouble: Vec<_> =
            tag_slots.filter(|(_, tag_slot)| tag_slot.trouble().is_some_and(has_begun)).collect();
        let databases = in_trouble
            .iter()
            .map(|(database, _)| *database)
            .filter(|database| !registries::is_pausing(*database));
        let due = self.retries.due(&databases.collect(), uptime());
        for (_, tag_slot) in in_trouble.iter().filter(|(database, _)| due.contains(database)) {
            self.segments.ask(tag_slot, false);
        }
    }

    /// Frees the worker slots of refill workers that have ended.
    fn collect_ended(&mut self) {
        let ended =
            |worker: &DynamicBackgroundWorker| matches!(worker.pid(), Err(BackgroundWorkerStatus::Stopped));
        let all: Vec<usize> =
            self.started.iter().filter(|(_, worker)| ended(worker)).map(|(number, _)| *number).collect();
        for number in all {
            self.started.remove(&number);
            if let Some(worker_slot) = self.segments.worker_slots.get(number) {
                self.record_end(worker_slot);
            }
        }
        // Frees slots of workers that a previous launcher started, because the postmaster does not report the end of these
        // workers to this launcher.
        for (number, worker_slot) in self.given() {
            if !self.started.contains_key(&number) && !worker_slot.worker_latch.is_occupied() {
                worker_slot.free();
            }
        }
    }

    fn record_end(&mut self, worker_slot: &WorkerSlot) {
        let (database, end) = (worker_slot.database.load(Acquire), worker_slot.end());
        if end == SliceEnd::OutOfReach {
            self.out_of_reach.insert(database, worker_slot.failure.load(Relaxed));
        } else {
            self.out_of_reach.remove(&database);
        }
        self.time_slices.ended(database, end, uptime());
        worker_slot.free();
    }

    fn given(&self) -> impl Iterator<Item = (usize, &'static WorkerSlot)> + use<> {
        self.segments.worker_slots.iter().enumerate().filter(|(_, worker_slot)| !worker_slot.is_for(0))
    }

    fn asked(&self) -> Vec<(u32, &'static Slot)> {
        let one = |slot_index: usize| {
            let tag_slot = self.segments.slots.get(slot_index)?;
            Some((tag_slot.database()?, tag_slot))
        };
        self.segments.pending().into_iter().filter_map(one).collect()
    }

    /// Returns the databases without a refill worker that have requests or a registry to probe, with their urgency.
    fn waiting(&self) -> BTreeMap<u32, Urgency> {
        let may_be_probed =
            |database: &u32| !self.is_served(*database) && !self.out_of_reach.contains_key(database);
        let to_be_probed = registries::to_be_probed().into_iter().filter(may_be_probed);
        let mut waiting: BTreeMap<_, _> = to_be_probed.map(|database| (database, Urgency::Ahead)).collect();
        for (database, tag_slot) in self.asked() {
            if self.is_served(database) {
                continue;
            }
            let want = waiting.entry(database).or_insert(Urgency::Ahead);
            if tag_slot.segment.buffer_states().left() == 0 {
                *want = Urgency::Now;
            }
        }
        waiting
    }

    fn is_served(&self, database: u32) -> bool {
        self.given().any(|(_, worker_slot)| worker_slot.is_for(database))
    }

    fn record(&mut self, waiting: &BTreeMap<u32, Urgency>) -> Duration {
        let now = uptime();
        let served = self.given().map(|(number, worker_slot)| {
            (number, worker_slot.database.load(Acquire), worker_slot.idle.load(Acquire))
        });
        self.time_slices.record(waiting.iter().map(|(database, want)| (*database, *want)), served, now);
        now
    }

    /// Starts refill workers for these databases; returns false if a worker could not be started.
    fn begin(&mut self, databases: &[u32]) -> bool {
        databases.iter().all(|database| {
            let exists = database::may_exist(*database);
            if !exists {
                slot::leave_all(*database, None);
                self.time_slices.forget(|one| one == *database);
                self.out_of_reach.remove(database);
            }
            !exists || self.start(*database)
        })
    }

    fn start(&mut self, database: u32) -> bool {
        let free = |(_, worker_slot): &(usize, &WorkerSlot)| worker_slot.is_for(0);
        let Some((number, worker_slot)) = self.segments.worker_slots.iter().enumerate().find(free) else {
            return false;
        };
        worker_slot.give_out(database);
        let started = process::start_refill_worker(u32::try_from(number).unwrap_or(u32::MAX), database);
        if started.is_none() {
            worker_slot.free();
        }
        started.is_some_and(|worker| self.started.insert(number, worker).is_none())
    }

    /// Asks the workers that the plan names to leave, and terminates those that did not leave in time.
    fn make_room(&self, plan: &SlicePlan<u32, usize>) {
        for (number, by) in &plan.leave {
            if let Some(worker_slot) = self.segments.worker_slots.get(*number) {
                worker_slot.dismiss(*by);
            }
        }
        for number in &plan.end {
            if let (Some(worker_slot), Some(Ok(pid))) = (
                self.segments.worker_slots.get(*number),
                self.started.get(number).map(DynamicBackgroundWorker::pid),
            ) {
                worker_slot.cut.store(true, Release);
                process::terminate(pid);
            }
        }
    }

    /// Stores the reason for the wait at each waiting tag. Sessions that time out show this reason in their error.
    fn record_obstacles(&self, short: bool) {
        if !short && self.out_of_reach.is_empty() {
            return;
        }
        for (database, tag_slot) in self.asked() {
            if let Some(code) = self.out_of_reach.get(&database) {
                tag_slot.set_trouble(Trouble::OutOfReach(*code));
            } else if short && tag_slot.trouble().is_none() && !self.is_served(database) {
                tag_slot.set_trouble(Trouble::NoWorker);
            }
        }
    }
}
