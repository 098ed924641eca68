//! The start of the lease worker, a background worker that leases the server's worker id. The lease worker connects to a
//! database that uses a registry, or that is a registry.
//!
//! If the state file does not name such a database, the launcher surveys all databases once: a lease worker in each
//! database finds out if the database uses a registry or is a registry.

mod renewal;

pub use renewal::{Lapse, Renewal, RenewalRound};

use crate::backoff::Backoff;
use crate::registry::lease_worker::LeaseRequests;
use crate::server::issuer::IssuerStatus;
use crate::server::state::{Here, State};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Duration;

/// The pauses between attempts to start a lease worker.
pub const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// The task of a lease worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseTask {
    /// To lease worker ids through this database.
    Serve,
    /// To find out whether the database uses a registry, or is a registry.
    Look,
}

/// The databases of the server.
pub trait Databases {
    /// Returns the OIDs of all databases that accept connections.
    fn all(&self) -> Vec<u32>;

    /// Returns whether the database still accepts connections.
    fn may_be_used(&self, database: u32) -> bool;
}

/// The registry of the server, according to its state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownRegistry {
    /// The registry is not known yet.
    Nothing,
    /// No registry: the server chooses its worker id itself.
    Alone,
    /// Worker ids are leased through this database.
    By(u32),
}

impl KnownRegistry {
    /// Returns the registry according to the status in shared memory.
    pub fn of(status: &IssuerStatus) -> Self {
        match status.registry() {
            Some(database) => Self::By(database),
            None if status.alone.load(Relaxed) => Self::Alone,
            None => Self::Nothing,
        }
    }

    /// Returns the action that writes this registry into the state file.
    fn record(self) -> LaunchAction {
        match self {
            Self::By(database) => LaunchAction::Record(Some(database)),
            Self::Nothing | Self::Alone => LaunchAction::Record(None),
        }
    }
}

/// Transactions that start or stop the use of registries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistryChanges {
    /// The database in which such a transaction has just ended.
    pub ended: Option<u32>,
    /// True if such a transaction is running.
    pub under_way: bool,
    /// True if the server stopped before the outcome of such a transaction was known.
    pub unsettled: bool,
}

impl RegistryChanges {
    /// Returns the changes since the last call.
    pub fn take(requests: &LeaseRequests, status: &IssuerStatus) -> Self {
        let ended = Some(requests.changed.swap(0, AcqRel)).filter(|database| *database != 0);
        let under_way = requests.changing.load(Acquire) > 0;
        Self { ended, under_way, unsettled: status.moving_to().is_some() && !under_way }
    }
}

/// Writes the result of a survey of the databases into the state. Does nothing if a transaction has changed the use of
/// registries since the survey.
pub fn record(state: &mut State, here: &Here, requests: &LeaseRequests, found: Option<u32>) {
    let is_changing = requests.changing.load(Acquire) > 0;
    match found {
        _ if requests.changed.load(Acquire) != 0 => {}
        None => state.be_alone(here, is_changing),
        Some(database) => state.lease_by(database, is_changing),
    }
}

/// The role of a database in leases of worker ids. A database that uses a registry takes precedence over a database that is a
/// registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseUse {
    /// The database has no role.
    None,
    /// The database leases worker ids to other servers.
    Registry,
    /// The database uses a registry on another server.
    Node,
}

/// The result of a lease worker that has exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// True if the worker had connected to its database.
    pub arrived: bool,
    /// The role of the database. None if the worker did not find out.
    pub found: Option<DatabaseUse>,
}

/// The next action of the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchAction {
    /// Start a lease worker.
    Start(LeaseTask, u32),
    /// Write into the state file that worker ids are leased through this database; None to write that they are leased
    /// through no database.
    Record(Option<u32>),
    /// Tell waiting sessions that there is nothing to lease.
    Answer,
    /// Tell waiting sessions that this database cannot be reached.
    OutOfReach(u32),
    /// Wait for this time; None to wait until the next event.
    Wait(Option<Duration>),
}

/// A survey: lease workers look into one database after another.
#[derive(Debug, Default)]
struct Looks {
    /// The databases still to survey. The last database in the list is next.
    left: Vec<u32>,
    /// The databases that could not be surveyed.
    missed: Vec<u32>,
    /// A database that is a registry.
    registry: Option<u32>,
}

/// The launcher's memory. Times are readings of a monotonic clock.
#[derive(Debug, Default)]
pub struct Launch {
    running: Option<(LeaseTask, u32)>,
    /// The survey in progress.
    look: Option<Looks>,
    /// The registry that the survey found, until the state file names this registry.
    found: Option<KnownRegistry>,
    /// The time of the next start after a failed start, and the pause before the next start.
    refused: Option<(Duration, Duration)>,
    /// True if no worker slot was free for the last start.
    short: bool,
}

impl Launch {
    /// Returns whether a lease worker waits for a free worker slot.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Records the end of the lease worker. If the worker could not reach its database, returns the database, and the
    /// caller tells waiting sessions.
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
            // The database no longer has a role in leases, so all databases are surveyed.
            (LeaseTask::Serve, Some(DatabaseUse::None), _) => self.look_into(databases.all()),
            _ => {}
        }
        None
    }

    fn look_into(&mut self, left: Vec<u32>) {
        self.found = None;
        self.look = Some(Looks { left, ..Looks::default() });
    }

    /// Returns the next action. `pending` is true if a session waits for a worker id. `free` is true if the lease
    /// worker's slot is free. `known` is the registry according to the state file.
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
            // A survey takes databases from the end of the list, so the survey begins with the changed database.
            all.retain(|database| *database != changed);
            all.push(changed);
            self.look_into(all);
        }
        let is_recorded = self.found == Some(known) && !changes.unsettled;
        self.found = self.found.filter(|_| !is_recorded);
        let is_unknown = match known {
            // A running transaction may change the registry, so a survey waits for the transaction's end. If a session
            // waits for a worker id, the survey begins immediately.
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
        // If the last start failed for lack of a worker slot, there is no pause, because a slot may become free at any
        // time.
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

    /// Records that the lease worker could not be started, because no worker slot was free.
    pub fn not_started(&mut self, now: Duration) {
        self.short = true;
        self.back_off(now);
        if let (Some((LeaseTask::Look, database)), Some(look)) = (self.running.take(), &mut self.look) {
            look.left.push(database);
        }
    }

    /// Delays the next start. Each delay is twice the previous delay, up to the limit of [`BACKOFF`].
    fn back_off(&mut self, now: Duration) {
        let delay = BACKOFF.next(self.refused.map(|(_, delay)| delay));
        self.refused = Some((now + delay, delay));
    }
}
