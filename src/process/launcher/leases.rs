//! Starts lease workers. The core's `Launch` and `Renewal` choose the time and the database.

use crate::issuer;
use crate::lease;
use crate::pg::clock::uptime;
use crate::pg::process;
use crate::pg::report::new_report;
use crate::pg::{database, server};
use crate::shared::generator::{SHARED, Shared};
use crate::shared::leases::{LEASES, Leases as Board};
use pgrx::bgworkers::{BackgroundWorkerStatus, DynamicBackgroundWorker};
use pgrx::{PgLogLevel, PgSqlErrorCode};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::clock::human;
use snowflake_ids_core::registry::lease_launch::{
    self, BACKOFF, DatabaseUse, Databases, End, KnownRegistry, Lapse, Launch, LaunchAction, LeaseTask,
    RegistryChanges, Renewal, RenewalRound,
};
use snowflake_ids_core::server::lease::LeaseError;
use snowflake_ids_core::server::state::Identity;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Duration;

/// The launcher's state for lease workers.
#[derive(Default)]
pub struct LeaseLauncher {
    /// The lease worker that was started, and the value of `arrivals` at its start.
    lease_worker: Option<(DynamicBackgroundWorker, u64)>,
    pub launch: Launch,
    renewal: Renewal,
}

/// The databases in the server's catalog.
struct OfServer;

impl Databases for OfServer {
    fn all(&self) -> Vec<u32> {
        process::transaction(database::all_in_use).unwrap_or_default()
    }

    fn may_be_used(&self, database: u32) -> bool {
        database::may_be_used(database)
    }
}

impl LeaseLauncher {
    /// Frees the lease worker's slot, unless a lease worker that a previous launcher started still uses the slot.
    pub fn new() -> Self {
        if let Some(board) = LEASES.get().filter(|board| !board.worker_slot.worker_latch.is_occupied()) {
            board.worker_slot.free();
        }
        Self::default()
    }

    /// Does all work that is due. Returns the time until the next round; None if there will be no work.
    pub fn round(&mut self) -> Option<Duration> {
        let (shared, board) = SHARED.get().zip(LEASES.get())?;
        if !matches!(shared.identity, Identity::Leased { .. }) || server::in_recovery() {
            return None;
        }
        self.take_leave(board);
        let renewal_due = self.renew(shared, board);
        let changes = RegistryChanges::take(&board.requests, &shared.status);
        let pending = board.requests.request.pending().is_some();
        let free = board.worker_slot.is_for(0);
        let due = match self.launch.next(
            pending,
            free,
            KnownRegistry::of(&shared.status),
            changes,
            &OfServer,
            uptime(),
        ) {
            LaunchAction::Start(task, database) => {
                self.start(board, task, database);
                Some(BACKOFF.first)
            }
            LaunchAction::Record(found) => {
                let recorded = record(shared, board, found);
                Some(if recorded { BACKOFF.first } else { BACKOFF.most })
            }
            LaunchAction::Answer => {
                answer(shared, board);
                None
            }
            LaunchAction::OutOfReach(database) => {
                lease::record(board, Some(&out_of_reach(board, database)));
                Some(BACKOFF.first)
            }
            LaunchAction::Wait(due) => due,
        };
        [renewal_due, due].into_iter().flatten().min()
    }

    /// Processes the report of a lease worker that has ended, and frees its slot.
    fn take_leave(&mut self, board: &Board) {
        let ended =
            |worker: &DynamicBackgroundWorker| matches!(worker.pid(), Err(BackgroundWorkerStatus::Stopped));
        let Some((_, arrivals)) = self.lease_worker.take_if(|(worker, _)| ended(worker)) else { return };
        if !board.worker_slot.worker_latch.is_occupied() {
            board.worker_slot.free();
        }
        let end = End {
            arrived: board.arrivals.load(Relaxed) != arrivals,
            found: match board.found.swap(0, AcqRel) {
                0 => None,
                1 => Some(DatabaseUse::None),
                2 => Some(DatabaseUse::Registry),
                _ => Some(DatabaseUse::Node),
            },
        };
        if let Some(database) = self.launch.ended(end, &OfServer, uptime()) {
            lease::record(board, Some(&out_of_reach(board, database)));
        }
    }

    fn start(&mut self, board: &Board, task: LeaseTask, database: u32) {
        board.worker_slot.give_out(database);
        let arrivals = board.arrivals.load(Acquire);
        if let Some(worker) = process::start_lease_worker(task, database) {
            self.lease_worker = Some((worker, arrivals));
        } else {
            board.worker_slot.free();
            lease::record(board, Some(&lease::no_worker()));
            self.launch.not_started(uptime());
        }
    }

    /// Requests a renewal if one is due. Returns the time until the next check; None if there is nothing to renew.
    fn renew(&mut self, shared: &Shared, board: &Board) -> Option<Duration> {
        let (believed, now) = (shared.now(), uptime());
        let Some(expiry) = shared.status.expiry().filter(|_| shared.is_issuing()) else {
            let was_refused = shared.status.registry().is_some() && lease::trouble().is_some();
            let round = was_refused.then(|| self.renewal.round_without(now));
            return round.map(|round| Self::ask(board, round));
        };
        let is_remote = lease::origin().is_some();
        let settings = lease::settings();
        let asked = settings.duration_of(is_remote);
        let lapse = Lapse {
            left: expiry.since(believed),
            until_renewal: board.requests.until_renewal(expiry, believed, asked, now),
            length: board.requests.length(asked),
            setting: settings.duration,
            is_asked: board.requests.renew.load(Acquire),
            has_jumped: is_remote && shared.status.clock_ahead.load(Relaxed) > 0,
        };
        let round = self.renewal.round(lapse, now);
        if round.remind {
            remind(expiry, lapse.left);
        }
        Some(Self::ask(board, round))
    }

    fn ask(board: &Board, round: RenewalRound) -> Duration {
        if round.ask {
            board.requests.ask_to_renew();
            lease::call(board);
        }
        round.due
    }
}

fn remind(expiry: UnixMicros, left: Duration) {
    let why = lease::trouble().map(|none| format!(" {}", none.detail)).unwrap_or_default();
    let left = human(left);
    new_report(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("the registry has not renewed the lease of this server's worker id, which ends in {left}"),
    )
    .set_detail(format!("Ids are issued until {expiry}.{why}"))
    .report(PgLogLevel::WARNING);
}

/// Records in the state file the database through which the server leases its worker id. `found` is None if there is no such
/// database. Returns whether the write succeeded.
fn record(shared: &Shared, board: &Board, found: Option<u32>) -> bool {
    let recorded =
        issuer::change(shared, |state, here| lease_launch::record(state, here, &board.requests, found));
    if recorded.is_ok() && found.is_some() {
        // This request makes the lease worker ask the registry immediately.
        board.requests.ask_to_renew();
    }
    recorded.is_ok()
}

/// Answers callers on a server without a registry. The worker slot must be free.
fn answer(shared: &Shared, board: &Board) {
    let Some(ticket) = board.requests.request.pending() else { return };
    let none = issuer::change(shared, |state, here| state.no_worker(here));
    lease::answer(
        board,
        ticket,
        none.map_or_else(|error| Err(LeaseError::of(&error)), |none| none.map_or(Ok(()), Err)),
    );
}

fn out_of_reach(board: &Board, database: u32) -> LeaseError {
    let (why, hint) = if board.locked_out.load(Acquire) == database {
        (
            ", because a transaction that changes this database has locked it",
            "End the open transaction that has run ALTER DATABASE or a similar command.",
        )
    } else {
        ("", "See the server's log for the reason.")
    };
    let name = process::transaction(|| database::name(database)).ok().flatten().unwrap_or_default();
    LeaseError::yet(
        format!("The background worker could not search database \"{name}\" for a registry{why}."),
        hint,
    )
}
