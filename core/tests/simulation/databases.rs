//! The databases of a server, one of which holds the registry; and the launcher's part in leases, as it ships: it looks for that
//! database, and starts a lease worker there.

use super::event::Event;
use super::host::Host;
use super::lease_worker::renew;
use super::registry::Registry;
use snowflake_ids_core::registry::lease_launch::{
    Action, Databases, End, Ended, Errand, Launch, Move, Named, Renewal,
};
use snowflake_ids_core::registry::lease_worker::{ANY, LeaseHost};
use snowflake_ids_core::sequence::request::Answer;
use snowflake_ids_core::server::issuer::Issuer;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{AcqRel, Release};

/// A database; its oid is its place among those of its server, from 1 on.
pub struct Database {
    pub registry: Rc<Registry>,
    /// How it ranks among those that may be the registry; None: the extension is not there.
    pub rank: Cell<Option<u32>>,
}

impl Database {
    /// The extension is dropped, or created anew.
    pub fn set_rank(&self, rank: Option<u32>) {
        self.registry.clear();
        self.rank.set(rank);
    }
}

/// The place for a lease worker among the processes of a server.
#[derive(Default)]
pub struct LeaseSlot {
    /// The database that it is for; 0: it is free.
    pub database: Cell<u32>,
    /// The lease worker among the processes of its server, while it runs.
    pub process: Cell<Option<usize>>,
    /// What the launcher is to know of the worker, once it has reached its database.
    reached: Cell<Option<End>>,
    ended: Cell<bool>,
}

impl LeaseSlot {
    /// Tells how the database ranks.
    pub fn report(&self, rank: Option<u32>) {
        self.reached.set(Some(End { arrived: true, report: Some(rank) }));
    }

    pub fn end(&self) {
        self.process.set(None);
        self.ended.set(true);
    }
}

/// What the launcher remembers of leases.
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
            let end = slot.reached.take().unwrap_or(End { arrived: false, report: None });
            match self.launch.ended(end, host, uptime) {
                Ended::Fine | Ended::OutOfReach(_) => {}
                Ended::Refuse(_) => refuse(host),
                Ended::Move(database) => {
                    requests.moved_to.store(database, Release);
                    requests.ask_to_renew();
                }
            }
        }
        renew(host, issuer, &mut self.renewal);
        let moved = || match requests.moved_to.swap(0, AcqRel) {
            0 => None,
            ANY => Some(Move::Anywhere),
            database => Some(Move::To(database)),
        };
        let pending = requests.request.pending().is_some();
        match self.launch.next(pending, slot.database.get() == 0, moved, host, uptime) {
            Action::Start(errand, database) => {
                slot.database.set(database);
                host.sim.note(|| format!("server {}: {errand:?} in {database}", host.server.number));
                let (server, incarnation) = (host.server.number, host.server.incarnation.get());
                let start = Event::LeaseWorker { server, incarnation, errand, database };
                host.send(host.sim.chance.between(1, 100_000), start);
            }
            Action::Refuse(_) => refuse(host),
            Action::Wait(_) => {}
        }
    }
}

fn refuse(host: &Host<'_>) {
    if let Some(ticket) = host.live.requests.request.pending() {
        host.live.requests.request.answer(ticket, Answer::Exhausted);
    }
}

impl Databases for Host<'_> {
    fn named(&self) -> Named {
        self.server.named.get()
    }

    fn all(&self) -> Vec<u32> {
        (1..=u32::try_from(self.server.databases.len()).unwrap()).collect()
    }

    fn may_be_used(&self, database: u32) -> bool {
        self.all().contains(&database)
    }

    fn remembered(&self) -> Option<u32> {
        let counts = &self.live.shared.counts;
        counts.moving_to().or_else(|| counts.registry())
    }
}

impl Host<'_> {
    pub fn database(&self, oid: u32) -> &Database {
        &self.server.databases[oid as usize - 1]
    }
}

/// Does what a lease worker is started for, and leaves.
pub fn run(host: &Host<'_>, errand: Errand, database: u32, serve: impl FnOnce()) {
    let slot = &host.live.slot;
    // Now and then it does not get into the database.
    if !host.sim.happens_once_in(10) {
        slot.reached.set(Some(End { arrived: true, report: None }));
        host.call();
        match errand {
            Errand::Survey => slot.report(host.database(database).rank.get()),
            Errand::Serve => serve(),
        }
    }
    slot.end();
}
