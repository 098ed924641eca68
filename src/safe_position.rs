//! The safe position to read from, for the present statement: see [`snowflake_ids_core::generator::safe_position`].

use crate::issuer::issuer;
use crate::pg::clock::SystemClock;
use crate::pg::process::PerProcess;
use crate::pg::transaction::{self, Hooks};
use crate::pg::{server, snapshot};
use crate::shared::generator::{self, Shared};
use crate::snowflake;
use crate::store::citus;
use snowflake_ids_core::Clock;
use snowflake_ids_core::error::{Explain, NotReadyError};
use snowflake_ids_core::generator::safe_position::{Answers, SnapshotTooOld, SnapshotXids};
use snowflake_ids_core::generator::session::SessionError;
use snowflake_ids_core::generator::snowflake::NextPosition;
use snowflake_ids_core::ids::position::Position;
use snowflake_ids_core::server::issuer::IssuerError;
use std::cell::RefCell;

/// The answers that the present transaction was given.
static ANSWERS: PerProcess<RefCell<Answers<Option<Safe>>>> = PerProcess::new(RefCell::new(Answers::new()));

static HOOKS: Hooks = Hooks { committed: forget, ended: forget, ..Hooks::none() };

fn forget() {
    if let Ok(mut answers) = ANSWERS.try_borrow_mut() {
        answers.clear();
    }
}

/// A safe position, and the generator's next position at that time.
#[derive(Clone, Copy)]
pub struct Safe {
    /// All transactions with positions below this one are visible to the statement, or were rolled back.
    pub position: Position,
    /// The generator's next position.
    pub next: NextPosition,
}

/// Reason why there is no safe position.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SafePositionError {
    #[error(transparent)]
    #[explain(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    #[explain(transparent)]
    Issuer(#[from] IssuerError),
    #[error(transparent)]
    #[explain(transparent)]
    TooOld(#[from] SnapshotTooOld),
    #[error("cannot execute {0}() without a snapshot of a query")]
    #[explain(Unsupported, hint = "Call it in a query that reads rows.")]
    NoSnapshot(&'static str),
    #[error("cannot execute {0}() in a database of a Citus cluster")]
    #[explain(Unsupported, detail = "The nodes of a cluster commit one after the other.")]
    #[explain(hint = "Read rows by an order of your own, such as numbers of a gapless series.")]
    Citus(&'static str),
}

/// Returns the safe position for the present statement; None if a transaction's positions are not known, for now. With
/// `skips_tick`, positions of ticks that are over are below the safe position, if no open transaction holds it back.
pub fn of_statement(function: &'static str, skips_tick: bool) -> Result<Option<Safe>, SafePositionError> {
    let shared = generator::shared().ok_or(SessionError::NotReady(NotReadyError::NotPreloaded(function)))?;
    if server::in_recovery() {
        return Err(SessionError::NotReady(NotReadyError::InRecovery(function)).into());
    }
    if citus::is_there() {
        return Err(SafePositionError::Citus(function));
    }
    let snapshot = snapshot::of_statement().ok_or(SafePositionError::NoSnapshot(function))?;
    transaction::watch(&HOOKS);
    ANSWERS.borrow_mut().get(&snapshot, || find(shared, &snapshot, skips_tick))
}

fn find(
    shared: &'static Shared,
    snapshot: &SnapshotXids,
    skips_tick: bool,
) -> Result<Option<Safe>, SafePositionError> {
    if shared.frontier.position() == Position::ZERO {
        // As with any call for an id, a worker id is leased and a term begins.
        snowflake::skip_one(shared)?;
        issuer(shared).admit_readers()?;
    } else if skips_tick && shared.layout.instant_of(shared.generator.next()) < SystemClock.now() {
        // If this fails, rows of the last tick are read later.
        let _ = snowflake::skip_one(shared);
    }
    let database = server::database();
    let next = shared.frontier.publish(&shared.generator);
    // Announcements are read first, because a transaction is recorded before its announcement is cleared.
    let open = shared.open_transactions().iter().filter_map(|open| open.first_in(database)).min();
    let recorded = shared.ended.read().unseen_by(snapshot, database);
    let Some(recorded) =
        recorded.filter(|recorded| recorded.unknown.iter().all(|xid| snapshot::runs_in_process(*xid)))
    else {
        return Ok(None);
    };
    let position = [open, recorded.first].into_iter().flatten().fold(next.position, Position::min);
    Ok(Some(Safe { position, next }))
}

/// Returns the processes of this database with an open transaction that took positions.
pub fn open_processes() -> Vec<i32> {
    let Some(shared) = generator::shared().filter(|shared| shared.frontier.position() > Position::ZERO)
    else {
        return Vec::new();
    };
    let numbered = shared.open_transactions().iter().enumerate();
    let open = numbered.filter(|(_, open)| open.first_in(server::database()).is_some());
    open.map(|(number, _)| snapshot::process_id(number)).filter(|pid| *pid != 0).collect()
}
