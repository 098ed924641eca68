//! The lease worker: leases worker ids for this server from the registry, renews the lease and notices its loss. The
//! registry is the table in one of its databases, or that of another server, which this database uses. It leaves when
//! there is nothing to do, so that the database can be dropped and copied.
//!
//! It may die between any two steps. What it is about to write into the registry, the token of a *claim*, is in the
//! server's state before; whoever comes after it knows the row again by that. Requests stay asked until they are
//! answered.

mod acquire;
mod error;
mod renew;

use super::rest;
use crate::issuer;
use crate::lease;
use crate::pg::catalog::{self, Source};
use crate::pg::clock::uptime;
use crate::pg::report;
use crate::pg::wait::Event;
use crate::pg::worker::{Errand, Failed};
use crate::pg::{database, guc, random, server, worker};
use crate::registry::RegistryError;
use crate::registry::call::{self, Caller};
use crate::registry::serve;
use crate::settings;
use crate::shared::generator::{Shared, shared};
use crate::shared::leases::{Leases, leases};
use crate::store::registry::{self as sites, Site};
use error::{Trouble, failure};
use pgrx::spi::SpiError;
use pgrx::{PgSqlErrorCode as Code, PgTryBuilder};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::clock::micros;
use snowflake_ids_core::failover;
use snowflake_ids_core::lease::{Holder, Lease, Origin};
use snowflake_ids_core::state::{Here, Identity, State};
use snowflake_ids_core::wire::{Entry, MAX_LEASE, MAX_TEXT_CHARS, NoLease, RequestBody, ResponseBody, cut};
use std::ffi::CStr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// For how long it waits for a lock, and how often it tries again.
const LOCK_TIMEOUT: &CStr = c"1s";
const ATTEMPTS: usize = 4;

/// Runs until there was nothing to do for a while, or nothing can be done in this database.
pub fn run(errand: Errand, database: u32) {
    let Some((leases, shared)) = leases().zip(shared()) else { return };
    worker::on_exit(go);
    if !leases.worker_slot.is_for(database) || !leases.worker_slot.station.enter() {
        return;
    }
    connect(leases, database);
    leases.arrivals.fetch_add(1, AcqRel);
    match errand {
        Errand::Survey => report(leases, worker::transaction(rank).ok().flatten()),
        Errand::Serve => serve(shared, leases),
    }
}

/// Connects, or notes why it can't and ends.
fn connect(leases: &Leases, database: u32) {
    let locked_out = &leases.locked_out;
    locked_out.store(0, Release);
    PgTryBuilder::new(|| worker::connect(database, LOCK_TIMEOUT))
        .catch_when(Code::ERRCODE_LOCK_NOT_AVAILABLE, move |error| {
            locked_out.store(database, Release);
            error.rethrow()
        })
        .execute();
}

/// Leaves the worker slot, and calls the launcher: there may be requests that came too late.
fn go() {
    let Some(leases) = leases() else { return };
    if leases.worker_slot.station.leave() {
        leases.worker_slot.free();
    }
    lease::call(leases);
}

/// Which of several databases comes first: one that uses a registry on another server, else the one in which the extension
/// was created first. None where there is none.
fn rank() -> Option<u32> {
    let extension = catalog::extension()?;
    let uses = Source::find().map(|source| source.as_owner(sites::in_use)).transpose();
    Some(if matches!(uses, Ok(Some(true))) { 1 } else { extension })
}

/// Tells the launcher how this database ranks.
fn report(leases: &Leases, rank: Option<u32>) {
    let found = u64::from(server::database()) << 32 | u64::from(rank.unwrap_or(0));
    leases.survey.store(found, Release);
}

fn serve(shared: &Shared, leases: &Leases) {
    let mut last_work = uptime();
    let mut caller = Caller::default();
    loop {
        let Some(ticket) = leases.request.pending() else {
            if !rest(Event::LeaseWorker, last_work) {
                return;
            }
            continue;
        };
        last_work = uptime();
        match look_after(shared, leases, &mut caller) {
            Outcome::Done(outcome) => {
                // Whether there was another worker id or not: who asks again says so.
                leases.behind.store(0, Relaxed);
                lease::answer(leases, ticket, outcome);
            }
            Outcome::Elsewhere => return,
            Outcome::NoRegistry => return report(leases, None),
        }
    }
}

/// What came of looking after the lease.
enum Outcome {
    /// There is one, or can't be.
    Done(Result<(), NoLease>),
    /// Another database is the registry now.
    Elsewhere,
    /// This database has none.
    NoRegistry,
}

/// Does what is to be done about the lease, all of it.
fn look_after(shared: &Shared, leases: &Leases, caller: &mut Caller) -> Outcome {
    let moved_to = leases.moved_to.load(Acquire);
    if moved_to != 0 && moved_to != server::database() {
        return Outcome::Elsewhere;
    }
    for attempt in 1..=ATTEMPTS {
        let again = |conflict| conflict && attempt < ATTEMPTS;
        let site = match worker::transaction(find) {
            Ok(Found::Here(None)) if goes_back(shared, leases) => return Outcome::Elsewhere,
            Ok(Found::Here(site)) => site,
            Ok(Found::Elsewhere) => return Outcome::Elsewhere,
            Ok(Found::Nothing) => return Outcome::NoRegistry,
            Err(failed) if again(failed.is_lock_timeout()) => continue,
            Err(failed) => return Outcome::Done(Err(failure(&failed))),
        };
        let mut registry = Registry { shared, leases, caller: &mut *caller, site };
        match registry.step() {
            Ok(Step::Again) => {}
            Ok(Step::Done) => return Outcome::Done(Ok(())),
            Err(trouble) if again(trouble.is_conflict()) => {}
            Err(trouble) => return Outcome::Done(Err(trouble.into())),
        }
    }
    Outcome::Done(Err(NoLease::yet(
        "The row of the worker id in snowflake_ids.worker_lease changes all the time.",
        "See who writes to that table.",
    )))
}

/// Whether this database was to be the registry by a transaction that was rolled back, as the server's end left it.
fn goes_back(shared: &Shared, leases: &Leases) -> bool {
    let this = Some(server::database());
    let back = issuer::change(shared, |state, _| {
        let moved = state.moving_to == this && state.registry.is_some() && state.registry != this;
        state.moving_to = state.moving_to.filter(|_| !moved);
        state.registry.filter(|_| moved)
    });
    let Ok(Some(registry)) = back else { return false };
    leases.moved_to.store(registry, Release);
    true
}

/// Where the registry is.
enum Found {
    /// In this database, or on the server that this database uses.
    Here(Option<Site>),
    Elsewhere,
    Nothing,
}

fn find() -> Found {
    if is_named_elsewhere() {
        return Found::Elsewhere;
    }
    let Some(source) = Source::registry().and_then(|_| Source::find()) else { return Found::Nothing };
    match source.as_owner(sites::sites) {
        // Worker ids come from the first.
        Ok(sites) => Found::Here(sites.into_iter().next()),
        Err(error) => report::raise(report::spi(&error)),
    }
}

/// Whether the setting names another database than this one.
fn is_named_elsewhere() -> bool {
    let name = settings::registry_database();
    !name.is_empty() && database::of_name(&name) != Some(server::database())
}

/// The registry.
struct Registry<'a> {
    shared: &'a Shared,
    leases: &'a Leases,
    caller: &'a mut Caller,
    /// The server that it is on; None: this one.
    site: Option<Site>,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// There is nothing left to do.
    Done,
    /// There is more to do, or what was seen has changed.
    Again,
}

/// What is to be done.
enum Job {
    Nothing,
    /// Another worker id is wanted, and none would do.
    Impossible,
    Acquire(acquire::Plan),
    Renew(Lease, Entry),
}

impl Registry<'_> {
    /// Asks the registry, wherever it is.
    fn ask(&mut self, ask: RequestBody) -> Result<ResponseBody, Trouble> {
        let Some(site) = &self.site else {
            let now = issuer::believed_now(self.shared);
            return transaction(|| serve::answer(ask, now));
        };
        let away = |error| Trouble::Away(site.server.clone(), error);
        // One that did not answer just now would cost its whole time limit again.
        if let Some(entry) = call::entry(site)
            && failover::until_due(&[entry.health()], uptime(), true).is_some_and(|due| !due.is_zero())
        {
            return Err(away(RegistryError::Before("it has given no answer just before".to_owned())));
        }
        let answer = self.caller.ask(site, ask, settings::registry_timeout()).map_err(away)?;
        if answer.registry.timeline > site.seen.timeline {
            transaction(|| sites::note_seen(&answer.registry))?;
        }
        issuer::compare(self.shared, answer.clock);
        Ok(answer.said)
    }

    /// What another server says is not believed blindly: an expiry is later than now, and no later than it can be leased.
    fn check_expiry(&self, worker: u32, expiry: UnixMicros) -> Result<(), Trouble> {
        let Some(site) = &self.site else { return Ok(()) };
        let now = issuer::believed_now(self.shared);
        if now < expiry && expiry <= now.plus(2 * micros(MAX_LEASE)) {
            return Ok(());
        }
        let why = format!("it leases worker id {worker} until {expiry}");
        Err(Trouble::Away(site.server.clone(), RegistryError::Garbled(why)))
    }

    /// The registry, where it is another server.
    fn origin(&self) -> Option<Origin> {
        let site = self.site.as_ref()?;
        Some(Origin { identity: site.seen.identity.clone(), server: site.server.clone() })
    }

    /// Whether a lease is of this registry.
    fn has_leased(&self, lease: &Lease) -> bool {
        lease.origin.as_ref().map(|origin| &origin.identity)
            == self.site.as_ref().map(|site| &site.seen.identity)
    }

    /// Does what is most urgent.
    fn step(&mut self) -> Result<Step, Trouble> {
        match issuer::change(self.shared, |state, here| self.job(state, here))? {
            Job::Nothing => Ok(Step::Done),
            Job::Impossible => Err(Trouble::None(NoLease::yet(
                "The clock is behind ids that this server may have issued as any worker.",
                "Set the clock right.",
            ))),
            Job::Acquire(plan) => self.acquire(&plan),
            Job::Renew(lease, entry) => self.renew(&lease, &entry),
        }
    }

    /// What is to be done by this state. The claim that it will take is in it from now on.
    fn job(&self, state: &mut State, here: &Here) -> Job {
        let Identity::Leased { datacenter } = here.identity else { return Job::Nothing };
        let now = issuer::believed_now(self.shared);
        match state.lease.clone() {
            Some(lease) if self.has_leased(&lease) && !self.is_behind() => {
                let ended = lease.expiry <= now;
                let due = ended || lease::until_renewal(lease.expiry, now).is_zero();
                if !due && !self.leases.renew.load(Acquire) {
                    return Job::Nothing;
                }
                Job::Renew(lease, self.entry(state, here, datacenter, now))
            }
            Some(_) if self.is_behind() && state.blocks_all_workers(&here.layout, now) => Job::Impossible,
            lease => Job::Acquire(acquire::Plan {
                lease,
                except: state.blocked_workers(&here.layout, datacenter, self.usable_at(now, here)),
                preferred: self.site.is_none().then(|| acquire::preferred(state, here)),
                entry: self.entry(state, here, datacenter, now),
            }),
        }
    }

    /// By when the ids of a worker must be passed for it to be leased: now, where that is why; else soon.
    fn usable_at(&self, now: UnixMicros, here: &Here) -> UnixMicros {
        if self.is_behind() { now } else { now.plus(here.max_drift) }
    }

    /// Whether a caller has found the clock behind the ids, and nobody has done anything about it since.
    fn is_behind(&self) -> bool {
        self.leases.behind.load(Relaxed) == self.shared.generator.era() + 1
    }

    fn entry(&self, state: &mut State, here: &Here, datacenter: u32, now: UnixMicros) -> Entry {
        // One that was not answered may be in the registry already.
        let token = *state.claim.get_or_insert_with(random::token);
        let generator = &self.shared.generator;
        // Ids far ahead of the clock are no reason for others to doubt theirs.
        let latest = now.plus(here.max_drift);
        let last = (generator.limit() > 0).then(|| here.layout.instant_of(generator.next()).min(latest));
        Entry {
            datacenter,
            token,
            duration: lease::duration(self.site.is_some()),
            now,
            last,
            holder: Holder {
                system_identifier: here.system_identifier.cast_signed(),
                timeline: here.timeline,
                host: cut(&here.home.host, MAX_TEXT_CHARS),
                port: guc::shown(c"port").and_then(|port| port.parse().ok()),
                directory: cut(&here.home.directory, MAX_TEXT_CHARS),
                layout: here.layout.to_string(),
            },
        }
    }
}

/// Runs a transaction with the rights of the owner of the registry's table.
fn transaction<T>(work: impl FnOnce() -> Result<T, SpiError>) -> Result<T, Trouble> {
    let done = worker::transaction(|| Source::registry().map(|source| source.as_owner(work)));
    match done.map_err(Trouble::Failed)? {
        Some(done) => done.map_err(|error| Trouble::Failed(Failed::of_spi(&error))),
        None => Err(Trouble::None(NoLease::yet(
            "The extension has just been dropped from the database that holds the registry.",
            "Try again.",
        ))),
    }
}
