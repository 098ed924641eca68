//! Sees to it that there is a lease worker when there is something to do about the lease of the worker id. When, and in which
//! database, is decided by the core's `Launch` and `Renewal`.

use crate::lease;
use crate::pg::clock::uptime;
use crate::pg::worker;
use crate::pg::{database, server};
use crate::shared::generator::{Shared, shared};
use crate::shared::leases::{Leases as Board, leases};
use crate::{issuer, settings};
use pgrx::bgworkers::{BackgroundWorkerStatus, DynamicBackgroundWorker};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::clock::human;
use snowflake_ids_core::registry::lease_launch::{
    Action, BACKOFF, Databases, End, Ended, Errand, Lapse, Launch, Move, Named, Nowhere, Renewal,
};
use snowflake_ids_core::registry::lease_worker::ANY;
use snowflake_ids_core::registry::wire::LeaseError;
use snowflake_ids_core::server::state::Identity;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

/// What it remembers.
#[derive(Default)]
pub struct LeaseLauncher {
    /// The lease worker that was started, and how many had reached their database before.
    lease_worker: Option<(DynamicBackgroundWorker, u64)>,
    launch: Launch,
    renewal: Renewal,
}

/// The databases, as the server's catalog, its settings and its state have them.
struct OfServer<'a>(&'a Shared);

impl Databases for OfServer<'_> {
    fn named(&self) -> Named {
        let name = settings::registry_database();
        if name.is_empty() {
            return Named::None;
        }
        let named = worker::transaction(|| database::of_name(&name)).ok().flatten();
        named.map_or(Named::Missing, Named::Database)
    }

    fn all(&self) -> Vec<u32> {
        worker::transaction(database::all_in_use).unwrap_or_default()
    }

    fn may_be_used(&self, database: u32) -> bool {
        database::may_be_used(database)
    }

    fn remembered(&self) -> Option<u32> {
        self.0.counts.moving_to().or_else(|| self.0.counts.registry())
    }
}

impl LeaseLauncher {
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
        self.see_off(shared, board);
        let stays = board.requests.stays.swap(0, AcqRel);
        if stays != 0 && issuer::change(shared, |state, _| state.stay(stays)).is_err() {
            board.requests.stays.store(stays, Release);
        }
        let taken_back = board.requests.taken_back.swap(0, AcqRel);
        if taken_back != 0 && issuer::change(shared, |state, _| state.take_back(taken_back)).is_err() {
            board.requests.taken_back.store(taken_back, Release);
        }
        let renewal_due = self.renew(shared, board);
        let moved = || match board.requests.moved_to.swap(0, AcqRel) {
            0 => None,
            ANY => Some(Move::Anywhere),
            database => Some(Move::To(database)),
        };
        let pending = board.requests.request.pending().is_some();
        let due = match self.launch.next(
            pending,
            board.worker_slot.is_for(0),
            moved,
            &OfServer(shared),
            uptime(),
        ) {
            Action::Start(errand, database) => {
                self.start(board, errand, database);
                Some(BACKOFF.first)
            }
            Action::Refuse(nowhere) => {
                refuse(board, nowhere);
                None
            }
            Action::Wait(due) => due,
        };
        [renewal_due, due].into_iter().flatten().min()
    }

    /// Whether a lease worker waits for a place among the server's workers.
    pub fn is_short(&self) -> bool {
        self.launch.is_short()
    }

    /// Frees the worker slot of a lease worker that ended before it sat down, and takes up what one reported.
    fn see_off(&mut self, shared: &Shared, board: &Board) {
        let ended =
            |worker: &DynamicBackgroundWorker| matches!(worker.pid(), Err(BackgroundWorkerStatus::Stopped));
        let Some((_, arrivals)) = self.lease_worker.take_if(|(worker, _)| ended(worker)) else { return };
        if !board.worker_slot.station.is_manned() {
            board.worker_slot.free();
        }
        #[allow(clippy::cast_possible_truncation, reason = "the half that holds the rank")]
        let rank = |report: u64| Some(report as u32).filter(|rank| *rank != 0);
        let end = End {
            arrived: board.arrivals.load(Relaxed) != arrivals,
            report: Some(board.survey.swap(0, AcqRel)).filter(|report| *report != 0).map(rank),
        };
        match self.launch.ended(end, &OfServer(shared), uptime()) {
            Ended::Fine => {}
            Ended::OutOfReach(database) => lease::note(board, Some(&out_of_reach(board, database))),
            Ended::Refuse(nowhere) => refuse(board, nowhere),
            Ended::Move(database) => {
                board.requests.moved_to.store(database, Release);
                board.requests.ask_to_renew();
            }
        }
    }

    fn start(&mut self, board: &Board, errand: Errand, database: u32) {
        board.worker_slot.give_out(database);
        let arrivals = board.arrivals.load(Acquire);
        if let Ok(worker) = worker::start_lease_worker(errand, database) {
            self.lease_worker = Some((worker, arrivals));
        } else {
            board.worker_slot.free();
            lease::note(board, Some(&lease::no_worker()));
            self.launch.not_started(uptime());
        }
    }

    /// Asks for a renewal where one is due; gives the time until it should look again, None where there is no lease.
    fn renew(&mut self, shared: &Shared, board: &Board) -> Option<Duration> {
        let expiry = shared.counts.expiry().filter(|_| shared.is_issuing())?;
        let (believed, now) = (issuer::believed_now(shared), uptime());
        let is_remote = lease::origin().is_some();
        let settings = lease::settings();
        let asked = settings.duration_of(is_remote);
        let lapse = Lapse {
            left: expiry.since(believed),
            until_renewal: board.requests.until_renewal(expiry, believed, asked, now),
            length: board.requests.length(asked),
            setting: settings.duration,
            is_asked: board.requests.renew.load(Acquire),
            has_jumped: is_remote && shared.counts.clock_ahead.load(Relaxed) > 0,
        };
        let round = self.renewal.round(lapse, now);
        if round.remind {
            remind(expiry, lapse.left);
        }
        if round.ask {
            board.requests.ask_to_renew();
            lease::call(board);
        }
        Some(round.due)
    }
}

/// Tells the log that the lease is not renewed.
fn remind(expiry: UnixMicros, left: Duration) {
    let why = lease::trouble().map(|none| format!(" {}", none.detail)).unwrap_or_default();
    let left = human(left);
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("the registry has not renewed the lease of this server's worker id, which ends in {left}"),
        function_name!(),
    )
    .set_detail(format!("Ids are issued until {expiry}.{why}"))
    .report(PgLogLevel::WARNING);
}

/// Answers the callers. Only while the worker slot is free.
fn refuse(board: &Board, nowhere: Nowhere) {
    let Some(ticket) = board.requests.request.pending() else { return };
    let none = explained(nowhere);
    match nowhere {
        Nowhere::Nothing | Nowhere::NamedIsEmpty => lease::answer_nowhere(board, ticket, &none),
        Nowhere::NamedIsMissing | Nowhere::OutOfReach(_) => lease::answer(board, ticket, Err(none)),
    }
}

/// Why there is no registry, for the callers.
fn explained(nowhere: Nowhere) -> LeaseError {
    const NAMED: &str = "Run CREATE EXTENSION snowflake_ids there, or change the setting and reload.";
    let name = settings::registry_database();
    match nowhere {
        Nowhere::NamedIsMissing => LeaseError::yet(
            format!(
                "The database \"{name}\", which snowflake_ids.registry_database names as the registry, does not exist."
            ),
            "Create it and give CREATE EXTENSION snowflake_ids there, or change the setting and reload.",
        ),
        Nowhere::NamedIsEmpty => LeaseError::yet(
            format!(
                "The extension is not in database \"{name}\", which snowflake_ids.registry_database names as the registry."
            ),
            NAMED,
        ),
        Nowhere::Nothing => LeaseError::yet(
            "The extension, which brings the registry of worker ids, is in no database yet.",
            "Run CREATE EXTENSION snowflake_ids, and COMMIT.",
        ),
        Nowhere::OutOfReach(database) => LeaseError::yet(
            format!(
                "The extension, which brings the registry of worker ids, is in no database that can be connected to; \
                 \"{}\" cannot.",
                name_of(database)
            ),
            "See whether a transaction that changes that database is still open, and the server's log. It is looked into \
             again.",
        ),
    }
}

fn out_of_reach(board: &Board, database: u32) -> LeaseError {
    let (why, hint) = if board.locked_out.load(Acquire) == database {
        (
            ": a transaction that changes that database has it locked",
            "End the transaction with ALTER DATABASE, or the like, that is still open.",
        )
    } else {
        ("", "The server's log says why.")
    };
    LeaseError::yet(
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
