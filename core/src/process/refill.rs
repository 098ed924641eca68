//! The refill worker of one database, which reserves ids of the database's tags (named id ranges) ahead of use. The ids
//! come from the database's own table of tags, or from registries on other servers. The worker exits when it has
//! nothing to do, so that the database can be dropped, renamed and copied.
//!
//! The worker uses the outside world only through traits. [`RefillHost`] is its process and shared memory, and [`Tables`]
//! is its database. [`Network`] is the connection to registries. [`SavedRangeFile`] holds the ids that were not yet used
//! at the last server stop.

mod local;
mod remote;
mod round;
mod task;
mod worker;

pub use task::{RefillHost, RefillSettings, RefillTask};
pub use worker::RefillWorker;

use crate::registry::client::{Network, RegistryClient};
use crate::registry::failover::{self, BACKOFF, Health};
use crate::registry::link::{Endpoint, EndpointStatus};
use crate::registry::tables::Tables;
use crate::registry::wire::RequestBody;
use crate::server::saved_range_file::{SavedRangeFile, SavedRanges};
use crate::tag::reservation::Outcome;
use crate::tag::slot::TagSlot;
use remote::limit;
use round::{Registry, Tasks};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The time after which the worker stops retrying the same requests.
const GIVE_UP: Duration = Duration::from_secs(10);
/// The pause after a row was locked.
const RETRY: Duration = Duration::from_millis(20);
const RETRY_AFTER_FAILURE: Duration = Duration::from_millis(200);

impl<'h, H: RefillHost, N: Network, F: SavedRangeFile> RefillWorker<'h, H, N, F> {
    /// Returns a new worker.
    pub fn new(host: &'h H, client: RegistryClient<N>, saved_ranges: SavedRanges<F>) -> Self {
        Self { host, saved_ranges, client, is_remote: false, rounds: 0, waited: Duration::ZERO, lost: None }
    }

    /// Runs until there was no request for a while, or until other databases need the worker slot.
    pub fn run(&mut self) {
        let host = self.host;
        let (mut last_work, mut stuck, mut pause_until) = (host.uptime(), None, Duration::ZERO);
        loop {
            let tasks = host.tasks();
            if tasks.is_empty() {
                if host.has_registry_to_probe() {
                    self.probe();
                }
                host.record_served();
                if !host.is_dismissed() && !host.is_crowded() && host.rest(last_work) {
                    continue;
                }
                return;
            }
            last_work = host.uptime();
            // A failed task waits until the pause has ended, even if other calls wake the worker.
            let left = pause_until.saturating_sub(last_work);
            let (due, failed): (Vec<_>, Vec<_>) =
                tasks.into_iter().partition(|task| left.is_zero() || !task.has_failed());
            let pause = self.serve(&due);
            if due.iter().any(RefillTask::is_answered) {
                host.record_served();
            }
            // Other databases wait for the worker slot. The remaining tasks of this database wait for the next worker.
            if host.is_dismissed() {
                due.iter().chain(&failed).for_each(RefillTask::defer);
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
                // All requests count as answered now. Sessions that still wait ask again. Requests without a waiting
                // session must not keep the worker running.
                due.iter().for_each(RefillTask::supplied);
                stuck = None;
            }
            pause_until = host.uptime() + pause;
            host.sleep(pause);
        }
    }

    /// Reserves ids for all tasks, and publishes them. Returns a pause if some tasks could not be served.
    fn serve(&mut self, tasks: &[RefillTask<'h, H::Slot>]) -> Option<Duration> {
        let host = self.host;
        let (full, empty): (Tasks<'_, 'h, H>, Tasks<'_, 'h, H>) =
            tasks.iter().partition(|task| !task.needs_ids(host));
        full.into_iter().for_each(RefillTask::supplied);
        if empty.is_empty() {
            return None;
        }
        host.show_activity(empty.len());
        // The registries in use rarely change, so the kind of registry that the last round found is tried first.
        let left = if self.is_remote { empty } else { self.serve_from(Registry::Own, &empty) };
        if self.is_remote {
            return self.serve_remotely(&left);
        }
        // A lock timeout may have ended the round before the failed tasks were tried.
        if left.iter().any(|task| task.was_locked()) {
            return Some(RETRY);
        }
        left.into_iter().map(|task| pause_of(task, RETRY_AFTER_FAILURE)).max()
    }

    fn serve_remotely(&mut self, tasks: &[&RefillTask<'h, H::Slot>]) -> Option<Duration> {
        let found = self.transaction(|tables| {
            let (known, unknown): (Tasks<'_, 'h, H>, Tasks<'_, 'h, H>) =
                tasks.iter().partition(|task| tables.to_utf8(&task.tag).is_some());
            Ok((tables.endpoints()?, known, unknown))
        });
        let (endpoints, known, unknown) = match found {
            Ok(found) => found,
            Err(failure) => {
                for task in tasks {
                    self.record(&failure, task);
                }
                return Some(RETRY_AFTER_FAILURE);
            }
        };
        self.is_remote = !endpoints.is_empty();
        if !self.is_remote {
            return Some(Duration::ZERO);
        }
        // UTF-8 cannot represent the tag, so no other server has this tag.
        for task in unknown {
            task.deny(&Outcome::Unknown, 1);
        }
        // The registries rotate for each tag separately, so each tag gets ids from all registries.
        let last =
            |task: &RefillTask<'_, H::Slot>| task.state().registry.load(Relaxed) as usize % endpoints.len();
        let served_by = |after| known.iter().copied().filter(|task| last(task) == after).collect();
        let groups: Vec<Tasks<'_, 'h, H>> = (0..endpoints.len()).map(served_by).collect();
        groups
            .into_iter()
            .enumerate()
            .filter_map(|(after, tasks)| self.serve_after(&endpoints, tasks, after))
            .max()
    }

    /// Serves the tasks whose last ids came from the registry with the index `after`.
    fn serve_after(
        &mut self,
        endpoints: &[Endpoint],
        mut tasks: Tasks<'_, 'h, H>,
        after: usize,
    ) -> Option<Duration> {
        let healths: Vec<Health> =
            endpoints.iter().map(|endpoint| self.client.status(endpoint).health()).collect();
        let waited_for = tasks
            .iter()
            .any(|task| task.state().segment.buffer_states().left() == 0 && task.state().wanted() > 0);
        for index in failover::order(&healths, after, self.host.uptime(), waited_for) {
            if !tasks.is_empty() {
                tasks = self.serve_from(Registry::Other(&endpoints[index], endpoints.len()), &tasks);
            }
        }
        let due = failover::until_due(&healths, self.host.uptime(), waited_for)
            .unwrap_or(BACKOFF.first)
            .clamp(RETRY, BACKOFF.first);
        tasks.into_iter().map(|task| pause_of(task, due)).max()
    }

    /// Sends an empty request to each failed registry that is due for a retry, to see if the registry answers again.
    /// The worker calls this function while no session asks for ids.
    fn probe(&mut self) {
        let endpoints = self.transaction(Tables::endpoints).unwrap_or_default();
        let limit = limit(self.host, endpoints.len());
        for endpoint in &endpoints {
            if failover::is_to_be_probed(self.client.status(endpoint).health(), self.host.uptime()) {
                // The client records the outcome.
                drop(self.client.ask(endpoint, RequestBody::Reserve(Vec::new()), limit));
            }
        }
    }
}

/// Returns the pause before a task is tried again.
fn pause_of<S: TagSlot>(task: &RefillTask<'_, S>, due: Duration) -> Duration {
    if task.was_locked() { RETRY } else { due }
}
