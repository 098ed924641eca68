//! Sees to it that there is a lease worker when there is something to do about the lease of the worker id: in the database
//! that holds the registry, which has to be found first.

mod missed;
mod renewal;

use super::BACKOFF;
use crate::lease;
use crate::pg::worker::{self, Errand};
use crate::pg::{database, server};
use crate::shared::generator::{Shared, shared};
use crate::shared::leases::{ANY, Leases as Board, leases};
use crate::{issuer, settings};
use missed::Missed;
use pgrx::bgworkers::{BackgroundWorkerStatus, DynamicBackgroundWorker};
use renewal::Renewal;
use snowflake_ids_core::state::Identity;
use snowflake_ids_core::wire::NoLease;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// What it remembers.
#[derive(Default)]
pub struct Leases {
    lease_worker: Option<Started>,
    registry: Registry,
    /// When to start one again after one could not be started or did not get through.
    refused: Option<(Instant, Duration)>,
    /// Whether there was no place for a lease worker when one was to be started.
    short: bool,
    renewal: Renewal,
    missed: Missed,
}

/// A lease worker that was started.
struct Started {
    worker: DynamicBackgroundWorker,
    errand: Errand,
    database: u32,
    /// How many had reached their database before.
    arrivals: u64,
}

/// Which database holds the registry, unless a setting says.
#[derive(Default)]
enum Registry {
    /// The one that the state tells of, if any.
    #[default]
    Remembered,
    /// One database after the other is looked into.
    Survey {
        left: Vec<u32>,
        /// Those that could not be looked into.
        missed: Vec<u32>,
        /// The first by rank, and its database.
        first: Option<(u32, u32)>,
    },
    /// This one.
    Found(u32),
}

/// Where a lease worker is to go.
enum Way {
    To(Errand, u32),
    /// There is no registry.
    Nowhere(NoLease),
}

impl Leases {
    /// Begins with a free worker slot, unless a lease worker that a former launcher started sits there.
    pub fn new() -> Self {
        if let Some(board) = leases().filter(|board| !board.worker_slot.station.is_manned()) {
            board.worker_slot.free();
        }
        Self::default()
    }

    /// Looks around; gives the time until it should do so again, None if whenever.
    pub fn round(&mut self) -> Option<Duration> {
        let (shared, board) = shared().zip(leases())?;
        if !matches!(shared.identity, Identity::Leased { .. }) || server::in_recovery() {
            return None;
        }
        self.see_off(board);
        let stays = board.stays.swap(0, AcqRel);
        if stays != 0 && issuer::change(shared, |state, _| state.stay(stays)).is_err() {
            board.stays.store(stays, Release);
        }
        let renewal_due = self.renewal.round(shared, board);
        self.short &= board.request.pending().is_some();
        let due =
            if board.request.pending().is_some() { self.help(shared, board) } else { self.look_again(board) };
        [renewal_due, due].into_iter().flatten().min()
    }

    /// Whether a lease worker waits for a place among the server's workers.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Frees the worker slot of a lease worker that ended before it sat down, and takes up what one reported.
    fn see_off(&mut self, board: &Board) {
        let ended =
            |worker: &DynamicBackgroundWorker| matches!(worker.pid(), Err(BackgroundWorkerStatus::Stopped));
        if let Some(started) = self.lease_worker.take_if(|started| ended(&started.worker)) {
            if !board.worker_slot.station.is_manned() {
                board.worker_slot.free();
            }
            if board.arrivals.load(Relaxed) == started.arrivals {
                self.refuse(started.errand);
                match (started.errand, &mut self.registry) {
                    (Errand::Serve, _) => lease::note(board, Some(&out_of_reach(board, started.database))),
                    (Errand::Survey, Registry::Survey { missed, .. }) => missed.push(started.database),
                    (Errand::Survey, _) => self.missed.not_yet(started.database),
                }
            } else {
                self.refused = None;
            }
            let report = board.survey.swap(0, AcqRel);
            if report != 0 || started.errand == Errand::Survey {
                self.take_up(&started, board, report);
            }
        }
    }

    /// Notes what a lease worker found: the oid of the database, and how it ranks.
    fn take_up(&mut self, started: &Started, board: &Board, report: u64) {
        #[allow(clippy::cast_possible_truncation, reason = "the half that holds it")]
        let extension = Some(report as u32).filter(|extension| *extension != 0);
        match started.errand {
            Errand::Survey => {
                let Some(extension) = extension else { return };
                let this = (extension, started.database);
                match &mut self.registry {
                    Registry::Survey { first, .. } => {
                        *first = Some(first.map_or(this, |first| first.min(this)));
                    }
                    Registry::Found(_) if self.missed.comes_first(this) => {
                        board.moved_to.store(started.database, Release);
                        board.renew.store(true, Release);
                        board.request.ask();
                    }
                    _ => {}
                }
            }
            // It is not there any more, or not yet.
            Errand::Serve if settings::registry_database().is_empty() => self.registry = survey(),
            Errand::Serve => refuse(board, nothing_in(&settings::registry_database())),
        }
    }

    /// Starts a lease worker for whoever asked, unless there is one.
    fn help(&mut self, shared: &Shared, board: &Board) -> Option<Duration> {
        if self.lease_worker.is_some() || !board.worker_slot.is_for(0) {
            return Some(BACKOFF.0);
        }
        let now = Instant::now();
        // Where there was no place, it tries whenever somebody may have made room.
        if let Some((again, _)) = self.refused
            && again > now
            && !self.short
        {
            return Some(again - now);
        }
        match board.moved_to.swap(0, AcqRel) {
            0 => {}
            ANY => self.registry = survey(),
            database => self.registry = Registry::Found(database),
        }
        match self.way(shared) {
            Way::Nowhere(none) => {
                refuse(board, none);
                self.registry = Registry::Remembered;
                None
            }
            Way::To(errand, database) => {
                self.start(board, errand, database);
                Some(BACKOFF.0)
            }
        }
    }

    /// Looks into one of the databases that could not be looked into when the registry was found; gives the time until the
    /// next, None where there is none.
    fn look_again(&mut self, board: &Board) -> Option<Duration> {
        if !settings::registry_database().is_empty() || !matches!(self.registry, Registry::Found(_)) {
            self.missed = Missed::default();
        }
        let due = self.missed.due()?;
        if !due.is_zero() {
            return Some(due);
        }
        if self.lease_worker.is_none() && board.worker_slot.is_for(0) {
            let database = self.missed.next().filter(|database| database::may_be_used(*database));
            if let Some(database) = database {
                self.start(board, Errand::Survey, database);
            }
        }
        Some(BACKOFF.0)
    }

    fn way(&mut self, shared: &Shared) -> Way {
        let name = settings::registry_database();
        if !name.is_empty() {
            let named = worker::transaction(|| database::of_name(&name)).ok().flatten();
            return named.map_or_else(
                || Way::Nowhere(no_such_database(&name)),
                |database| Way::To(Errand::Serve, database),
            );
        }
        if let Registry::Remembered = self.registry {
            let remembered = shared.counts.moving_to().or_else(|| shared.counts.registry());
            self.registry = remembered.map_or_else(survey, Registry::Found);
        }
        if let Registry::Found(database) = self.registry
            && !database::may_be_used(database)
        {
            self.registry = survey();
        }
        match &mut self.registry {
            Registry::Found(database) => Way::To(Errand::Serve, *database),
            Registry::Survey { left, missed, first } => match (left.pop(), *first) {
                (Some(next), _) => Way::To(Errand::Survey, next),
                (None, Some(first)) => {
                    self.missed = Missed::beside(first, std::mem::take(missed));
                    self.registry = Registry::Found(first.1);
                    Way::To(Errand::Serve, first.1)
                }
                (None, None) => Way::Nowhere(missed.first().map_or_else(nothing_anywhere, |missed| {
                    NoLease::yet(
                        format!(
                            "The extension, which brings the registry of worker ids, is in no database that can be \
                             connected to; \"{}\" cannot.",
                            name_of(*missed)
                        ),
                        "See whether a transaction that changes that database is still open, and the server's log. It is \
                         looked into again.",
                    )
                })),
            },
            Registry::Remembered => Way::Nowhere(nothing_anywhere()),
        }
    }

    fn start(&mut self, board: &Board, errand: Errand, database: u32) {
        board.worker_slot.give_out(database);
        let arrivals = board.arrivals.load(Acquire);
        let started = worker::start_lease_worker(errand, database);
        self.short = started.is_err();
        if let Ok(worker) = started {
            self.lease_worker = Some(Started { worker, errand, database, arrivals });
        } else {
            board.worker_slot.free();
            lease::note(board, Some(&lease::no_worker()));
            self.refuse(Errand::Serve);
            match (errand, &mut self.registry) {
                (Errand::Survey, Registry::Survey { left, .. }) => left.push(database),
                (Errand::Survey, _) => self.missed.not_yet(database),
                (Errand::Serve, _) => {}
            }
        }
    }

    /// Waits a little longer each time before the next is started; not while databases are only looked into.
    fn refuse(&mut self, errand: Errand) {
        if errand == Errand::Serve {
            let delay = self.refused.map_or(BACKOFF.0, |(_, delay)| (delay * 2).min(BACKOFF.1));
            self.refused = Some((Instant::now() + delay, delay));
        }
    }
}

/// All databases are to be looked into.
fn survey() -> Registry {
    let left = worker::transaction(database::all_in_use).unwrap_or_default();
    Registry::Survey { left, missed: Vec::new(), first: None }
}

/// Answers those who asked. Only while the worker slot is free.
fn refuse(board: &Board, none: NoLease) {
    if let Some(ticket) = board.request.pending() {
        lease::answer(board, ticket, Err(none));
    }
}

fn no_such_database(name: &str) -> NoLease {
    NoLease::yet(
        format!(
            "The database \"{name}\", which snowflake_ids.registry_database names as the registry, does not exist."
        ),
        "Create it and give CREATE EXTENSION snowflake_ids there, or change the setting and reload.",
    )
}

fn nothing_in(name: &str) -> NoLease {
    NoLease::yet(
        format!(
            "The extension is not in database \"{name}\", which snowflake_ids.registry_database names as the registry."
        ),
        "Give CREATE EXTENSION snowflake_ids there, or change the setting and reload.",
    )
}

fn nothing_anywhere() -> NoLease {
    NoLease::yet(
        "The extension, which brings the registry of worker ids, is in no database yet.",
        "Give CREATE EXTENSION snowflake_ids, and COMMIT.",
    )
}

fn out_of_reach(board: &Board, database: u32) -> NoLease {
    let (why, hint) = if board.locked_out.load(Acquire) == database {
        (
            ": a transaction that changes that database has it locked",
            "End the transaction with ALTER DATABASE, or the like, that is still open.",
        )
    } else {
        ("", "The server's log says why.")
    };
    NoLease::yet(
        format!(
            "The background worker could not connect to database \"{}\", which holds the registry{why}.",
            name_of(database)
        ),
        hint,
    )
}

fn name_of(database: u32) -> String {
    worker::transaction(|| database::name(database)).ok().flatten().unwrap_or_default()
}
