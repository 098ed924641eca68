//! Acquisition of a worker id, and renewal of its lease.

use super::host::{LeaseEvent, LeaseHost, LeaseStep, LeaseWorker, StepError};
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::layout::{Field, Layout};
use crate::registry::link::Endpoint;
use crate::registry::wire::{
    Entry, FormerLease, LeaseRequest, Leased, MAX_EXCEPT, RequestBody, ResponseBody,
};
use crate::server::issuer::Host;
use crate::server::lease::{Choice, Lease, Origin, Policy, Preferred, capacity};
use crate::server::state::{Here, Identity, State};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;

/// The largest number of datacenters that one acquisition searches.
const MAX_DATACENTERS: u32 = 1_024;

/// The parameters of an acquisition.
#[derive(Clone)]
pub struct Acquisition {
    /// The lease to give back once the server has another one. The present lease, for example because the clock is behind
    /// the ids of the lease's worker id, or because the lease is from another registry; or a lease from this server's own
    /// tables that was given up when the server joined a registry.
    pub previous: Option<Lease>,
    /// True if the server still holds the previous lease.
    pub is_held: bool,
    /// The token of the present or previous lease.
    pub token: Option<i64>,
    /// A lease from the previous registry. The server shows this lease to the registry that replaced the previous
    /// registry.
    pub former: Option<FormerLease>,
    /// Pairs of datacenter and worker id that the server cannot use now.
    pub blocked: BTreeSet<(u32, u32)>,
    /// The datacenter of the first request.
    pub first: u32,
    /// The datacenters that are searched after `first`, if no datacenter id is configured.
    pub later: Range<u32>,
    /// The number of datacenters of the server's own layout, if no datacenter id is configured.
    pub datacenters: u32,
    /// The worker ids to search.
    pub choice: WorkerIdRange,
    /// True if a worker id that is too large for some layout in use is better than no worker id.
    pub may_widen: bool,
    pub layout: Layout,
    pub max_drift: Duration,
    pub entry: Entry,
}

/// A range of worker ids to search.
#[derive(Clone, Copy)]
pub struct WorkerIdRange {
    capacity: u32,
    /// The worker ids to try first. None if the registry decides.
    preferred: Option<Preferred>,
    /// The number of worker ids of the server's own layout, if that number is greater than `capacity`.
    all: Option<u32>,
}

impl WorkerIdRange {
    /// Returns the worker ids up to `limit`, which fit all layouts in use. `kept` is the worker id that the server
    /// already has and that is tried first.
    pub fn within(limit: u32, layout: &Layout, kept: Option<u32>) -> Self {
        let most = capacity(layout);
        let capacity = most.min(limit.saturating_add(1));
        Self { capacity, preferred: kept.map(Preferred::from), all: (capacity < most).then_some(most) }
    }
}

impl<S: Host, H: LeaseHost> LeaseWorker<'_, S, H> {
    /// Leases a worker id, and gives the previous worker id back.
    pub(super) fn acquire(&mut self, mut acquisition: Acquisition) -> Result<LeaseStep, StepError> {
        let settings = self.host.settings();
        let lease = loop {
            let request = acquisition.request(settings.policy, settings.max_clock_skew);
            let said = self.ask(RequestBody::Lease(Box::new(request)));
            if said.is_err() {
                self.leave_former(&acquisition)?;
            }
            match said? {
                ResponseBody::Leased(Leased::Taken { choice, expiry }) => {
                    break acquisition.lease_of(&choice, expiry, self.origin());
                }
                ResponseBody::Leased(Leased::None(mut none)) => {
                    if acquisition.widen() {
                        continue;
                    }
                    self.leave_former(&acquisition)?;
                    if let Some(endpoint) = &self.endpoint {
                        none.detail = format!("Registry \"{}\": {}", endpoint.server, none.detail);
                    }
                    return Err(StepError::None(none));
                }
                _ => return Ok(LeaseStep::Again),
            }
        };
        self.check_lease(&lease, &acquisition)?;
        let previous = acquisition.previous.as_ref();
        // The row in this server's own tables is given back even if the registry leased the same worker id.
        let former = previous.filter(|former| !lease.is_same(former) || lease.origin != former.origin);
        if let Some(former) = former.filter(|_| !holds(Guard::ReleaseLast)) {
            self.release(former);
        }
        let expiry = lease.expiry;
        if !self.take_up(lease.clone(), &acquisition)? {
            self.release(&lease);
            return Ok(LeaseStep::Again);
        }
        self.record_granted(expiry);
        if let Some(former) = former {
            if !lease.is_same(former) {
                self.host.record(LeaseEvent::Switched);
            }
            self.release(former);
        }
        Ok(LeaseStep::Done)
    }

    /// Writes the lease into the state. Returns false if the state has changed since the acquisition was made.
    fn take_up(&mut self, lease: Lease, acquisition: &Acquisition) -> Result<bool, StepError> {
        let (token, database) = (acquisition.entry.token, self.host.database());
        Ok(self.state.change(|state, _| {
            // An administrator may have reset the state meanwhile.
            let pending = state.pending_token == Some(token) || !holds(Guard::PendingTokenFirst);
            let ours = pending && state.lease.as_ref() == acquisition.lease();
            if ours {
                state.leased_from(database, lease.origin.as_ref());
                state.take_up(lease);
            }
            ours
        })?)
    }

    /// Gives up a worker id that was leased from another registry. Another server may hold the same worker id by a
    /// lease from the registry in use now.
    fn leave_former(&mut self, acquisition: &Acquisition) -> Result<(), StepError> {
        if acquisition.lease().is_none_or(|lease| self.is_of_registry(lease)) {
            return Ok(());
        }
        Ok(self.state.change(|state, _| {
            if state.lease.as_ref() == acquisition.lease() {
                state.leave_former();
            }
        })?)
    }

    /// Rejects a lease that no correct registry would grant.
    fn check_lease(&self, lease: &Lease, acquisition: &Acquisition) -> Result<(), StepError> {
        let latest = acquisition.layout.position_after(self.state.believed_now().plus(acquisition.max_drift));
        let sane = lease.worker_id < acquisition.choice.capacity
            && !acquisition.blocked.contains(&(lease.datacenter, lease.worker_id))
            && lease.start_in(&acquisition.layout) <= latest;
        if sane {
            self.check_expiry(lease.worker_id, lease.expiry)
        } else {
            self.disbelieve(lease.worker_id, lease.expiry)
        }
    }

    /// Gives a worker id back. After an error, the worker id becomes free when its lease expires.
    fn release(&mut self, former: &Lease) {
        if former.is_chosen() {
            return;
        }
        let from = self.state.change(|state, _| state.end_of(former));
        let Ok(from) = from else { return };
        let Lease { datacenter, worker_id, token, .. } = *former;
        let ask = RequestBody::Release { datacenter, worker_id, token, from };
        let released = if self.is_of_registry(former) {
            self.ask(ask)
        } else if former.origin.is_none() {
            let now = self.state.believed_now();
            self.host.ask(None, ask, now).map(|answer| answer.said).map_err(StepError::Registry)
        } else {
            return;
        };
        let why = match released {
            Ok(_) => return,
            Err(StepError::Registry(error)) => error.to_string(),
            Err(StepError::None(none)) => none.to_string(),
        };
        self.host.record(LeaseEvent::NotReleased(worker_id, &why));
    }

    /// Extends the lease, or notices that the lease is lost.
    pub(super) fn renew(&mut self, lease: &Lease, entry: &Entry) -> Result<LeaseStep, StepError> {
        let ask = RequestBody::Renew { worker_id: lease.worker_id, token: lease.token, entry: entry.clone() };
        let ResponseBody::Renewed(expiry) = self.ask(ask)? else { return Ok(LeaseStep::Again) };
        if let Some(expiry) = expiry {
            self.check_expiry(lease.worker_id, expiry)?;
        }
        let origin = self.origin();
        let lost = self.state.change(|state, _| {
            let Some(held) = state.lease.as_mut().filter(|held| held.token == lease.token) else {
                return false;
            };
            if let Some(expiry) = expiry {
                held.token = entry.token;
                held.expiry = expiry;
                held.origin = origin;
                state.pending_token = None;
            } else {
                state.give_up();
            }
            expiry.is_none()
        })?;
        match expiry {
            Some(expiry) => self.record_granted(expiry),
            None => self.requests.renew.store(false, Release),
        }
        if lost {
            self.host.record(LeaseEvent::Lost(lease));
            return Ok(LeaseStep::Again);
        }
        Ok(LeaseStep::Done)
    }
}

impl Acquisition {
    /// Returns the acquisition for replacing the state's lease. `endpoint` is None for this server's own registry. `behind` is
    /// true if the clock is behind the ids of the present worker id.
    pub fn new(state: &State, here: &Here, endpoint: Option<&Endpoint>, behind: bool, entry: Entry) -> Self {
        let (now, lease) = (entry.now, state.lease.clone());
        let known = lease.as_ref().or(state.former.as_ref().filter(|_| endpoint.is_some()));
        let chosen = lease.as_ref().filter(|lease| lease.is_chosen());
        let chosen = chosen.map(|lease| (lease.datacenter, lease.worker_id));
        // A worker id is usable once the clock has passed the ids that this server issued under this worker id. Normally,
        // a worker id that becomes usable within `max_drift` may be chosen. If the clock is behind, the worker id must be
        // usable now.
        let usable_at = if behind { now } else { now.plus(here.max_drift) };
        let mut blocked = state.blocked_pairs(usable_at);
        // The worker id that the server chose itself stays usable, because the server already issues ids under this worker
        // id.
        blocked.retain(|pair| behind || Some(*pair) != chosen);
        let kept = known.filter(|known| (endpoint.is_some() || known.is_chosen()) && !behind);
        let kept = kept.filter(|known| known.datacenter == entry.datacenter).map(|known| known.worker_id);
        let all = matches!(here.identity, Identity::Leased { datacenter: None });
        let of = |most: u32| if all { most.saturating_add(1).min(MAX_DATACENTERS) } else { 0 };
        let former = known.zip(endpoint);
        Self {
            blocked,
            first: entry.datacenter,
            later: 0..of(state.limit(Field::Datacenter, now)),
            datacenters: of(u32::try_from(here.layout.max(Field::Datacenter)).unwrap_or(u32::MAX)),
            choice: WorkerIdRange::within(state.worker_id_limit(now), &here.layout, kept),
            may_widen: lease.is_none() || behind,
            token: known.map(|known| known.token),
            former: former.and_then(|(known, endpoint)| former_lease(known, endpoint, entry.datacenter, now)),
            is_held: lease.is_some(),
            previous: lease.or(state.former.clone().filter(|former| former.origin.is_none())),
            layout: here.layout,
            max_drift: here.max_drift,
            entry,
        }
    }

    /// Returns the present lease.
    fn lease(&self) -> Option<&Lease> {
        self.previous.as_ref().filter(|_| self.is_held)
    }

    /// Moves on to the next datacenter. After the last datacenter, begins again with all worker ids, including those that
    /// are too large for some layout in use. Returns false if the acquisition does not allow more worker ids.
    fn widen(&mut self) -> bool {
        let first = self.first;
        if let Some(next) = self.later.find(|next| *next != first) {
            self.entry.datacenter = next;
            return true;
        }
        // A worker id that is too large for some layout is better than no worker id.
        let Some(capacity) = self.choice.all.take().filter(|_| self.may_widen) else { return false };
        self.choice.capacity = capacity;
        self.entry.datacenter = first;
        self.later = 0..self.datacenters;
        true
    }

    fn is_at_first(&self) -> bool {
        self.entry.datacenter == self.first
    }

    fn request(&self, policy: Policy, max_clock_skew: Duration) -> LeaseRequest {
        LeaseRequest {
            entry: self.entry.clone(),
            policy,
            token: self.token,
            except: self.except().take(MAX_EXCEPT).collect(),
            capacity: self.choice.capacity,
            preferred: self.choice.preferred.filter(|_| self.is_at_first()),
            max_clock_skew,
            former: self.former.filter(|_| self.is_at_first()),
        }
    }

    /// Returns the worker ids of the datacenter that the server cannot use now.
    fn except(&self) -> impl Iterator<Item = u32> {
        let of_it = self.blocked.iter().filter(|(datacenter, _)| *datacenter == self.entry.datacenter);
        of_it.map(|(_, worker_id)| *worker_id)
    }

    fn lease_of(&self, choice: &Choice, expiry: UnixMicros, origin: Option<Origin>) -> Lease {
        let worker_id = choice.worker_id();
        let (datacenter, token) = (self.entry.datacenter, self.entry.token);
        let is_held = |lease: &&Lease| (lease.datacenter, lease.worker_id) == (datacenter, worker_id);
        let held = self.lease().filter(is_held);
        let since = match (choice, held) {
            (Choice::Own(_), Some(lease)) => lease.since,
            (Choice::New { .. }, Some(lease)) if lease.is_chosen() => lease.since,
            (Choice::Own(row), None) if holds(Guard::PendingTokenStart) => {
                self.layout.instant_of(self.layout.position_after(row.leased))
            }
            (Choice::Free(row), _) if holds(Guard::StartAtExpiry) => row.expiry,
            _ => UnixMicros(0),
        };
        Lease { datacenter, worker_id, token, since, expiry, origin }
    }
}

/// Returns the lease of a previous registry, which the server shows to the registry that replaced it. The previous registry
/// had the same foreign server, or was in the same database cluster.
fn former_lease(lease: &Lease, endpoint: &Endpoint, datacenter: u32, now: UnixMicros) -> Option<FormerLease> {
    let cluster = |identity: &str| identity.split('/').next().map(str::to_owned);
    let origin = lease.origin.as_ref()?;
    let is_former = origin.identity != endpoint.seen.identity
        && (origin.server == endpoint.server
            || cluster(&origin.identity) == cluster(&endpoint.seen.identity));
    let is_good = lease.datacenter == datacenter && lease.expiry > now;
    (is_former && is_good).then_some(FormerLease { worker_id: lease.worker_id, expiry: lease.expiry })
}
