//! Registries on other servers.
//!
//! The worker asks one registry for ids of all tags, and then asks the next registry for ids of the tags that got no
//! ids. Received ids are recorded durably before they are handed out. This server therefore notices a registry that was
//! restored from a backup, even after a crash of this server.

use super::task::{RefillHost, RefillTask};
use super::worker::{RefillError, RefillWorker};
use crate::clock::UnixMicros;
use crate::error::{Explain, ended};
use crate::guard::{Guard, holds};
use crate::registry::client::Network;
use crate::registry::error::{Complaint, RegistryError};
use crate::registry::failover::BACKOFF;
use crate::registry::link::{Endpoint, EndpointStatus};
use crate::registry::tables::{LockWait, Tables};
use crate::registry::wire::{self, RequestBody, ReserveRequest, Response, ResponseBody, cut};
use crate::server::saved_range_file::SavedRangeFile;
use crate::tag::definition::MAX_TAG_CHARS;
use crate::tag::reservation::Outcome;
use crate::tag::slot::Trouble;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// If several registries are in use, the time limit of each response is `registry_timeout` divided by this number.
const FRACTION: u32 = 5;
/// The time between two waits for locked rows, while other tags need ids.
const WAIT_EVERY: Duration = Duration::from_millis(500);

const LOCKED: &str = "a transaction on the registry has locked the row of a segment tag, or waits for a standby before it commits";
const LOCKED_HINT: &str = "On the registry, look at pg_stat_activity and pg_locks.";
const LOCKED_HERE: &str = "its ids cannot be recorded here, because a transaction has locked the table snowflake_ids.received, \
                           as use_registry and use_local_registry do until their transactions end";
const LOCKED_HERE_HINT: &str = "End that transaction. To find it: SELECT pid FROM pg_locks WHERE granted AND relation = 'snowflake_ids.received'::regclass.";

/// Returns the time limit for the response of each registry. `endpoints` is the number of registries.
pub fn limit(host: &impl RefillHost, endpoints: usize) -> Duration {
    host.settings().registry_timeout / if endpoints > 1 { FRACTION } else { 1 }
}

impl<H: RefillHost, N: Network, F: SavedRangeFile> RefillWorker<'_, H, N, F> {
    /// A request for a single tag waits for a locked row in any case, so an extra request helps only if there are several
    /// tags.
    pub(super) fn waits(&self, locked: usize, tags: usize) -> bool {
        let is_due = || self.host.uptime().saturating_sub(self.waited) >= WAIT_EVERY;
        tags > 1 && (locked == tags || is_due())
    }

    pub(super) fn reserve_remotely(
        &mut self,
        endpoint: &Endpoint,
        endpoints: usize,
        tasks: &[&RefillTask<'_, H::Slot>],
        wait: LockWait,
    ) -> Result<Vec<Option<Outcome>>, RefillError> {
        // A request loses the ids that it receives if these ids cannot be recorded. The next request is therefore
        // delayed.
        let is_overdue = self.host.is_overdue();
        if is_overdue || self.lost.is_some_and(|lost| self.host.uptime().saturating_sub(lost) < BACKOFF.first)
        {
            return Err(RefillError::Paused);
        }
        let reserved = self.reserve_and_record(endpoint, endpoints, tasks);
        if wait == LockWait::Wait {
            self.waited = self.host.uptime();
        }
        let status = self.client.status(endpoint);
        match &reserved {
            Ok(outcomes) => {
                let wrong = tasks
                    .iter()
                    .zip(outcomes)
                    .filter(|(task, outcome)| self.is_wrong(endpoint, task, outcome));
                if wrong.count() == 0 {
                    status.clear_complaint();
                }
            }
            Err(RefillError::Away(error)) if error.is_conflict() && tasks.len() == 1 => {
                status.complain(&Complaint::new(LOCKED, LOCKED_HINT));
            }
            Err(RefillError::Unnoted(failed)) if failed.is_lock_timeout() => {
                status.complain(&Complaint::new(LOCKED_HERE, LOCKED_HERE_HINT));
            }
            Err(_) => {}
        }
        Ok(reserved?.into_iter().map(Some).collect())
    }

    fn reserve_and_record(
        &mut self,
        endpoint: &Endpoint,
        endpoints: usize,
        tasks: &[&RefillTask<'_, H::Slot>],
    ) -> Result<Vec<Outcome>, RefillError> {
        let wants: Vec<ReserveRequest> = self.transaction(|tables| {
            // Received ids can be recorded only under this lock. If the lock fails, no ids are requested.
            tables.lock_received()?;
            tasks.iter().map(|task| self.want(tables, endpoint, endpoints, task)).collect()
        })?;
        let demands: Vec<_> = wants.iter().map(|want| want.demand.clone()).collect();
        let limit = limit(self.host, endpoints);
        let answer = self.client.ask(endpoint, RequestBody::Reserve(wants), limit);
        let Response { registry, clock, said } = answer.map_err(RefillError::Away)?;
        let ResponseBody::Reserved(mut outcomes) = said else {
            return Err(self.garbled(endpoint, RegistryError::other_kind()));
        };
        if outcomes.len() != tasks.len() {
            let why = "its answer is for another number of tags than was requested".to_owned();
            return Err(self.garbled(endpoint, RegistryError::Garbled(why)));
        }
        let now = self.host.now();
        for (outcome, demand) in outcomes.iter_mut().zip(&demands) {
            if let Outcome::Reserved(reserved) = outcome
                && let Err(wrong) = reserved.check(demand, clock, now)
            {
                *outcome = Outcome::Garbled(format!("it gives {wrong}"));
            }
            not_over_yet(outcome, clock, now);
        }
        if holds(Guard::ReceivedFirst) && !self.record_received(endpoint, &registry, tasks, &outcomes)? {
            outcomes.fill(Outcome::Locked);
        }
        Ok(outcomes)
    }

    fn want<T: Tables>(
        &self,
        tables: &mut T,
        endpoint: &Endpoint,
        endpoints: usize,
        task: &RefillTask<'_, H::Slot>,
    ) -> Result<ReserveRequest, T::Error> {
        // High-water marks of rolled-back transactions belong to local rows, so None is passed.
        let mut demand = task.demand(self.host, self.saved_ranges.of(task.source, &task.tag), None);
        let received = tables.received(&endpoint.seen.identity, &task.tag)?;
        demand.received = received.filter(|_| holds(Guard::Received)).map(|received| received.reached);
        // A saved range is used only if the range belongs to the last recorded reservation. The range is then consumed
        // only once, even if the registry is restored to an older state.
        let version = received.map(|received| received.version);
        let is_last = |version_then| Some(version_then) == version || !holds(Guard::SavedRangeIsLast);
        demand.saved_range = demand.saved_range.filter(|saved_range| is_last(saved_range.version));
        demand.share = endpoint.share(endpoints).filter(|_| holds(Guard::Share));
        demand.clock = Some(self.host.now());
        Ok(ReserveRequest {
            tag: tables.to_utf8(&task.tag).unwrap_or_default(),
            create: task.creates(),
            demand,
        })
    }

    /// Records received ids. Returns false if the registry is not in use any more. No received id may be handed out in
    /// that case.
    fn record_received(
        &mut self,
        endpoint: &Endpoint,
        answered: &wire::RegistryName,
        tasks: &[&RefillTask<'_, H::Slot>],
        outcomes: &[Outcome],
    ) -> Result<bool, RefillError> {
        let seen = &endpoint.seen;
        let recorded = self.transaction(|tables| {
            if seen.after(answered).is_some() {
                tables.record_seen(answered)?;
            }
            for (task, outcome) in tasks.iter().zip(outcomes) {
                if let Outcome::Reserved(reserved) = outcome {
                    tables.receive(&seen.identity, &task.tag, reserved)?;
                }
            }
            // A session that changes the registries in use waits for the locks of these rows, so the result stays true until
            // the commit.
            let is_it = |used: &Endpoint| used.seen.identity == seen.identity;
            Ok(!holds(Guard::StillUsed) || tables.endpoints()?.iter().any(is_it))
        });
        self.lost = recorded.is_err().then(|| self.host.uptime());
        if recorded.is_ok() && seen.after(answered).is_some() {
            self.host.renew_lease();
        }
        recorded
    }

    /// Records the fault that an outcome shows; if ids were reserved, records the registry as their source. Returns
    /// whether the earlier complaint about the registry must stay.
    fn is_wrong(&self, endpoint: &Endpoint, task: &RefillTask<'_, H::Slot>, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Reserved(_) => task.state().registry.store(endpoint.position, Relaxed),
            Outcome::Unfit(unfit) => {
                let hint = unfit.hint(&self.shown(task));
                self.complain(endpoint, task, &format!("must not be used. {unfit}"), hint);
            }
            // An invalid outcome does not affect other tags.
            Outcome::Garbled(why) => {
                let hint = RegistryError::Garbled(String::new()).hint().unwrap_or_default();
                self.complain(endpoint, task, &format!("is described in an invalid way: {why}"), hint);
            }
            // The registry has no ids of the tag now. The outcome is also `Locked` if the registries in use have changed.
            Outcome::Locked | Outcome::Unknown | Outcome::Exhausted(_) => {}
        }
        matches!(outcome, Outcome::Unfit(_) | Outcome::Garbled(_) | Outcome::Locked)
    }

    fn shown(&self, task: &RefillTask<'_, H::Slot>) -> String {
        cut(&self.host.shown(&task.tag), MAX_TAG_CHARS)
    }

    fn complain(&self, endpoint: &Endpoint, task: &RefillTask<'_, H::Slot>, what: &str, hint: String) {
        task.record_trouble(Trouble::Registry);
        let why = format!("its row of segment tag \"{}\" {what}", self.shown(task));
        // The complaint is also shown to users who wait for other tags. These users may have no right to see this tag.
        let briefly = Some("a row of a segment tag there must not be used".to_owned());
        let complaint = Complaint { briefly, ..Complaint::new(why, hint) };
        self.client.status(endpoint).complain(&complaint);
        let (why, hint) = (ended(complaint.why), complaint.hint);
        self.host.say_once(format!("registry \"{}\": {why} {hint}", endpoint.server));
    }

    /// Records an invalid response as a failure of the registry.
    fn garbled(&self, endpoint: &Endpoint, error: RegistryError) -> RefillError {
        let (status, complaint) = (self.client.status(endpoint), error.complaint());
        if status.is_news(&complaint) {
            let (server, why) = (&endpoint.server, &complaint.why);
            self.host.say_once(format!("snowflake_ids got no ids of registry \"{server}\": {why}"));
        }
        status.failed(&complaint);
        RefillError::Away(error)
    }
}

/// Extends a period that has ended by this server's clock. If the registry's clock is behind, the period lasts until
/// the registry's clock reaches the end of the period.
fn not_over_yet(outcome: &mut Outcome, registry: UnixMicros, now: UnixMicros) {
    if let Outcome::Reserved(reserved) = outcome
        && let period = &mut reserved.supply.period
        && period.until <= now
    {
        period.until = now.plus(period.until.since(registry));
    }
}
