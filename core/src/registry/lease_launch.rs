//! When a lease worker is started, and in which database: the one that holds the registry, which has to be found first.
//!
//! Which database that is follows from what the databases themselves hold, never from which of them asks first. A standby
//! that is promoted without a state of its own has to come to the same one as its primary, whose leases are in that table.
//! A server that has lost its state has to come to the registry that it shares with others.

mod missed;
mod ranked;
mod renewal;

pub use ranked::Ranked;
pub use renewal::{Lapse, Renewal, RenewalRound};

use crate::worker::backoff::Backoff;
use missed::Missed;
use std::time::Duration;

/// How soon it tries again to start a lease worker, at first and in the end.
pub const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// What a lease worker is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// To lease worker ids from this database's registry.
    Serve,
    /// To see whether there is one.
    Survey,
}

/// The databases of the server.
pub trait Databases {
    /// The database that the setting names as the registry.
    fn named(&self) -> Named;

    /// Those in which the extension may be.
    fn all(&self) -> Vec<u32>;

    /// Whether this one can be used still.
    fn may_be_used(&self, database: u32) -> bool;

    /// The one that the server's state tells of.
    fn remembered(&self) -> Option<u32>;
}

/// What a setting names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Nothing.
    None,
    /// A database that does not exist.
    Missing,
    /// This one, by its oid.
    Database(u32),
}

/// Why there is no registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nowhere {
    /// The database that the setting names does not exist,
    NamedIsMissing,
    /// or does not have the extension.
    NamedIsEmpty,
    /// No database has the extension.
    Nothing,
    /// None of those that could be looked into has it; this one could not.
    OutOfReach(u32),
}

/// How a lease worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether it had reached its database.
    pub arrived: bool,
    /// What it told of the database; None: nothing. A rank of None: there is no registry.
    pub report: Option<Option<u32>>,
}

/// What follows from the end of a lease worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing.
    Fine,
    /// Callers that wait are to know that it could not reach this database.
    OutOfReach(u32),
    /// Callers that wait are refused.
    Refuse(Nowhere),
    /// This database is the registry from now on: the lease is to be renewed there.
    Move(u32),
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A lease worker is to be started.
    Start(Errand, u32),
    /// Callers that wait are refused.
    Refuse(Nowhere),
    /// Nothing; None: until something happens.
    Wait(Option<Duration>),
}

/// Where the registry is to be from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// In this database.
    To(u32),
    /// Wherever it is found.
    Anywhere,
}

/// What the launcher remembers. Times are of any clock that only goes forward.
#[derive(Debug, Default)]
pub struct Launch {
    running: Option<(Errand, u32)>,
    registry: Registry,
    /// When to start a worker again after one could not be started or did not get through, and the pause before that.
    refused: Option<(Duration, Duration)>,
    /// Whether there was no place for a worker when one was to be started.
    short: bool,
    missed: Missed,
}

/// Which database holds the registry, unless a setting says.
#[derive(Debug, Default)]
enum Registry {
    /// The one that the state tells of, if any.
    #[default]
    Remembered,
    /// One database after the other is looked into.
    Survey { left: Vec<u32>, missed: Vec<u32>, first: Option<Ranked> },
    /// This one.
    Found(u32),
}

impl Registry {
    fn survey(databases: &impl Databases) -> Self {
        Self::Survey { left: databases.all(), missed: Vec::new(), first: None }
    }
}

impl Launch {
    /// Whether a lease worker waits for a place among the server's workers.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// The lease worker that was started has ended.
    pub fn ended(&mut self, end: End, databases: &impl Databases, now: Duration) -> Ended {
        let Some((errand, database)) = self.running.take() else { return Ended::Fine };
        if end.arrived {
            self.refused = None;
        } else {
            self.back_off(errand, now);
            match (errand, &mut self.registry) {
                (Errand::Serve, _) => return Ended::OutOfReach(database),
                (Errand::Survey, Registry::Survey { missed, .. }) => missed.push(database),
                (Errand::Survey, _) => self.missed.not_yet(database),
            }
        }
        match (errand, end.report) {
            (Errand::Survey, Some(Some(rank))) => self.found(Ranked { rank, database }),
            // The registry is not there any more, or not yet.
            (Errand::Serve, Some(None)) if databases.named() == Named::None => {
                self.registry = Registry::survey(databases);
                Ended::Fine
            }
            (Errand::Serve, Some(None)) => Ended::Refuse(Nowhere::NamedIsEmpty),
            _ => Ended::Fine,
        }
    }

    fn found(&mut self, this: Ranked) -> Ended {
        match &mut self.registry {
            Registry::Survey { first, .. } => *first = Some(first.map_or(this, |first| first.min(this))),
            Registry::Found(_) if self.missed.comes_first(this) => return Ended::Move(this.database),
            _ => {}
        }
        Ended::Fine
    }

    /// What is to be done. `pending`: whether a session waits for a worker id; `free`: whether the place for a lease worker is;
    /// `moved` is asked where the registry is to be once that matters.
    pub fn next(
        &mut self,
        pending: bool,
        free: bool,
        moved: impl FnOnce() -> Option<Move>,
        databases: &impl Databases,
        now: Duration,
    ) -> Action {
        self.short &= pending;
        let free = free && self.running.is_none();
        if pending { self.help(free, moved, databases, now) } else { self.look_again(free, databases, now) }
    }

    fn help(
        &mut self,
        free: bool,
        moved: impl FnOnce() -> Option<Move>,
        databases: &impl Databases,
        now: Duration,
    ) -> Action {
        if !free {
            return Action::Wait(Some(BACKOFF.first));
        }
        // Where there was no place, it tries whenever one may have become free.
        if let Some((again, _)) = self.refused.filter(|(again, _)| *again > now)
            && !self.short
        {
            return Action::Wait(Some(again.saturating_sub(now)));
        }
        match moved() {
            None => {}
            Some(Move::Anywhere) => self.registry = Registry::survey(databases),
            Some(Move::To(database)) => self.registry = Registry::Found(database),
        }
        match self.way(databases, now) {
            Ok((errand, database)) => self.start(errand, database),
            Err(nowhere) => {
                self.registry = Registry::Remembered;
                Action::Refuse(nowhere)
            }
        }
    }

    /// Has one of the databases looked into that could not be when the registry was found.
    fn look_again(&mut self, free: bool, databases: &impl Databases, now: Duration) -> Action {
        if databases.named() != Named::None || !matches!(self.registry, Registry::Found(_)) {
            self.missed = Missed::default();
        }
        match self.missed.due(now) {
            Some(due) if due.is_zero() => {
                let next = if free { self.missed.next(now) } else { None };
                match next.filter(|database| databases.may_be_used(*database)) {
                    Some(database) => self.start(Errand::Survey, database),
                    None => Action::Wait(Some(BACKOFF.first)),
                }
            }
            due => Action::Wait(due),
        }
    }

    /// Where the next lease worker goes, and what for.
    fn way(&mut self, databases: &impl Databases, now: Duration) -> Result<(Errand, u32), Nowhere> {
        match databases.named() {
            Named::Missing => return Err(Nowhere::NamedIsMissing),
            Named::Database(database) => return Ok((Errand::Serve, database)),
            Named::None => {}
        }
        let known = match self.registry {
            Registry::Remembered => databases.remembered(),
            Registry::Found(database) => Some(database),
            Registry::Survey { .. } => None,
        };
        if !matches!(self.registry, Registry::Survey { .. }) {
            let known = known.filter(|database| databases.may_be_used(*database));
            self.registry = known.map_or_else(|| Registry::survey(databases), Registry::Found);
        }
        let Registry::Survey { left, missed, first } = &mut self.registry else {
            return known.map(|database| (Errand::Serve, database)).ok_or(Nowhere::Nothing);
        };
        if let Some(next) = left.pop() {
            return Ok((Errand::Survey, next));
        }
        let Some(first) = *first else {
            return Err(missed.first().map_or(Nowhere::Nothing, |missed| Nowhere::OutOfReach(*missed)));
        };
        self.missed = Missed::beside(first, std::mem::take(missed), now);
        self.registry = Registry::Found(first.database);
        Ok((Errand::Serve, first.database))
    }

    fn start(&mut self, errand: Errand, database: u32) -> Action {
        self.running = Some((errand, database));
        self.short = false;
        Action::Start(errand, database)
    }

    /// The lease worker could not be started: all places are taken.
    pub fn not_started(&mut self, now: Duration) {
        self.short = true;
        self.back_off(Errand::Serve, now);
        if let Some((Errand::Survey, database)) = self.running.take() {
            match &mut self.registry {
                Registry::Survey { left, .. } => left.push(database),
                _ => self.missed.not_yet(database),
            }
        }
    }

    /// Waits a little longer each time before the next is started; not while databases are only looked into.
    fn back_off(&mut self, errand: Errand, now: Duration) {
        if errand == Errand::Serve {
            let delay = BACKOFF.next(self.refused.map(|(_, delay)| delay));
            self.refused = Some((now + delay, delay));
        }
    }
}
