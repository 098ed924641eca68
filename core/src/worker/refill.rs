//! The refill worker of one database: reserves ids for its tags ahead of demand, from the database's own table of tags or from
//! registries on other servers. It ends when there is nothing to do: then the database can be dropped, renamed and copied.
//!
//! Everything it touches is behind a trait: [`RefillHost`] is its process and the memory that it shares with sessions,
//! [`Database`] its tables, [`RegistryLink`] the way to registries, [`CarryOvers`] the ranges that were saved at the last stop.

mod host;
mod job;
mod local;
mod memory;
mod registry;
mod remote;

pub use host::{CarryOvers, Database, Received, RefillHost, Tables, TransactionError};
pub use job::Job;
pub use memory::{RefillSettings, SharedMemory};

use crate::registry::failover::{self, BACKOFF, Health};
use crate::registry::link::{RegistryLink, RegistryNotes, Site};
use crate::registry::wire::RequestBody;
use crate::sequence::reservation::Outcome;
use crate::sequence::slot::TagSlot;
use local::LocalRegistry;
use registry::{Jobs, Refill};
use remote::{Remote, RemoteRegistry, limit};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// For how long it tries the same requests.
const GIVE_UP: Duration = Duration::from_secs(10);
/// The pause after a row was found locked.
const RETRY: Duration = Duration::from_millis(20);
/// The pause after a transaction failed.
const RETRY_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// The worker.
pub struct RefillWorker<'h, H, L, C> {
    refill: Refill<'h, H, C>,
    remote: Remote<L>,
    /// True if the ids came from other servers when that was looked at last.
    is_remote: bool,
}

impl<'h, H: RefillHost, L: RegistryLink, C: CarryOvers> RefillWorker<'h, H, L, C> {
    /// A worker that begins.
    pub fn new(host: &'h H, link: L, carry_over: C) -> Self {
        let refill = Refill { host, carry_over, turn: Cell::new(0) };
        Self { refill, remote: Remote::new(link), is_remote: false }
    }

    /// Runs until there was nothing to do for a while, or others wait for its place.
    pub fn run(&mut self) {
        let host = self.refill.host;
        let (mut last_work, mut stuck, mut pause_until) = (host.uptime(), None, Duration::ZERO);
        loop {
            let jobs = host.jobs();
            if jobs.is_empty() {
                if host.has_registry_to_probe() {
                    self.probe();
                }
                host.note_served();
                if !host.is_dismissed() && !host.is_crowded() && host.rest(last_work) {
                    continue;
                }
                return;
            }
            last_work = host.uptime();
            // A failed job is not tried again with each call that wakes this worker.
            let left = pause_until.saturating_sub(last_work);
            let (due, failed): (Vec<_>, Vec<_>) =
                jobs.into_iter().partition(|job| left.is_zero() || !job.has_failed());
            let pause = self.serve(&due);
            if due.iter().any(Job::is_answered) {
                host.note_served();
            }
            // Other databases wait. The other jobs here wait with them, for another worker.
            if host.is_dismissed() {
                due.iter().chain(&failed).for_each(Job::defer);
                return;
            }
            if !failed.is_empty() {
                host.sleep(pause.unwrap_or(left).min(left));
                continue;
            }
            let Some(pause) = pause else {
                stuck = None;
                continue;
            };
            if host.uptime().saturating_sub(*stuck.get_or_insert_with(|| host.uptime())) >= GIVE_UP {
                // Calls that still wait ask again; requests that none waits for any more don't keep it here.
                due.iter().for_each(Job::supplied);
                stuck = None;
            }
            pause_until = host.uptime() + pause;
            host.sleep(pause);
        }
    }

    /// Reserves for all of them, and publishes. Gives a pause to be made where some could not be served.
    fn serve(&mut self, jobs: &[Job<'h, H::Slot>]) -> Option<Duration> {
        let host = self.refill.host;
        let (full, empty): (Jobs<'_, 'h, H>, Jobs<'_, 'h, H>) =
            jobs.iter().partition(|job| !job.needs_ids(host));
        full.into_iter().for_each(Job::supplied);
        if empty.is_empty() {
            return None;
        }
        host.show_activity(empty.len());
        // Mostly it is as it was the last time.
        if self.is_remote {
            return self.serve_remotely(&empty);
        }
        let mut registry = LocalRegistry { refill: &self.refill, is_elsewhere: false };
        let left = self.refill.serve(&mut registry, &empty);
        if registry.is_elsewhere {
            return self.serve_remotely(&left);
        }
        // A lock ends a round before those that failed last time were asked for.
        if left.iter().any(|job| job.was_locked()) {
            return Some(RETRY);
        }
        left.into_iter().map(|job| pause_of(job, RETRY_AFTER_FAILURE)).max()
    }

    fn serve_remotely(&mut self, jobs: &[&Job<'h, H::Slot>]) -> Option<Duration> {
        let found = self.refill.transaction(|tables| {
            let (known, unknown): (Jobs<'_, 'h, H>, Jobs<'_, 'h, H>) =
                jobs.iter().partition(|job| tables.to_utf8(&job.tag).is_some());
            Ok((tables.sites()?, known, unknown))
        });
        let (sites, known, unknown) = match found {
            Ok(found) => found,
            Err(failure) => {
                for job in jobs {
                    self.refill.note(&failure, job);
                }
                return Some(RETRY_AFTER_FAILURE);
            }
        };
        self.is_remote = !sites.is_empty();
        if !self.is_remote {
            return Some(Duration::ZERO);
        }
        // No other server can know a tag that UTF-8 cannot write.
        for job in unknown {
            job.deny(&Outcome::Unknown, 1);
        }
        // Registries take turns with each tag by itself: so each tag's ids come from all of them.
        let last = |job: &Job<'_, H::Slot>| job.state().registry.load(Relaxed) as usize % sites.len();
        let of_turn = |after| known.iter().copied().filter(|job| last(job) == after).collect();
        let turns: Vec<Jobs<'_, 'h, H>> = (0..sites.len()).map(of_turn).collect();
        turns
            .into_iter()
            .enumerate()
            .filter_map(|(after, jobs)| self.serve_in_turn(&sites, jobs, after))
            .max()
    }

    /// Serves those whose ids came last from the registry at this place.
    fn serve_in_turn(&mut self, sites: &[Site], mut jobs: Jobs<'_, 'h, H>, after: usize) -> Option<Duration> {
        let Self { refill, remote, .. } = self;
        let healths: Vec<Health> = sites.iter().map(|site| remote.link.notes(site).health()).collect();
        let waited_for =
            jobs.iter().any(|job| job.state().segment.shelves().left() == 0 && job.state().wanted() > 0);
        for index in failover::order(&healths, after, refill.host.uptime(), waited_for) {
            if !jobs.is_empty() {
                let mut registry = RemoteRegistry { refill, remote, site: &sites[index], sites: sites.len() };
                jobs = refill.serve(&mut registry, &jobs);
            }
        }
        let due = failover::until_due(&healths, refill.host.uptime(), waited_for)
            .unwrap_or(BACKOFF.first)
            .clamp(RETRY, BACKOFF.first);
        jobs.into_iter().map(|job| pause_of(job, due)).max()
    }

    /// Asks registries for nothing that gave no answer last, to see whether they do now: no call asks them for ids.
    fn probe(&mut self) {
        let sites = self.refill.transaction(Tables::sites).unwrap_or_default();
        let limit = limit(self.refill.host, sites.len());
        for site in &sites {
            if failover::is_to_be_probed(self.remote.link.notes(site).health(), self.refill.host.uptime()) {
                // The outcome is noted.
                drop(self.remote.link.ask(site, RequestBody::Reserve(Vec::new()), limit));
            }
        }
    }
}

/// Returns the pause before a job is tried again.
fn pause_of<S: TagSlot>(job: &Job<'_, S>, due: Duration) -> Duration {
    if job.was_locked() { RETRY } else { due }
}
