//! Taking a worker id.

use super::error::LeaseStepError;
use super::host::{LeaseEvent, LeaseHost, LeaseLink};
use super::worker::{LeaseStep, LeaseWorker, StepError};
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::registry::lease::{Choice, Lease, Origin, Policy, Preferred, capacity};
use crate::registry::wire::{
    Entry, Former, LeaseError, LeaseRequest, Leased, MAX_EXCEPT, RequestBody, ResponseBody,
};
use crate::server::issuer::Host;
use std::time::Duration;

/// What there is to go by.
#[derive(Clone)]
pub struct Plan {
    /// The lease that there is: the clock is behind its ids, or it is of another registry.
    pub lease: Option<Lease>,
    /// The token of the lease that there is, or was.
    pub token: Option<i64>,
    /// What the registry is shown of it, where it is of one that was in its place.
    pub former: Option<Former>,
    /// Worker ids that cannot be used here now.
    pub except: Vec<u32>,
    /// Those among which one is looked for.
    pub choice: WorkerRange,
    /// True if one that has no room in some layout is better than none.
    pub may_widen: bool,
    /// The server's own layout.
    pub layout: Layout,
    /// How far ids may run ahead of the clock.
    pub max_drift: Duration,
    /// What to write.
    pub entry: Entry,
}

/// Worker ids among which one is looked for.
#[derive(Clone, Copy)]
pub struct WorkerRange {
    /// How many there are, from 0 on.
    capacity: u32,
    /// Where to begin; None: where the registry has it.
    preferred: Option<Preferred>,
    /// How many the server's own layout has, where these are not all.
    all: Option<u32>,
}

impl WorkerRange {
    /// Those up to `limit`: which have room in all layouts that are in use.
    /// `kept`: the one to begin with, which the server has from elsewhere.
    pub fn within(limit: u32, layout: &Layout, kept: Option<u32>) -> Self {
        let most = capacity(layout);
        let capacity = most.min(limit.saturating_add(1));
        Self { capacity, preferred: kept.map(Preferred::from), all: (capacity < most).then_some(most) }
    }

    fn widened(self) -> Option<Self> {
        self.all.map(|capacity| Self { capacity, all: None, ..self })
    }
}

impl<S: Host, L: LeaseLink, H: LeaseHost> LeaseWorker<'_, S, L, H> {
    /// Takes a worker id, and gives up the one that the server had.
    pub(super) fn acquire(&mut self, plan: &Plan) -> Result<LeaseStep, StepError<L>> {
        let settings = self.host.settings();
        let said =
            self.ask(RequestBody::Lease(Box::new(plan.wish(settings.policy, settings.max_clock_skew))));
        if said.is_err() {
            self.leave_former(plan)?;
        }
        let ResponseBody::Leased(leased) = said? else { return Ok(LeaseStep::Again) };
        let lease = match leased {
            Leased::Taken { choice, expiry } => plan.lease_of(&choice, expiry, self.origin()),
            Leased::Missed => return Ok(LeaseStep::Again),
            // Better one that has no room in some layout than none at all.
            Leased::None(none) => {
                let Some(widened) = plan.widened() else {
                    self.leave_former(plan)?;
                    return Err(LeaseStepError::None(self.named(none)));
                };
                return self.acquire(&widened);
            }
        };
        self.check_lease(&lease, plan)?;
        let former = plan.lease.as_ref().filter(|former| former.worker != lease.worker);
        if let Some(former) = former.filter(|_| !holds(Guard::ReleaseLast)) {
            self.release(former);
        }
        let expiry = lease.expiry;
        if !self.take_up(lease.clone(), plan)? {
            self.release(&lease);
            return Ok(LeaseStep::Again);
        }
        self.note_granted(expiry);
        if let Some(former) = former {
            self.host.note(LeaseEvent::Switched);
            self.release(former);
        }
        Ok(LeaseStep::Done)
    }

    /// Has the server issue under the lease from now on; whether the state is still what the plan was made by.
    fn take_up(&mut self, lease: Lease, plan: &Plan) -> Result<bool, StepError<L>> {
        let (token, database) = (plan.entry.token, self.host.database());
        let taken_up = self.state.change(|state, _| {
            // An operator may have begun the state anew meanwhile.
            let claimed = state.claim == Some(token) || !holds(Guard::ClaimFirst);
            let ours = claimed && state.lease == plan.lease;
            if ours {
                state.leased_from(database, lease.origin.as_ref());
                state.take_up(lease);
            }
            ours
        });
        taken_up.map_err(LeaseStepError::State)
    }

    /// A worker id of another registry than the one in use may be any server's there.
    fn leave_former(&mut self, plan: &Plan) -> Result<(), StepError<L>> {
        if plan.lease.as_ref().is_none_or(|lease| self.is_of_registry(lease)) {
            return Ok(());
        }
        let left = self.state.change(|state, _| {
            if state.lease == plan.lease {
                state.leave_former();
            }
        });
        left.map_err(LeaseStepError::State)
    }

    /// What another server says is not believed blindly.
    fn check_lease(&self, lease: &Lease, plan: &Plan) -> Result<(), StepError<L>> {
        let latest = plan.layout.position_after(self.state.believed_now().plus(plan.max_drift));
        let sane = lease.worker < plan.choice.capacity
            && !plan.except.contains(&lease.worker)
            && lease.start <= latest;
        if sane {
            self.check_expiry(lease.worker, lease.expiry)
        } else {
            self.disbelieve(lease.worker, lease.expiry)
        }
    }

    /// With the name of the registry, where it is another server.
    fn named(&self, none: LeaseError) -> LeaseError {
        let Some(other) = &self.other else { return none };
        LeaseError { detail: format!("Registry \"{}\": {}", other.server, none.detail), ..none }
    }

    /// Gives a former worker id back. Should that fail, it is free when its lease has ended.
    fn release(&mut self, former: &Lease) {
        if former.is_chosen() {
            return;
        }
        let from = self.state.change(|state, _| state.end_of(former));
        let Ok(from) = from else { return };
        let Lease { datacenter, worker, token, .. } = *former;
        let ask = RequestBody::Release { datacenter, worker, token, from };
        let released = if self.is_of_registry(former) {
            self.ask(ask)
        } else if former.origin.is_none() {
            let now = self.state.believed_now();
            self.link.ask_own(ask, now).map_err(LeaseStepError::Registry)
        } else {
            return;
        };
        if let Err(error) = released {
            self.host.note(LeaseEvent::NotReleased(worker, &error.to_string()));
        }
    }
}

impl Plan {
    /// The same for all worker ids: better one that has no room in some layout than none at all.
    fn widened(&self) -> Option<Self> {
        let choice = self.choice.widened().filter(|_| self.may_widen)?;
        Some(Self { choice, ..self.clone() })
    }

    fn wish(&self, policy: Policy, max_clock_skew: Duration) -> LeaseRequest {
        LeaseRequest {
            entry: self.entry.clone(),
            policy,
            token: self.token,
            except: self.except.iter().copied().take(MAX_EXCEPT).collect(),
            capacity: self.choice.capacity,
            preferred: self.choice.preferred,
            max_clock_skew,
            former: self.former,
            taken: Vec::new(),
            longest: Duration::ZERO,
        }
    }

    fn lease_of(&self, choice: &Choice, expiry: UnixMicros, origin: Option<Origin>) -> Lease {
        let worker = choice.worker();
        let held = self.lease.as_ref().filter(|lease| lease.worker == worker);
        let (start, since) = match (choice, held) {
            (Choice::Own(_), Some(lease)) => (lease.start, lease.since),
            (Choice::New { .. }, Some(lease)) if lease.is_chosen() => (lease.start, lease.since),
            (Choice::Own(row), None) if holds(Guard::ClaimStart) => {
                (self.layout.position_after(row.leased), Some(row.leased.plus_micros(1)))
            }
            (Choice::Free(row), _) if holds(Guard::StartAtExpiry) => {
                (self.layout.position_at(row.expiry), Some(row.expiry))
            }
            _ => (Position::ZERO, None),
        };
        let token = self.entry.token;
        Lease { datacenter: self.entry.datacenter, worker, token, start, since, expiry, origin }
    }
}
