//! The lease worker, which leases a worker id for this server from the registry, renews the lease, and notices if the
//! lease is lost. The registry is in the worker's database, or on another server that this database uses.
//!
//! The worker may die between any two calls of the traits: see "Leases" in `docs/architecture.md`. Requests of sessions stay
//! pending until a worker has answered them.

mod acquire;
mod host;
mod requests;

pub use host::{LeaseEvent, LeaseHost, LeaseSettings, LeaseWorker, RegistryLocation};
pub use requests::LeaseRequests;

use crate::clock::UnixMicros;
use crate::error::{Explain, ended};
use crate::guard::{Guard, holds};
use crate::ids::layout::Field;
use crate::ids::position::Position;
use crate::registry::error::{RegistryError, SqlError, Unregistered};
use crate::registry::failover;
use crate::registry::link::Endpoint;
use crate::registry::wire::{Entry, MAX_LEASE, MAX_TEXT_CHARS, RequestBody, ResponseBody, cut};
use crate::server::issuer::{Host, IssuerError};
use crate::server::lease::{Holder, Lease, LeaseError, Origin, Skew, check_clock};
use crate::server::state::{Here, Identity, State};
use acquire::Acquisition;
use host::{LeaseStep, StepError};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

/// The largest number of attempts if rows are locked, or if the state or a row changes during an attempt.
const ATTEMPTS: usize = 4;

/// The outcome of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// No request was pending.
    Idle,
    /// The worker answered all requests.
    Served,
    /// Worker ids are now leased through another database, and a lease worker in that database will answer.
    Elsewhere,
    /// This database has no registry.
    Nowhere,
}

enum LeaseNeed {
    Nothing,
    /// The clock is behind the ids of every worker id, so another worker id would not help.
    Impossible,
    Acquire(Acquisition),
    Renew(Lease, Entry),
}

impl<S: Host, H: LeaseHost> LeaseWorker<'_, S, H> {
    /// Serves the pending requests, and answers the sessions that wait.
    pub fn round(&mut self) -> Round {
        let Some(ticket) = self.requests.request.pending() else { return Round::Idle };
        match self.look_after() {
            Ok(outcome) => {
                self.requests.forget_another();
                self.host.answer(ticket, outcome);
                Round::Served
            }
            Err(left) => left,
        }
    }

    /// Acquires or renews the lease if necessary. The inner error is the answer for sessions. The outer error means that this
    /// worker cannot answer.
    fn look_after(&mut self) -> Result<Result<(), LeaseError>, Round> {
        for attempt in 1..=ATTEMPTS {
            if self.state.shared.status.registry() != Some(self.host.database()) {
                return Err(Round::Elsewhere);
            }
            self.endpoint = None;
            let done = match self.host.find() {
                Ok(RegistryLocation::Nowhere) => return Err(Round::Nowhere),
                Ok(RegistryLocation::Unregistered) => return Ok(Err(LeaseError::of(&Unregistered))),
                Ok(RegistryLocation::Here) => self.step(),
                Ok(RegistryLocation::On(endpoint)) => {
                    self.endpoint = Some(endpoint);
                    self.step()
                }
                Err(error) => Err(error.into()),
            };
            match done {
                Ok(LeaseStep::Again) => {}
                Ok(LeaseStep::Done) => return Ok(Ok(())),
                Err(StepError::Registry(error)) if error.is_conflict() && attempt < ATTEMPTS => {}
                Err(StepError::Registry(error)) => return Ok(Err(self.explain(&error))),
                Err(StepError::None(none)) => return Ok(Err(none)),
            }
        }
        Ok(Err(LeaseError::yet(
            "The row of the worker id in snowflake_ids.worker_lease keeps changing.",
            "Make sure that nothing else writes to snowflake_ids.worker_lease.",
        )))
    }

    /// Returns the registry's error for sessions that wait for a worker id.
    fn explain(&mut self, error: &RegistryError) -> LeaseError {
        if let RegistryError::Here(failed) = error {
            self.host.record(LeaseEvent::Unreachable(&failed.message));
            return own_trouble(error);
        }
        let Some(endpoint) = &self.endpoint else { return own_trouble(error) };
        let detail =
            format!("Registry \"{}\", which leases worker ids, failed: {}", endpoint.server, error.briefly());
        LeaseError::yet(ended(detail), error.hint().unwrap_or_default())
    }

    fn step(&mut self) -> Result<LeaseStep, StepError> {
        match self.need()? {
            LeaseNeed::Nothing => Ok(LeaseStep::Done),
            LeaseNeed::Impossible => Err(StepError::None(LeaseError::yet(
                "The clock is behind ids that this server may have issued under each of its worker ids.",
                "Correct the server's clock.",
            ))),
            LeaseNeed::Acquire(acquisition) => self.acquire(acquisition),
            LeaseNeed::Renew(lease, entry) => self.renew(&lease, &entry),
        }
    }

    /// Returns the next task, and writes the pending token for it into the state file.
    fn need(&mut self) -> Result<LeaseNeed, IssuerError> {
        let shared = self.endpoint.is_some();
        let duration = self.host.settings().duration_of(shared);
        let (issuer, requests, endpoint, host) =
            (&self.state, self.requests, self.endpoint.as_ref(), &self.host);
        issuer.change(|state, here| {
            let Identity::Leased { datacenter } = here.identity else { return LeaseNeed::Nothing };
            // A transaction may have just ended this database's use of a registry. The worker must not renew the lease then.
            if state.source.database() != Some(host.database()) {
                return LeaseNeed::Nothing;
            }
            // A worker id that the server chose itself may belong to another node of the registry.
            if shared && state.lease.as_ref().is_some_and(Lease::is_chosen) {
                state.leave_former();
            }
            // The wait for the state lock may have taken a while, so the clock is read after the wait.
            let now = issuer.believed_now();
            let behind = requests.is_another_wanted(issuer.shared.generation());
            let limit = state.worker_id_limit(now);
            let last = datacenter.unwrap_or_else(|| state.limit(Field::Datacenter, now));
            let generator = &issuer.shared.generator;
            let next = (generator.limit() > Position::ZERO).then(|| generator.next());
            let held = |lease: &Lease| is_of(lease, endpoint) && !lease.is_chosen() && !behind;
            if let Some(lease) = state.lease.clone().filter(held) {
                let due = requests.until_renewal(lease.expiry, now, duration, host.uptime()).is_zero();
                let is_good = lease.expiry > now && !due && !requests.renew.load(Acquire);
                // The worker id is too large if a layout with fewer worker ids came into use. The worker id is kept if
                // no lower worker id is free.
                let fits = lease.datacenter <= last && lease.worker_id <= limit || !holds(Guard::LeaseFits);
                // Ids may run ahead of the clock, and then reach the lease's expiry long before the clock.
                if is_good && fits && !state.comes_to(lease.expiry) {
                    return LeaseNeed::Nothing;
                }
                if !is_good || fits {
                    let entry = entry(state, here, lease.datacenter, now, next, duration, host);
                    return LeaseNeed::Renew(lease, entry);
                }
            } else if behind && state.lease.is_some() && state.blocks_all_worker_ids(now) {
                return LeaseNeed::Impossible;
            }
            // A server without a configured datacenter id keeps its datacenter, or else begins with the first one.
            let known = state.lease.as_ref().or(state.former.as_ref().filter(|_| shared));
            let held = known.map(|known| known.datacenter).filter(|held| *held <= last);
            let first = datacenter.or(held).unwrap_or(0);
            let entry = entry(state, here, first, now, next, duration, host);
            LeaseNeed::Acquire(Acquisition::new(state, here, endpoint, behind, entry))
        })
    }

    /// Sends a request to the registry. If the registry is on another server, also compares the registry's clock with
    /// this server's clock.
    fn ask(&mut self, ask: RequestBody) -> Result<ResponseBody, StepError> {
        let now = self.state.believed_now();
        if let Some(endpoint) = &self.endpoint {
            let due = failover::until_due(&[self.host.health(endpoint)], self.host.uptime(), true);
            // The registry has just failed, and another request could take the whole time limit.
            if due.is_some_and(|due| !due.is_zero()) {
                return Err(RegistryError::Before.into());
            }
        }
        let answer = self.host.ask(self.endpoint.as_ref(), ask, now)?;
        if let Some(endpoint) = &self.endpoint {
            self.registry_clock = Some(answer.clock);
            if endpoint.seen.after(&answer.registry).is_some() {
                self.host.record_seen(&answer.registry)?;
            }
            let compared = self.state.compare(answer.clock);
            self.host.record(LeaseEvent::Compared(&compared));
        }
        Ok(answer.said)
    }

    /// Rejects an expiry that is in the past, or too far ahead.
    fn check_expiry(&self, worker_id: u32, expiry: UnixMicros) -> Result<(), StepError> {
        let now = self.state.believed_now();
        if now < expiry && expiry <= now.plus(2 * MAX_LEASE) {
            return Ok(());
        }
        self.disbelieve(worker_id, expiry)
    }

    /// Rejects a response of a registry on another server. Responses of this server's own tables are trusted.
    fn disbelieve(&self, worker_id: u32, expiry: UnixMicros) -> Result<(), StepError> {
        if self.endpoint.is_none() {
            return Ok(());
        }
        let (now, max) = (self.state.believed_now(), self.host.settings().max_clock_skew);
        let skew = self.registry_clock.map(|clock| check_clock(now, clock, None, max));
        Err(match skew {
            Some(Err(Skew::Registry { by, .. })) => RegistryError::Clocks(by),
            _ => RegistryError::Garbled(format!("it leases worker id {worker_id} until {expiry}")),
        }
        .into())
    }

    /// Returns the registry in use if it is on another server.
    fn origin(&self) -> Option<Origin> {
        let endpoint = self.endpoint.as_ref()?;
        Some(Origin { identity: endpoint.seen.identity.clone(), server: endpoint.server.clone() })
    }

    fn is_of_registry(&self, lease: &Lease) -> bool {
        is_of(lease, self.endpoint.as_ref())
    }

    /// Records the granted lease in shared memory, and clears the request for a renewal.
    fn record_granted(&mut self, until: UnixMicros) {
        self.requests.granted(until, self.state.believed_now(), self.host.uptime());
        self.requests.renew.store(false, Release);
    }
}

/// Returns the error of this database's own registry, for sessions that wait for a worker id.
pub fn own_trouble(error: &RegistryError) -> LeaseError {
    let RegistryError::Here(SqlError { code, message, .. }) = error else {
        return LeaseError::yet(ended(error.to_string()), "Try again.");
    };
    let code = String::from_utf8_lossy(code);
    let detail =
        format!("Access to the table snowflake_ids.worker_lease failed with SQLSTATE {code}: {message}.");
    LeaseError::yet(detail, error.hint().unwrap_or_default())
}

/// Returns whether a lease is from this registry. `endpoint` is None for this server's own registry.
fn is_of(lease: &Lease, endpoint: Option<&Endpoint>) -> bool {
    lease.origin.as_ref().map(|origin| &origin.identity) == endpoint.map(|endpoint| &endpoint.seen.identity)
}

/// Returns the content of the registry's row for this server. `next` is the next position in the server's own layout,
/// if the server issues ids.
fn entry(
    state: &mut State,
    here: &Here,
    datacenter: u32,
    now: UnixMicros,
    next: Option<Position>,
    duration: Duration,
    host: &impl LeaseHost,
) -> Entry {
    // Ids that run ahead of the clock must not make other servers doubt their clocks.
    let latest = if holds(Guard::LastBounded) { now } else { UnixMicros(i64::MAX) };
    Entry {
        datacenter,
        token: pending_token(state, here),
        duration,
        now,
        last: next.map(|next| here.layout.instant_of(next).min(latest)),
        holder: Holder {
            system_identifier: here.system_identifier.cast_signed(),
            timeline: here.timeline,
            host: cut(&here.home.host, MAX_TEXT_CHARS),
            port: host.port(),
            directory: cut(&here.home.directory, MAX_TEXT_CHARS),
            layout: here.layout.to_string(),
        },
    }
}

/// Returns the token for the registry's row. The pending token of an unanswered request is reused, because the registry
/// may have stored this token.
fn pending_token(state: &mut State, here: &Here) -> i64 {
    let pending_token = state.pending_token.filter(|_| holds(Guard::KeepPendingToken)).unwrap_or(here.token);
    state.pending_token = Some(pending_token).filter(|_| holds(Guard::PendingTokenFirst));
    pending_token
}
