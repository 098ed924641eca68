//! The start of a lease worker, and the database for it: the one that draws worker ids from a registry, or is one.
//!
//! Which one that is, the server's state says. Where it does not, in a new server, a copy or a standby that was promoted, all
//! databases are looked into once: another server may know this one as a node, or as its registry.

mod renewal;

pub use renewal::{Lapse, Renewal, RenewalRound};

use crate::registry::lease_worker::LeaseRequests;
use crate::server::issuer::Counts;
use crate::server::state::{Here, State};
use crate::worker::backoff::Backoff;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Duration;

/// How soon it tries again to start a lease worker, at first and in the end.
pub const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// What a lease worker is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
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

/// What the server's state says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing.
    Nothing,
    /// There is no registry: the server chooses its worker id itself.
    Alone,
    /// Worker ids are leased by way of this database.
    By(u32),
}

impl Known {
    /// As it was published last.
    pub fn of(counts: &Counts) -> Self {
        match counts.registry() {
            Some(database) => Self::By(database),
            None if counts.alone.load(Relaxed) => Self::Alone,
            None => Self::Nothing,
        }
    }

    /// To have the state say it.
    fn note(self) -> Action {
        match self {
            Self::By(database) => Action::Note(Some(database)),
            Self::Nothing | Self::Alone => Action::Note(None),
        }
    }
}

/// What transactions change of the use of registries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// One in this database has just ended.
    pub ended: Option<u32>,
    /// Some are under way.
    pub under_way: bool,
    /// The server ended before it was known what came of one.
    pub unsettled: bool,
}

impl Changes {
    /// Returns what was noted since this was last asked.
    pub fn take(requests: &LeaseRequests, counts: &Counts) -> Self {
        let ended = Some(requests.changed.swap(0, AcqRel)).filter(|database| *database != 0);
        let under_way = requests.changing.load(Acquire) > 0;
        Self { ended, under_way, unsettled: counts.moving_to().is_some() && !under_way }
    }
}

/// Has the state say by way of which database worker ids are leased, unless something has changed since that was looked at.
pub fn note(state: &mut State, here: &Here, requests: &LeaseRequests, found: Option<u32>) {
    let is_changing = requests.changing.load(Acquire) > 0;
    match found {
        _ if requests.changed.load(Acquire) != 0 => {}
        None => state.be_alone(here, is_changing),
        Some(database) => state.lease_by(database, is_changing),
    }
}

/// What a database is to the worker ids of its server. One that draws from a registry comes before one that is one itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Nothing.
    None,
    /// It leases worker ids to others.
    Registry,
    /// It draws from a registry on another server.
    Node,
}

/// How a lease worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// True if it had reached its database.
    pub arrived: bool,
    /// What the database is, if it has looked.
    pub found: Option<Use>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A lease worker is to be started.
    Start(Errand, u32),
    /// The state is to say that worker ids are leased by way of this database; None: of none.
    Note(Option<u32>),
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

/// What the launcher remembers. Times are of any clock that only goes forward.
#[derive(Debug, Default)]
pub struct Launch {
    running: Option<(Errand, u32)>,
    /// The looks into databases that are under way.
    look: Option<Looks>,
    /// What was found out, and is not in the state yet.
    found: Option<Known>,
    /// When to start a worker again after one could not be started or did not get through, and the pause before that.
    refused: Option<(Duration, Duration)>,
    /// True if there was no place for a worker when one was to be started.
    short: bool,
}

impl Launch {
    /// Returns whether a lease worker waits for a place among the server's workers.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// The lease worker that was started has ended. The database that callers who wait are to know was out of reach.
    pub fn ended(&mut self, end: End, databases: &impl Databases, now: Duration) -> Option<u32> {
        let (errand, database) = self.running.take()?;
        if end.arrived {
            self.refused = None;
        } else if errand == Errand::Serve {
            self.back_off(now);
            return Some(database);
        }
        match (errand, end.found, &mut self.look) {
            (Errand::Look, None, Some(look)) => look.missed.push(database),
            (Errand::Look, Some(Use::Registry), Some(look)) => look.registry = Some(database),
            (Errand::Look, Some(Use::Node), _) => (self.found, self.look) = (Some(Known::By(database)), None),
            // The registry is not there any more.
            (Errand::Serve, Some(Use::None), _) => self.look_into(databases.all()),
            _ => {}
        }
        None
    }

    fn look_into(&mut self, left: Vec<u32>) {
        self.found = None;
        self.look = Some(Looks { left, ..Looks::default() });
    }

    /// Returns what is to be done. `pending`: whether a session waits for a worker id; `free`: whether the place for a
    /// lease worker is; `known`: what the state says.
    pub fn next(
        &mut self,
        pending: bool,
        free: bool,
        known: Known,
        changes: Changes,
        databases: &impl Databases,
        now: Duration,
    ) -> Action {
        if let Some(changed) = changes.ended {
            let mut all = databases.all();
            // It comes first.
            all.retain(|database| *database != changed);
            all.push(changed);
            self.look_into(all);
        }
        let is_noted = self.found == Some(known) && !changes.unsettled;
        self.found = self.found.filter(|_| !is_noted);
        let is_unknown = match known {
            // A transaction that is under way will say, unless a session cannot wait for that.
            Known::Nothing => pending || !changes.under_way,
            Known::By(database) => pending && !databases.may_be_used(database),
            Known::Alone => false,
        };
        if self.look.is_none() && self.found.is_none() && (is_unknown || changes.unsettled) {
            self.look_into(databases.all());
        }
        self.short &= pending || self.look.is_some();
        if let Some(found) = self.found {
            return found.note();
        }
        if self.look.is_none() && (!pending || known == Known::Alone) {
            return if pending { Action::Answer } else { Action::Wait(None) };
        }
        if !free || self.running.is_some() {
            return Action::Wait(Some(BACKOFF.first));
        }
        // Where there was no place, it tries whenever one may have become free.
        if let Some((again, _)) = self.refused.filter(|(again, _)| *again > now && !self.short) {
            return Action::Wait(Some(again.saturating_sub(now)));
        }
        match (&mut self.look, known) {
            (None, Known::By(database)) => self.start(Errand::Serve, database),
            (None, _) => Action::Wait(None),
            (Some(look), _) => {
                if let Some(next) = look.left.pop() {
                    return self.start(Errand::Look, next);
                }
                look.left = std::mem::take(&mut look.missed);
                look.left.retain(|database| databases.may_be_used(*database));
                if let Some(missed) = look.left.last().copied() {
                    self.back_off(now);
                    return Action::OutOfReach(missed);
                }
                let found = look.registry.map_or(Known::Alone, Known::By);
                (self.look, self.found) = (None, Some(found));
                found.note()
            }
        }
    }

    fn start(&mut self, errand: Errand, database: u32) -> Action {
        self.running = Some((errand, database));
        self.short = false;
        Action::Start(errand, database)
    }

    /// The lease worker could not be started: all places are taken.
    pub fn not_started(&mut self, now: Duration) {
        self.short = true;
        self.back_off(now);
        if let (Some((Errand::Look, database)), Some(look)) = (self.running.take(), &mut self.look) {
            look.left.push(database);
        }
    }

    /// Waits a little longer each time before the next is started.
    fn back_off(&mut self, now: Duration) {
        let delay = BACKOFF.next(self.refused.map(|(_, delay)| delay));
        self.refused = Some((now + delay, delay));
    }
}
