//! The start of a lease worker, and the database for it: the one that draws worker ids from a registry, or is one.
//!
//! The server's state names it. Where it does not, in a new server, a copy or a standby that was promoted, all databases are
//! looked into once: another server may know this one as a node, or as its registry.

mod renewal;

pub use renewal::{Lapse, Renewal, RenewalRound};

use crate::registry::lease_worker::LeaseRequests;
use crate::server::issuer::IssuerStatus;
use crate::server::state::{Here, State};
use crate::worker::backoff::Backoff;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Duration;

/// The pauses between attempts to start a lease worker.
pub const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// The task of a lease worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseTask {
    /// To lease worker ids by way of this database.
    Serve,
    /// To see whether it draws from a registry, or is one.
    Look,
}

/// The databases of the server.
pub trait Databases {
    /// All that can be connected to.
    fn all(&self) -> Vec<u32>;

    /// Returns whether this one can be used still.
    fn may_be_used(&self, database: u32) -> bool;
}

/// The registry of the server, by its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownRegistry {
    /// It is not known.
    Nothing,
    /// There is no registry: the server chooses its worker id itself.
    Alone,
    /// Worker ids are leased by way of this database.
    By(u32),
}

impl KnownRegistry {
    /// As it was published last.
    pub fn of(status: &IssuerStatus) -> Self {
        match status.registry() {
            Some(database) => Self::By(database),
            None if status.alone.load(Relaxed) => Self::Alone,
            None => Self::Nothing,
        }
    }

    /// To have the state say it.
    fn record(self) -> LaunchAction {
        match self {
            Self::By(database) => LaunchAction::Record(Some(database)),
            Self::Nothing | Self::Alone => LaunchAction::Record(None),
        }
    }
}

/// Transactions that change the use of registries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistryChanges {
    /// One in this database has just ended.
    pub ended: Option<u32>,
    /// Some are under way.
    pub under_way: bool,
    /// The server ended before the outcome of one was known.
    pub unsettled: bool,
}

impl RegistryChanges {
    /// Takes the changes that were noted since the last call.
    pub fn take(requests: &LeaseRequests, status: &IssuerStatus) -> Self {
        let ended = Some(requests.changed.swap(0, AcqRel)).filter(|database| *database != 0);
        let under_way = requests.changing.load(Acquire) > 0;
        Self { ended, under_way, unsettled: status.moving_to().is_some() && !under_way }
    }
}

/// Notes in the state by way of which database worker ids are leased, unless something has changed since it was found out.
pub fn record(state: &mut State, here: &Here, requests: &LeaseRequests, found: Option<u32>) {
    let is_changing = requests.changing.load(Acquire) > 0;
    match found {
        _ if requests.changed.load(Acquire) != 0 => {}
        None => state.be_alone(here, is_changing),
        Some(database) => state.lease_by(database, is_changing),
    }
}

/// The part of a database in the worker ids of its server. One that draws from a registry comes before one that is one itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseUse {
    /// Nothing.
    None,
    /// It leases worker ids to others.
    Registry,
    /// It draws from a registry on another server.
    Node,
}

/// The end of a lease worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// True if it had reached its database.
    pub arrived: bool,
    /// The part of the database, if it has looked.
    pub found: Option<DatabaseUse>,
}

/// The next act of the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchAction {
    /// A lease worker is to be started.
    Start(LeaseTask, u32),
    /// The state is to say that worker ids are leased by way of this database; None: of none.
    Record(Option<u32>),
    /// Callers that wait are answered: there is nothing to lease.
    Answer,
    /// Callers that wait are to know that this database could not be reached.
    OutOfReach(u32),
    /// Nothing; None: until something happens.
    Wait(Option<Duration>),
}

/// Looks into databases.
#[derive(Debug, Default)]
struct Looks {
    /// Those that are left, the next one last.
    left: Vec<u32>,
    /// Those that could not be looked into.
    missed: Vec<u32>,
    /// One that is a registry.
    registry: Option<u32>,
}

/// The launcher's memory. Times are of any clock that only goes forward.
#[derive(Debug, Default)]
pub struct Launch {
    running: Option<(LeaseTask, u32)>,
    /// The looks into databases that are under way.
    look: Option<Looks>,
    /// The registry that was found, and is not in the state yet.
    found: Option<KnownRegistry>,
    /// The time of the next start after one that failed, and the pause before that.
    refused: Option<(Duration, Duration)>,
    /// True if there was no place for a worker when one was to be started.
    short: bool,
}

impl Launch {
    /// Returns whether a lease worker waits for a place among the server's workers.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Takes note that the lease worker has ended. Returns the database that was out of reach, for callers that wait.
    pub fn ended(&mut self, end: End, databases: &impl Databases, now: Duration) -> Option<u32> {
        let (task, database) = self.running.take()?;
        if end.arrived {
            self.refused = None;
        } else if task == LeaseTask::Serve {
            self.back_off(now);
            return Some(database);
        }
        match (task, end.found, &mut self.look) {
            (LeaseTask::Look, None, Some(look)) => look.missed.push(database),
            (LeaseTask::Look, Some(DatabaseUse::Registry), Some(look)) => look.registry = Some(database),
            (LeaseTask::Look, Some(DatabaseUse::Node), _) => {
                (self.found, self.look) = (Some(KnownRegistry::By(database)), None);
            }
            // The registry is not there any more.
            (LeaseTask::Serve, Some(DatabaseUse::None), _) => self.look_into(databases.all()),
            _ => {}
        }
        None
    }

    fn look_into(&mut self, left: Vec<u32>) {
        self.found = None;
        self.look = Some(Looks { left, ..Looks::default() });
    }

    /// Returns the next act. `pending`: a session waits for a worker id; `free`: the slot of the lease worker is; `known`: the
    /// registry by the state.
    pub fn next(
        &mut self,
        pending: bool,
        free: bool,
        known: KnownRegistry,
        changes: RegistryChanges,
        databases: &impl Databases,
        now: Duration,
    ) -> LaunchAction {
        if let Some(changed) = changes.ended {
            let mut all = databases.all();
            // It comes first.
            all.retain(|database| *database != changed);
            all.push(changed);
            self.look_into(all);
        }
        let is_recorded = self.found == Some(known) && !changes.unsettled;
        self.found = self.found.filter(|_| !is_recorded);
        let is_unknown = match known {
            // A transaction that is under way will say, unless a session cannot wait for that.
            KnownRegistry::Nothing => pending || !changes.under_way,
            KnownRegistry::By(database) => pending && !databases.may_be_used(database),
            KnownRegistry::Alone => false,
        };
        if self.look.is_none() && self.found.is_none() && (is_unknown || changes.unsettled) {
            self.look_into(databases.all());
        }
        self.short &= pending || self.look.is_some();
        if let Some(found) = self.found {
            return found.record();
        }
        if self.look.is_none() && (!pending || known == KnownRegistry::Alone) {
            return if pending { LaunchAction::Answer } else { LaunchAction::Wait(None) };
        }
        if !free || self.running.is_some() {
            return LaunchAction::Wait(Some(BACKOFF.first));
        }
        // If there was no worker slot, it tries whenever one may have become free.
        if let Some((again, _)) = self.refused.filter(|(again, _)| *again > now && !self.short) {
            return LaunchAction::Wait(Some(again.saturating_sub(now)));
        }
        match (&mut self.look, known) {
            (None, KnownRegistry::By(database)) => self.start(LeaseTask::Serve, database),
            (None, _) => LaunchAction::Wait(None),
            (Some(look), _) => {
                if let Some(next) = look.left.pop() {
                    return self.start(LeaseTask::Look, next);
                }
                look.left = std::mem::take(&mut look.missed);
                look.left.retain(|database| databases.may_be_used(*database));
                if let Some(missed) = look.left.last().copied() {
                    self.back_off(now);
                    return LaunchAction::OutOfReach(missed);
                }
                let found = look.registry.map_or(KnownRegistry::Alone, KnownRegistry::By);
                (self.look, self.found) = (None, Some(found));
                found.record()
            }
        }
    }

    fn start(&mut self, task: LeaseTask, database: u32) -> LaunchAction {
        self.running = Some((task, database));
        self.short = false;
        LaunchAction::Start(task, database)
    }

    /// The lease worker could not be started: all places are taken.
    pub fn not_started(&mut self, now: Duration) {
        self.short = true;
        self.back_off(now);
        if let (Some((LeaseTask::Look, database)), Some(look)) = (self.running.take(), &mut self.look) {
            look.left.push(database);
        }
    }

    /// Waits a little longer each time before the next is started.
    fn back_off(&mut self, now: Duration) {
        let delay = BACKOFF.next(self.refused.map(|(_, delay)| delay));
        self.refused = Some((now + delay, delay));
    }
}
