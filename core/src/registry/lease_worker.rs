//! The lease worker: leases worker ids for its server from the registry, renews the lease and notices its loss. The registry
//! is the table in one of the server's databases, or that of another server which this database uses.
//!
//! It may end between any two calls of the traits here. What it is about to write into the registry, the token of a *claim*,
//! is in the server's state before; its successor knows the row again by that. Requests stay asked until they are answered.

mod acquire;
mod error;
mod host;
mod renew;
mod requests;
mod worker;

pub use error::{LeaseStepError, LinkError};
pub use host::{Doubt, LeaseEvent, LeaseHost, LeaseLink, LeaseSettings, Other, RegistryPlace};
pub use requests::LeaseRequests;
pub use worker::LeaseWorker;

use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::position::Position;
use crate::registry::lease::{Holder, Lease, Origin, Skew, check_clock};
use crate::registry::wire::{
    Entry, Former, LeaseError, MAX_LEASE, MAX_TEXT_CHARS, RequestBody, ResponseBody, cut,
};
use crate::server::issuer::{Host, IssuerError};
use crate::server::state::{Here, Identity, State};
use acquire::Plan;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;
use worker::{LeaseStep, StepError};

/// Number of times that it tries again where rows are locked, or what it saw has changed.
const ATTEMPTS: usize = 4;

/// What came of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Nothing was asked.
    Idle,
    /// What was asked was answered.
    Served,
    /// Another database is the registry now: a worker there will answer.
    Elsewhere,
    /// This database has no registry.
    Nowhere,
}

/// What is to be done.
enum LeaseJob {
    Nothing,
    /// Another worker id is wanted, and none would do.
    Impossible,
    Acquire(Plan),
    Renew(Lease, Entry),
}

impl<S: Host, L: LeaseLink, H: LeaseHost> LeaseWorker<'_, S, L, H> {
    /// Does what is asked, if anything is, and answers.
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

    /// Does what is to be done about the lease, all of it. Err: not here.
    fn look_after(&mut self) -> Result<Result<(), LeaseError>, Round> {
        for attempt in 1..=ATTEMPTS {
            if self.state.shared.counts.registry() != Some(self.host.database()) {
                return Err(Round::Elsewhere);
            }
            let again = |conflict| conflict && attempt < ATTEMPTS;
            self.other = match self.link.find() {
                Ok(RegistryPlace::Here) => None,
                Ok(RegistryPlace::On(other)) => Some(other),
                Ok(RegistryPlace::Nowhere) => return Err(Round::Nowhere),
                Err(error) if again(error.is_conflict()) => continue,
                Err(error) => return Ok(Err(error.explain())),
            };
            match self.step() {
                Ok(LeaseStep::Again) => {}
                Ok(LeaseStep::Done) => return Ok(Ok(())),
                Err(error) if again(error.is_conflict()) => {}
                Err(error) => return Ok(Err(error.explain())),
            }
        }
        Ok(Err(LeaseError::yet(
            "The row of the worker id in snowflake_ids.worker_lease changes all the time.",
            "Find out what writes to that table.",
        )))
    }

    /// Does what is most urgent.
    fn step(&mut self) -> Result<LeaseStep, StepError<L>> {
        match self.job().map_err(LeaseStepError::State)? {
            LeaseJob::Nothing => Ok(LeaseStep::Done),
            LeaseJob::Impossible => Err(LeaseStepError::None(LeaseError::yet(
                "The clock is behind ids that this server may have issued as any worker.",
                "Set the clock right.",
            ))),
            LeaseJob::Acquire(plan) => self.acquire(&plan),
            LeaseJob::Renew(lease, entry) => self.renew(&lease, &entry),
        }
    }

    /// Returns what is to be done by the state. The claim that it takes is in the state from then on.
    fn job(&mut self) -> Result<LeaseJob, IssuerError> {
        let settings = self.host.settings();
        let shared = self.other.is_some();
        let duration = settings.duration_of(shared);
        let (issuer, requests, other, host) = (&self.state, self.requests, &self.other, &mut self.host);
        let database = host.database();
        issuer.change(|state, here| {
            // A transaction that has just ended this database's use of a registry is not to be undone.
            if state.registry != Some(database) {
                return LeaseJob::Nothing;
            }
            let Identity::Leased { datacenter } = here.identity else { return LeaseJob::Nothing };
            // One that it chose itself may be another node's by the registry.
            if shared && state.lease.as_ref().is_some_and(Lease::is_chosen) {
                state.leave_former();
            }
            // By now the state lock is held, which may have taken a while.
            let now = issuer.believed_now();
            let behind = requests.is_another_wanted(issuer.shared.era());
            let generator = &issuer.shared.generator;
            let next = (generator.limit() > Position::ZERO).then(|| generator.next());
            let limit = state.worker_limit(now);
            let plan = |state: &State, lease: Option<Lease>, usable_at, entry| {
                let known = lease.as_ref().or(state.former.as_ref().filter(|_| shared));
                let chosen = lease.as_ref().filter(|lease| lease.is_chosen()).map(|lease| lease.worker);
                let mut except = state.blocked_workers(datacenter, usable_at);
                // It issues under that one now.
                except.retain(|worker| behind || Some(*worker) != chosen);
                let kept =
                    known.filter(|known| (shared || known.is_chosen()) && !behind).map(|known| known.worker);
                Plan {
                    except,
                    choice: acquire::WorkerRange::within(limit, &here.layout, kept),
                    may_widen: lease.is_none() || behind,
                    token: known.map(|known| known.token),
                    former: known
                        .zip(other.as_ref())
                        .and_then(|(known, other)| former(known, other, datacenter, now)),
                    lease,
                    layout: here.layout,
                    max_drift: here.max_drift,
                    entry,
                }
            };
            match state.lease.clone() {
                Some(lease) if is_of(&lease, other.as_ref()) && !lease.is_chosen() && !behind => {
                    let uptime = host.uptime();
                    let due = requests.until_renewal(lease.expiry, now, duration, uptime).is_zero();
                    // Ids may run ahead of the clock, and come to the expiry long before it does.
                    let is_used_up = state.comes_to(lease.expiry);
                    let is_good = lease.expiry > now && !due && !requests.renew.load(Acquire);
                    // A layout came into use that has no room for the worker id, which is kept where there is no other.
                    let fits = lease.worker <= limit || !holds(Guard::LeaseFits);
                    if is_good && fits && !is_used_up {
                        return LeaseJob::Nothing;
                    }
                    let entry = entry(state, here, datacenter, now, next, duration, host);
                    if !is_good || fits {
                        return LeaseJob::Renew(lease, entry);
                    }
                    LeaseJob::Acquire(plan(state, Some(lease), now.plus(here.max_drift), entry))
                }
                Some(_) if behind && state.blocks_all_workers(now) => LeaseJob::Impossible,
                lease => {
                    // By then the clock must have passed the ids of a worker for it to be of use: now, where that is why.
                    let usable_at = if behind { now } else { now.plus(here.max_drift) };
                    let entry = entry(state, here, datacenter, now, next, duration, host);
                    LeaseJob::Acquire(plan(state, lease, usable_at, entry))
                }
            }
        })
    }

    /// Asks the registry, wherever it is.
    fn ask(&mut self, ask: RequestBody) -> Result<ResponseBody, StepError<L>> {
        let Some(other) = &self.other else {
            let now = self.state.believed_now();
            return self.link.ask_own(ask, now).map_err(LeaseStepError::Registry);
        };
        if self.link.has_just_failed(other) {
            return Err(LeaseStepError::Registry(self.link.doubt(other, Doubt::JustFailed)));
        }
        let answer = self.link.ask_other(other, ask).map_err(LeaseStepError::Registry)?;
        self.registry_clock = Some(answer.clock);
        if answer.registry.timeline > other.seen.timeline {
            self.link.note_seen(&answer.registry).map_err(LeaseStepError::Registry)?;
        }
        let compared = self.state.compare(answer.clock);
        self.host.note(LeaseEvent::Compared(&compared));
        Ok(answer.said)
    }

    /// What another server says is not believed blindly: a lease ends later than now, and no later than it can be leased.
    fn check_expiry(&self, worker: u32, expiry: UnixMicros) -> Result<(), StepError<L>> {
        let now = self.state.believed_now();
        if now < expiry && expiry <= now.plus(2 * MAX_LEASE) {
            return Ok(());
        }
        self.disbelieve(worker, expiry)
    }

    /// Refuses what another server says; the server's own tables are believed.
    fn disbelieve(&self, worker: u32, expiry: UnixMicros) -> Result<(), StepError<L>> {
        let Some(other) = &self.other else { return Ok(()) };
        let (now, max) = (self.state.believed_now(), self.host.settings().max_clock_skew);
        let skew = self.registry_clock.map(|clock| check_clock(now, clock, None, max));
        if let Some(Err(Skew::Registry { by, .. })) = skew {
            return Err(LeaseStepError::Registry(self.link.doubt(other, Doubt::Clocks(by))));
        }
        let why = format!("it leases worker id {worker} until {expiry}");
        Err(LeaseStepError::Registry(self.link.doubt(other, Doubt::Garbled(why))))
    }

    /// The registry, where it is another server.
    fn origin(&self) -> Option<Origin> {
        let other = self.other.as_ref()?;
        Some(Origin { identity: other.seen.identity.clone(), server: other.server.clone() })
    }

    /// Returns whether a lease is of the registry in use.
    fn is_of_registry(&self, lease: &Lease) -> bool {
        is_of(lease, self.other.as_ref())
    }

    /// Notes what the registry has granted, and that it was asked.
    fn note_granted(&mut self, until: UnixMicros) {
        self.requests.granted(until, self.state.believed_now(), self.host.uptime());
        self.requests.renew.store(false, Release);
    }
}

/// Returns whether a lease is of this registry on another server; None: of one of the server's own.
fn is_of(lease: &Lease, other: Option<&Other>) -> bool {
    lease.origin.as_ref().map(|origin| &origin.identity) == other.map(|other| &other.seen.identity)
}

/// Returns what is shown of a lease of another registry that was in the place of this one: under its name here, or in
/// its cluster.
fn former(lease: &Lease, other: &Other, datacenter: u32, now: UnixMicros) -> Option<Former> {
    let cluster = |identity: &str| identity.split('/').next().map(str::to_owned);
    let origin = lease.origin.as_ref()?;
    let is_former = origin.identity != other.seen.identity
        && (origin.server == other.server || cluster(&origin.identity) == cluster(&other.seen.identity));
    let is_good = lease.datacenter == datacenter && lease.expiry > now;
    (is_former && is_good).then_some(Former { worker: lease.worker, expiry: lease.expiry })
}

/// Returns what the row of this server is to say. `next`: the position that it issues next in its own layout, if it issues.
fn entry(
    state: &mut State,
    here: &Here,
    datacenter: u32,
    now: UnixMicros,
    next: Option<Position>,
    duration: Duration,
    host: &impl LeaseHost,
) -> Entry {
    // Ids ahead of the clock are no reason for others to doubt theirs.
    let latest = if holds(Guard::LastBounded) { now } else { UnixMicros(i64::MAX) };
    Entry {
        datacenter,
        token: claim(state, here),
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

/// The token to write into the registry. One that was not answered may be there already.
fn claim(state: &mut State, here: &Here) -> i64 {
    let claim = state.claim.filter(|_| holds(Guard::KeepClaim)).unwrap_or(here.token);
    state.claim = Some(claim).filter(|_| holds(Guard::ClaimFirst));
    claim
}
