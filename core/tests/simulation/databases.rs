//! A server's databases, one of which may use a registry. The launcher's shipped code looks for that database, and starts a lease
//! worker in it.

use super::event::Event;
use super::host::Host;
use super::lease_worker::renew;
use super::registry::Registry;
use snowflake_ids_core::registry::lease_launch::{
    self, DatabaseUse, Databases, End, KnownRegistry, Launch, LaunchAction, LeaseTask, RegistryChanges,
    Renewal,
};
use snowflake_ids_core::server::issuer::Issuer;
use snowflake_ids_core::server::state::Chosen;
use snowflake_ids_core::tag::tickets::Answer;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A database. Its oid is its number among the server's databases, from 1.
pub struct Database {
    /// Whether the database uses the servers' common registry.
    pub draws: Cell<bool>,
    /// The registry in this database, if it leases worker ids.
    pub registry: RefCell<Option<Rc<Registry>>>,
    /// The table of first-chosen worker ids, once the extension is created.
    pub chosen: RefCell<Option<Vec<Chosen>>>,
}

/// The worker slot of a server's lease worker.
#[derive(Default)]
pub struct LeaseSlot {
    /// The slot's database; 0: the slot is free.
    pub database: Cell<u32>,
    /// The index of the running lease worker among the server's processes.
    pub process: Cell<Option<usize>>,
    /// The worker's report to the launcher, once the worker has reached its database.
    reached: Cell<Option<End>>,
    ended: Cell<bool>,
}

impl LeaseSlot {
    /// Reports to the launcher how the database uses registries.
    pub fn report(&self, found: DatabaseUse) {
        self.reached.set(Some(End { arrived: true, found: Some(found) }));
    }

    pub fn end(&self) {
        self.process.set(None);
        self.ended.set(true);
    }
}

/// The launcher's memory about leases.
#[derive(Default)]
pub struct Leases {
    launch: Launch,
    renewal: Renewal,
}

impl Leases {
    pub fn round(&mut self, host: &Host<'_>, issuer: &Issuer<'_, &Host<'_>>) {
        let (slot, requests, uptime) = (&host.live.slot, &host.live.requests, host.uptime());
        if slot.ended.take() {
            slot.database.set(0);
            let end = slot.reached.take().unwrap_or(End { arrived: false, found: None });
            self.launch.ended(end, host, uptime);
        }
        renew(host, issuer, &mut self.renewal);
        let known = KnownRegistry::of(&host.live.shared.status);
        let pending = requests.request.pending().is_some();
        let changes = RegistryChanges::take(requests, &host.live.shared.status);
        match self.launch.next(pending, slot.database.get() == 0, known, changes, host, uptime) {
            LaunchAction::Start(task, database) => {
                slot.database.set(database);
                host.sim.record(|| format!("server {}: {task:?} in {database}", host.server.number));
                let (server, slot_generation) = (host.server.number, host.server.slot_generation.get());
                let start = Event::LeaseWorker { server, slot_generation, task, database };
                host.send(host.sim.chance.between(1, 100_000), start);
            }
            LaunchAction::Record(found) => {
                let recorded =
                    issuer.change(|state, here| lease_launch::record(state, here, requests, found));
                if host.record(recorded).is_some() && found.is_some() {
                    requests.ask_to_renew();
                }
            }
            LaunchAction::Answer => {
                let none = host.record(issuer.change(|state, here| state.no_worker(here))).flatten();
                if let Some(ticket) = requests.request.pending() {
                    let answer = if none.is_none() { Answer::Supplied } else { Answer::Exhausted };
                    requests.request.answer(ticket, answer);
                }
            }
            LaunchAction::OutOfReach(_) | LaunchAction::Wait(_) => {}
        }
    }
}

impl Databases for Host<'_> {
    fn all(&self) -> Vec<u32> {
        (1..=u32::try_from(self.server.databases.len()).unwrap()).collect()
    }

    fn may_be_used(&self, database: u32) -> bool {
        self.all().contains(&database)
    }
}

impl Host<'_> {
    pub fn database(&self, oid: u32) -> &Database {
        &self.server.databases[oid as usize - 1]
    }

    /// Reads the worker ids that a database chose, and reports how the database uses registries.
    fn look(&self, oid: u32) {
        let database = self.database(oid);
        let chosen = database.chosen.borrow().clone();
        if let Some(chosen) = chosen {
            let recorded = self.issuer().change(|state, here| state.record_chosen(here, &chosen));
            if self.record(recorded).is_none() {
                return;
            }
        }
        self.live.slot.report(match database.draws.get() {
            true => DatabaseUse::Node,
            false if database.registry.borrow().is_some() => DatabaseUse::Registry,
            false => DatabaseUse::None,
        });
    }

    /// Creates the extension, which must exist before ids can be issued. Returns whether it exists now.
    pub fn install(&self) -> bool {
        let chosen = &self.database(1).chosen;
        if chosen.borrow().is_some() || !self.server.is_alone() {
            return true;
        }
        let state = self.issuer().change(|state, here| {
            let (system_identifier, home) = (here.system_identifier, here.home.identity.clone());
            let chosen = |first| Chosen { first, home, system_identifier };
            state.lease.is_some().then(|| state.first.map(chosen))
        });
        if let Some(first) = self.record(state).flatten() {
            chosen.replace(Some(first.into_iter().collect()));
        }
        chosen.borrow().is_some()
    }
}

/// Runs a lease worker's task, and ends.
pub fn run(host: &Host<'_>, task: LeaseTask, database: u32, serve: impl FnOnce()) {
    let slot = &host.live.slot;
    // The worker sometimes fails to reach the database.
    if !host.sim.happens_once_in(10) {
        slot.reached.set(Some(End { arrived: true, found: None }));
        host.call();
        match task {
            LeaseTask::Look => host.look(database),
            LeaseTask::Serve => serve(),
        }
    }
    slot.end();
}
