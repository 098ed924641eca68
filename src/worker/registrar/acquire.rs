//! Taking a worker id.

use super::{Registry, Step, Trouble, transaction};
use crate::error::sentence;
use crate::pg::server;
use crate::settings;
use crate::store::worker::{self as store, Entry};
use crate::tenure;
use crate::worker::lease::NoLease;
use pgrx::spi::SpiError;
use snowflake_ids_core::lease::{Choice, Lease, Policy, Preferred, Search, check_clock};
use snowflake_ids_core::state::{Here, State};
use snowflake_ids_core::{Explain, Field, Layout, UnixMicros};
use std::sync::atomic::Ordering::Relaxed;

/// How many holders an error lists.
const LISTED: i32 = 20;

/// What there is to go by.
pub struct Plan {
    /// The lease that there is, under which the clock is behind.
    pub lease: Option<Lease>,
    /// Worker ids that can't be used here now.
    pub except: Vec<u32>,
    /// Where to begin to look for one.
    pub preferred: Preferred,
    /// What to write.
    pub entry: Entry,
}

/// What came of the search.
enum Found {
    Taken(Lease),
    /// Another was faster.
    Missed,
    /// There is no lease to be had.
    None(NoLease),
}

impl Registry<'_> {
    /// Takes a worker id, and gives up the one that the server had.
    pub fn acquire(&self, plan: &Plan) -> Result<Step, Trouble> {
        let layout = &self.shared.layout;
        let lease = match transaction(|| plan.take(layout))? {
            Found::Taken(lease) => lease,
            Found::Missed => return Ok(Step::Again),
            Found::None(none) => return Err(Trouble::None(none)),
        };
        let token = plan.entry.token;
        let worker = lease.worker;
        let taken_up = tenure::change(self.shared, |state, _| {
            // An operator may have begun the state anew meanwhile.
            let ours = state.claim == Some(token) && state.lease == plan.lease;
            if ours {
                state.take_up(lease);
                state.registry = Some(server::database());
            }
            ours
        })?;
        if !taken_up {
            return Ok(Step::Again);
        }
        self.leases.renew.store(false, Relaxed);
        if let Some(former) = plan.lease.as_ref().filter(|former| former.worker != worker) {
            self.shared.counts.switches.fetch_add(1, Relaxed);
            self.release(former);
        }
        Ok(Step::Done)
    }

    /// Gives a former worker id back. Should that fail, it is free when its horizon has passed.
    fn release(&self, former: &Lease) {
        let from = tenure::change(self.shared, |state, here| end_of(state, former, &here.layout));
        let Ok(from) = from else { return };
        let released = transaction(|| store::release(former.datacenter, former.worker, former.token, from));
        if let Err(Trouble::Failed(failed)) = released {
            pgrx::log!("snowflake_ids could not give worker id {} back: {}", former.worker, failed.message);
        }
    }
}

/// The instant from which another may issue as the worker of a lease: the tick after the last in which we did.
pub fn end_of(state: &State, lease: &Lease, layout: &Layout) -> UnixMicros {
    let marks = state.marks.iter().filter(|mark| lease.is_of(mark.node));
    let end = marks.map(|mark| mark.position).fold(lease.start, u64::max);
    layout.instant_of(end).plus(layout.unit())
}

impl Plan {
    /// Chooses a worker id and takes it.
    fn take(&self, layout: &Layout) -> Result<Found, SpiError> {
        let entry = &self.entry;
        let (highest, latest) = store::overview(entry)?;
        if let Err(skew) = check_clock(entry.now, entry.now, latest, settings::max_clock_skew()) {
            let detail = format!("{skew}. {}", skew.detail().unwrap_or_default());
            return Ok(Found::None(NoLease::yet(sentence(&detail), skew.hint().unwrap_or_default())));
        }
        let capacity = capacity(layout);
        let own = [self.lease.as_ref().map(|lease| lease.token), Some(entry.token)];
        let policy = settings::worker_id_policy();
        // Above all that there are is one that nobody had: then there is no need to look at them.
        let above = highest.map(|highest| highest.saturating_add(1)).filter(|above| *above < capacity);
        let above = above.filter(|_| policy == Policy::Disposable);
        let search = Search {
            policy,
            own,
            except: &self.except,
            preferred: above.map_or(self.preferred, |worker| Preferred { worker, share: 1, only: false }),
            capacity,
            now: entry.now,
        };
        let rows = store::rows(entry.datacenter, above.is_none(), own)?;
        let Some(choice) = search.choose(&rows) else {
            return self.none_free(capacity).map(Found::None);
        };
        let taken = store::take(&choice, entry)?;
        Ok(taken.map_or(Found::Missed, |horizon| Found::Taken(self.lease_of(&choice, horizon, layout))))
    }

    fn lease_of(&self, choice: &Choice, horizon: UnixMicros, layout: &Layout) -> Lease {
        let worker = choice.worker();
        let held = self.lease.as_ref().filter(|lease| lease.worker == worker);
        let start = match (choice, held) {
            (Choice::Own(_), Some(lease)) => lease.start,
            (Choice::Own(row), None) => layout.position_after(row.leased),
            (Choice::Free(row), _) => layout.position_at(row.horizon),
            (Choice::New { .. }, _) => 0,
        };
        Lease { datacenter: self.entry.datacenter, worker, token: self.entry.token, start, horizon }
    }

    /// Who has them all.
    fn none_free(&self, capacity: u32) -> Result<NoLease, SpiError> {
        let datacenter = self.entry.datacenter;
        let mut detail = format!("Datacenter {datacenter} has {capacity} worker ids.");
        let mut hint = "Give ids of servers that are gone back with SELECT snowflake_ids.worker_release(worker_id), or \
                        choose a snowflake_ids.layout with more worker bits.";
        if self.preferred.only {
            let Preferred { worker, share, .. } = self.preferred;
            let first = worker - worker % share;
            detail = format!(
                "{detail} This server, whose registry is its own, may use {first} to {}.",
                first + share - 1
            );
        }
        if settings::worker_id_policy() == Policy::Disposable {
            detail.push_str(" snowflake_ids.worker_id_policy is disposable: none is used that anybody had.");
            hint = "Set snowflake_ids.worker_id_policy to reuse or queue and reload, or choose a snowflake_ids.layout \
                    with more worker bits.";
        }
        let holders = store::holders(datacenter, capacity - 1, LISTED, self.entry.now)?;
        if !holders.is_empty() {
            let more = if holders.len() < usize::try_from(LISTED).unwrap_or(0) { "" } else { ", ..." };
            detail = format!("{detail} Leased are: {}{more}.", holders.join(", "));
        }
        if !self.except.is_empty() {
            let except: Vec<String> = self.except.iter().map(u32::to_string).collect();
            detail =
                format!("{detail} The clock has not passed the ids issued here as {}.", except.join(", "));
        }
        Ok(NoLease { message: "no worker id is free".into(), detail, hint: hint.into() })
    }
}

/// Where a server with a registry of its own begins to look for a worker id.
pub fn preferred(state: &State, here: &Here) -> Preferred {
    let capacity = capacity(&here.layout);
    let home = &here.home.identity;
    if state.copy_of.is_some() {
        return Preferred::of_copy(home, capacity);
    }
    let preferred = Preferred::alone(here.system_identifier, here.timeline, home, capacity);
    // Numbers that are used up have to last.
    let only = preferred.only && settings::worker_id_policy() != Policy::Disposable;
    Preferred { only, ..preferred }
}

/// How many worker ids there are.
fn capacity(layout: &Layout) -> u32 {
    const MOST: u32 = i32::MAX.cast_unsigned();
    u32::try_from(layout.max(Field::Worker)).map_or(MOST, |last| last.min(MOST - 1) + 1)
}
