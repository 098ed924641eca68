//! The refill worker of one database: reserves ids for its tags ahead of demand, from the database's own table of tags or from
//! registries on other servers. It ends when there is nothing to do: then the database can be dropped, renamed and copied.
//!
//! Everything it touches is behind a trait: [`RefillHost`] is its process and the memory that it shares with sessions,
//! [`Database`] its tables, [`RegistryLink`] the registries, [`CarryOvers`] what the last stop left over.

mod errand;
mod host;
mod job;
mod local;
mod remote;
mod settings;
pub(crate) mod slot;
pub(crate) mod tables;
mod worker;

pub use host::{CarryOvers, RefillHost};
pub use job::Job;
pub use settings::RefillSettings;
pub use slot::{SharedMemory, TagSlot, Trouble};
pub use tables::{Database, Received, Tables, TransactionError};
pub use worker::RefillWorker;

use crate::registry::link::RegistryLink;
use local::LocalOutcome;
use std::time::Duration;

/// For how long it tries the same requests.
const GIVE_UP: Duration = Duration::from_secs(10);

impl<'h, H: RefillHost, L: RegistryLink, C: CarryOvers> RefillWorker<'h, H, L, C> {
    /// Runs until there was nothing to do for a while, or others wait for its place.
    pub fn run(&mut self) {
        let host = self.host;
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
            // What has failed is not tried again with each call that wakes this worker.
            let left = pause_until.saturating_sub(last_work);
            let (due, failed): (Vec<_>, Vec<_>) =
                jobs.into_iter().partition(|job| left.is_zero() || !job.has_failed());
            let pause = self.serve(&due);
            if due.iter().any(Job::is_answered) {
                host.note_served();
            }
            // Other databases wait. What is left to do here waits with them, for another worker.
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
        let (full, empty): (Vec<&Job<'_, _>>, Vec<&Job<'_, _>>) =
            jobs.iter().partition(|job| !job.needs_ids(self.host));
        full.into_iter().for_each(Job::supplied);
        if empty.is_empty() {
            return None;
        }
        self.host.show_activity(empty.len());
        // Mostly it is as it was the last time.
        if !self.remote
            && let LocalOutcome::Here(pause) = self.serve_locally(&empty)
        {
            return pause;
        }
        self.serve_remotely(&empty)
    }
}
