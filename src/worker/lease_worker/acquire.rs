//! Taking a worker id.

use super::{Registry, Step, Trouble, transaction};
use crate::issuer;
use crate::lease::{end_of, granted};
use crate::pg::server;
use crate::registry::RegistryError;
use crate::settings;
use crate::store::worker as store;
use snowflake_ids_core::lease::{Choice, Lease, Origin, Policy, Preferred, capacity};
use snowflake_ids_core::state::{Here, State};
use snowflake_ids_core::wire::{Entry, LeaseRequest, Leased, MAX_EXCEPT, NoLease, RequestBody, ResponseBody};
use snowflake_ids_core::{Layout, UnixMicros};
use std::sync::atomic::Ordering::Relaxed;

/// What there is to go by.
pub struct Plan {
    /// The lease that there is: the clock is behind its ids, or it is of another registry.
    pub lease: Option<Lease>,
    /// Worker ids that can't be used here now.
    pub except: Vec<u32>,
    /// Where to begin to look for one; None: where the registry has it.
    pub preferred: Option<Preferred>,
    /// What to write.
    pub entry: Entry,
}

impl Registry<'_> {
    /// Takes a worker id, and gives up the one that the server had.
    pub fn acquire(&mut self, plan: &Plan) -> Result<Step, Trouble> {
        let layout = &self.shared.layout;
        let said = self.ask(RequestBody::Lease(Box::new(plan.wish(layout))));
        if said.is_err() {
            self.leave_former(plan)?;
        }
        let ResponseBody::Leased(leased) = said? else { return Ok(Step::Again) };
        let lease = match leased {
            Leased::Taken { choice, expiry } => {
                let lease = plan.lease_of(&choice, expiry, layout, self.origin());
                self.check(&lease, plan)?;
                lease
            }
            Leased::Missed => return Ok(Step::Again),
            Leased::None(none) => return Err(Trouble::None(self.named(none))),
        };
        let token = plan.entry.token;
        let (worker, expiry) = (lease.worker, lease.expiry);
        let taken_up = issuer::change(self.shared, |state, _| {
            // An operator may have begun the state anew meanwhile.
            let ours = state.claim == Some(token) && state.lease == plan.lease;
            if ours {
                state.take_up(lease);
                state.registry = Some(server::database());
                state.moving_to = None;
            }
            ours
        })?;
        if !taken_up {
            return Ok(Step::Again);
        }
        granted(self.leases, expiry, issuer::believed_now(self.shared));
        self.leases.renew.store(false, Relaxed);
        if let Some(former) = plan.lease.as_ref().filter(|former| former.worker != worker) {
            self.shared.counts.switches.fetch_add(1, Relaxed);
            self.release(former);
        }
        Ok(Step::Done)
    }

    /// A worker id of another registry than the one in use may be anybody's there.
    fn leave_former(&self, plan: &Plan) -> Result<(), Trouble> {
        if plan.lease.as_ref().is_none_or(|lease| self.has_leased(lease)) {
            return Ok(());
        }
        issuer::change(self.shared, |state, _| {
            if state.lease == plan.lease {
                state.give_up();
            }
        })
        .map_err(Trouble::from)
    }

    /// What another server says is not believed blindly.
    fn check(&self, lease: &Lease, plan: &Plan) -> Result<(), Trouble> {
        let Some(site) = &self.site else { return Ok(()) };
        let now = issuer::believed_now(self.shared);
        let layout = &self.shared.layout;
        let latest = layout.position_after(now.plus(settings::rules().max_drift));
        let sane =
            lease.worker < capacity(layout) && !plan.except.contains(&lease.worker) && lease.start <= latest;
        if !sane {
            let why = format!("it leases worker id {} until {}", lease.worker, lease.expiry);
            return Err(Trouble::Away(site.server.clone(), RegistryError::Garbled(why)));
        }
        self.check_expiry(lease.worker, lease.expiry)
    }

    /// With the name of the registry, where it is another server.
    fn named(&self, none: NoLease) -> NoLease {
        let Some(site) = &self.site else { return none };
        NoLease { detail: format!("Registry \"{}\": {}", site.server, none.detail), ..none }
    }

    /// Gives a former worker id back. Should that fail, it is free when its expiry has passed.
    fn release(&mut self, former: &Lease) {
        let from = issuer::change(self.shared, |state, here| end_of(state, former, &here.layout));
        let Ok(from) = from else { return };
        let Lease { datacenter, worker, token, .. } = *former;
        let released = if self.has_leased(former) {
            self.ask(RequestBody::Release { datacenter, worker, token, from }).map(drop)
        } else if former.origin.is_none() {
            transaction(|| store::release(datacenter, worker, token, from))
        } else {
            return;
        };
        if let Err(trouble) = released {
            pgrx::log!("snowflake_ids could not give worker id {worker} back: {}", trouble.why());
        }
    }
}

impl Plan {
    fn wish(&self, layout: &Layout) -> LeaseRequest {
        LeaseRequest {
            entry: self.entry.clone(),
            policy: settings::worker_id_policy(),
            token: self.lease.as_ref().map(|lease| lease.token),
            except: self.except.iter().copied().take(MAX_EXCEPT).collect(),
            capacity: capacity(layout),
            preferred: self.preferred,
            max_clock_skew: settings::max_clock_skew(),
        }
    }

    fn lease_of(
        &self,
        choice: &Choice,
        expiry: UnixMicros,
        layout: &Layout,
        origin: Option<Origin>,
    ) -> Lease {
        let worker = choice.worker();
        let held = self.lease.as_ref().filter(|lease| lease.worker == worker);
        let start = match (choice, held) {
            (Choice::Own(_), Some(lease)) => lease.start,
            (Choice::Own(row), None) => layout.position_after(row.leased),
            (Choice::Free(row), _) => layout.position_at(row.expiry),
            (Choice::New { .. }, _) => 0,
        };
        Lease { datacenter: self.entry.datacenter, worker, token: self.entry.token, start, expiry, origin }
    }
}

/// Where a server with a registry of its own begins to look for a worker id.
pub fn preferred(state: &State, here: &Here) -> Preferred {
    let capacity = capacity(&here.layout);
    if state.copy_of.is_some() {
        return Preferred::of_copy(&state.home.told_apart(), capacity);
    }
    let home = &here.home.identity;
    let preferred = Preferred::alone(here.system_identifier, here.timeline, home, capacity);
    // Numbers that are used up have to last.
    let only = preferred.only && settings::worker_id_policy() != Policy::Disposable;
    Preferred { only, ..preferred }
}
