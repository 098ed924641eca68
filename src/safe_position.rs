//! The safe position for the present statement: see [`snowflake_ids_core::generator::safe_position`].

use crate::issuer::issuer;
use crate::pg::clock::SystemClock;
use crate::pg::per_process::PerProcess;
use crate::pg::server;
use crate::pg::snapshot::{self, Raw};
use crate::pg::transaction::{self, Hooks};
use crate::settings;
use crate::shared::generator::{self, SHARED, Shared};
use crate::snowflake;
use crate::store::citus;
use snowflake_ids_core::error::Explain;
use snowflake_ids_core::generator::safe_position::{Answers, SnapshotTooOld, SnapshotXids};
use snowflake_ids_core::ids::position::Position;
use snowflake_ids_core::session::SessionError;
use snowflake_ids_core::{Clock, ClockRollback, UnixMicros};
use std::cell::RefCell;

/// The answers that the present transaction has received.
struct Given {
    given: Answers<Option<Safe>>,
    /// The snapshot of the latest request, and the answer to this request.
    latest: Option<(Raw, Option<Safe>)>,
}

static ANSWERS: PerProcess<RefCell<Given>> =
    PerProcess::new(RefCell::new(Given { given: Answers::new(), latest: None }));

static HOOKS: Hooks = Hooks { committed: forget, ended: forget, ..Hooks::none() };

fn forget() {
    if let Ok(mut answers) = ANSWERS.try_borrow_mut() {
        answers.given.clear();
        answers.latest = None;
    }
}

/// A safe position. All transactions that took positions below the safe position are visible to the statement, or were
/// rolled back.
#[derive(Clone, Copy)]
pub struct Safe {
    /// The smallest id that the safe position or a later position can have.
    pub id: i64,
    /// The beginning of the safe position's tick.
    pub time: UnixMicros,
}

/// The reason why there is no safe position.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SafePositionError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    TooOld(#[from] SnapshotTooOld),
    #[error("cannot execute {0}() without a snapshot of this query")]
    #[explain(Unsupported, hint = "Call the function in the query that reads the rows.")]
    NoSnapshot(&'static str),
    #[error("cannot execute {0}() while snowflake_ids.clock_rollback is \"switch\"")]
    #[explain(
        NotReady,
        detail = "After a step back of the clock, later rows may get lower ids than rows that a reader has already read."
    )]
    #[explain(hint = "Set snowflake_ids.clock_rollback to wait or error.")]
    Switches(&'static str),
    #[error("cannot execute {0}() in a database of a Citus cluster")]
    #[explain(Unsupported, detail = "The nodes of a cluster do not commit at the same moment.")]
    #[explain(
        hint = "Read the rows in the order of another column, such as one with numbers of a gapless series."
    )]
    Citus(&'static str),
}

/// Returns the safe position for the present statement; None while the positions of some transaction are unknown. With
/// `skips_tick`, the safe position is above all ticks that are over, unless an open transaction took a lower position.
pub fn of_statement(function: &'static str, skips_tick: bool) -> Result<Option<Safe>, SafePositionError> {
    let shared = generator::on_primary(function).map_err(SessionError::from)?;
    let switches = settings::rollback() == ClockRollback::Switch;
    transaction::watch(&HOOKS);
    let mut answers = ANSWERS.try_borrow_mut().map_err(|_| SafePositionError::NoSnapshot(function))?;
    // A scan may call this function again for each row. The answer stays the same within a statement.
    if let Some((raw, answer)) = &answers.latest
        && !switches
        && raw.is_of_statement()
    {
        return Ok(*answer);
    }
    if citus::is_there() {
        return Err(SafePositionError::Citus(function));
    }
    if switches {
        return Err(SafePositionError::Switches(function));
    }
    let raw = Raw::of_statement().ok_or(SafePositionError::NoSnapshot(function))?;
    let snapshot = raw.xids();
    let answer = answers.given.get(&snapshot, || find(shared, &snapshot, skips_tick))?;
    answers.latest = Some((raw, answer));
    Ok(answer)
}

fn find(
    shared: &'static Shared,
    snapshot: &SnapshotXids,
    skips_tick: bool,
) -> Result<Option<Safe>, SafePositionError> {
    if shared.frontier.position() == Position::ZERO {
        // Like any call for an id, `skip_one` leases a worker id and begins a term if necessary.
        snowflake::skip_one(shared)?;
        issuer(shared).admit_readers().map_err(SessionError::from)?;
    } else if skips_tick && shared.layout.instant_of(shared.generator.next()) < SystemClock.now() {
        snowflake::skip_at_once(shared);
    }
    let next = shared.frontier.publish(&shared.generator);
    if !shared.ended.is_kept() {
        shared.ended.keep_from(snapshot::next_xid());
    }
    // Announcements are read before records, because an ending transaction is recorded before its announcement is
    // cleared.
    let database = server::database();
    let open = shared.open.iter().filter_map(|open| open.first_in(database)).min();
    let Some(unseen) = shared.ended.unseen_by(snapshot, database) else { return Ok(None) };
    // A prepared transaction of another database has stored no rows in this database.
    let is_known = |xid: &u64| {
        snapshot::runs_in_process(*xid)
            || snapshot::was_rolled_back(*xid)
            || snapshot::is_prepared_elsewhere(*xid, database)
    };
    let is_complete = snapshot.unknown(&unseen).is_some_and(|unknown| unknown.iter().all(is_known));
    let position = [open, unseen.lowest].into_iter().flatten().fold(next.position, Position::min);
    let safe = || Safe {
        id: next.least_id(&shared.layout, position).cast_signed(),
        time: shared.layout.instant_of(position),
    };
    Ok(is_complete.then(safe))
}

/// Returns the ids of the processes of this database whose open transactions took positions. Adds the process id 0, which
/// stands for prepared transactions. Returns an empty list before the first call for a safe position.
pub fn open_processes() -> Vec<i32> {
    let Some(shared) = SHARED.get().filter(|shared| shared.frontier.position() > Position::ZERO) else {
        return Vec::new();
    };
    let numbered = shared.open.iter().enumerate();
    let open = numbered.filter(|(_, open)| open.first_in(server::database()).is_some());
    let processes = open.map(|(number, _)| snapshot::process_id(number)).filter(|pid| *pid != 0);
    std::iter::once(0).chain(processes).collect()
}
