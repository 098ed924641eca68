//! A position below which no transaction that the present statement does not see took one: see
//! [`snowflake_ids_core::generator::safe_position`].

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
use snowflake_ids_core::generator::safe_position::{
    Answers, EndedTransaction, NextPosition, OpenTransaction, SnapshotTooOld, SnapshotXids,
};
use snowflake_ids_core::generator::session::SessionError;
use snowflake_ids_core::ids::position::Position;
use snowflake_ids_core::server::issuer::IssuerError;
use std::cell::{Cell, RefCell};

/// True if the present transaction is announced, by this process.
static ANNOUNCED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// The answers that the present transaction was given.
static ANSWERS: PerProcess<RefCell<Answers<Option<Safe>>>> = PerProcess::new(RefCell::new(Answers::new()));

static HOOKS: Hooks = Hooks { committed, before_prepare: record, ended: end, ..Hooks::none() };

/// Has the ends of this process's transactions noted. A transaction may be announced by its parallel workers alone.
pub fn watch() {
    transaction::watch(&HOOKS);
}

/// Announces the present transaction to readers, before it takes its first position.
#[inline]
pub fn announce(shared: &Shared) {
    if !ANNOUNCED.get() {
        announce_first(shared);
    }
}

#[cold]
fn announce_first(shared: &Shared) {
    if let Some(own) = shared.own_transaction() {
        own.announce(&shared.frontier, server::database());
    }
    ANNOUNCED.set(true);
}

/// Records the transaction if it may have rows with positions that it took.
fn record() {
    let Some(shared) = generator::shared().filter(|_| !transaction::is_of_leader()) else { return };
    let first = shared.own_transaction().and_then(OpenTransaction::first);
    if let (Some(first), Some(xid)) = (first, transaction::xid()) {
        shared.ended.write().record(EndedTransaction { xid, first, database: server::database() });
    }
}

/// Other transactions see its rows by now.
fn committed() {
    record();
    end();
}

fn end() {
    // A worker of a parallel query starts and ends transactions of its own while its leader's is open.
    if transaction::is_of_leader() {
        return;
    }
    ANNOUNCED.set(false);
    // An answer may hold the cell if an error came out of it, which ends the transaction.
    if let Ok(mut answers) = ANSWERS.try_borrow_mut() {
        answers.clear();
    }
    if let Some(own) = generator::shared().and_then(Shared::own_transaction) {
        own.clear();
    }
}

/// A safe position, and the next one at that time.
#[derive(Clone, Copy)]
pub struct Safe {
    /// All positions below this one are of transactions that the statement sees, or that were rolled back.
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

/// The safe position for the present statement; None if that is not known of some transaction, for now. `is_past` is asked for
/// a position that lies in a tick that is over, where nothing has been issued since.
pub fn of_statement(function: &'static str, skips: bool) -> Result<Option<Safe>, SafePositionError> {
    let shared = generator::shared().ok_or(SessionError::NotReady(NotReadyError::NotPreloaded(function)))?;
    if server::in_recovery() {
        return Err(SessionError::NotReady(NotReadyError::InRecovery(function)).into());
    }
    if citus::is_there() {
        return Err(SafePositionError::Citus(function));
    }
    let snapshot = snapshot::of_statement().ok_or(SafePositionError::NoSnapshot(function))?;
    let mut answers = ANSWERS.borrow_mut();
    answers.get(&snapshot, || find(shared, &snapshot, skips))
}

fn find(
    shared: &'static Shared,
    snapshot: &SnapshotXids,
    skips: bool,
) -> Result<Option<Safe>, SafePositionError> {
    if shared.frontier.position() == Position::ZERO {
        // As any call for an id: has a worker id leased, and a term begun.
        snowflake::skip_one(shared)?;
        issuer(shared).admit_readers()?;
    } else if skips && shared.layout.instant_of(shared.generator.next()) < SystemClock.now() {
        // Where it fails, rows of the last tick wait until it does not.
        let _ = snowflake::skip_one(shared);
    }
    let database = server::database();
    let next = shared.frontier.publish(&shared.generator);
    // Announcements first: a transaction is recorded before its own is cleared.
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

/// The processes of this database whose transactions took positions and are open.
pub fn open_processes() -> Vec<i32> {
    let Some(shared) = generator::shared().filter(|shared| shared.frontier.position() > Position::ZERO)
    else {
        return Vec::new();
    };
    let numbered = shared.open_transactions().iter().enumerate();
    let open = numbered.filter(|(_, open)| open.first_in(server::database()).is_some());
    open.map(|(number, _)| snapshot::process_id(number)).filter(|pid| *pid != 0).collect()
}
