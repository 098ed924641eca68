//! What 32 sessions get out of one tag: once its steps have adapted to them, from the
//! first moment, and what that costs in WAL.

mod cold;
mod durable;
mod hot;

use super::prelude::*;
use snowflake_ids_server_tests::segments::WORKER;
use snowflake_ids_server_tests::wait;
use std::time::Duration;

const SESSIONS: usize = 32;
/// The tag that has adapted.
const HOT: &str = "hot";

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&wal::ONLY_OURS)?;
    let mut session = Session::open(&server)?;
    let adapted = hot::measure(&server, &mut session, effort)?;
    let from_the_start = cold::measure(&server, &mut session, effort)?;
    let durably = durable::measure(&server, &mut session, effort)?;
    Ok(adapted.and(from_the_start).and(durably))
}

/// All sessions calling.
fn calls(statement: &str, stop: Stop) -> Load {
    Load::new(SESSIONS, statement, stop)
}

/// What the server says of a tag.
#[derive(Clone, Copy)]
struct Status {
    /// Ids of its next segment.
    step: f64,
    /// Calls that waited for ids.
    waits: f64,
    /// The longest that one waited, in seconds.
    longest_wait: f64,
    /// Reservations of ids.
    refills: f64,
}

/// Creates a tag whose first segment holds so many ids.
fn create(session: &mut Session, tag: &str, step: u32) -> Result<()> {
    session.execute(&format!("select snowflake_ids.segment_create('{tag}', step => {step})"))
}

fn status(session: &mut Session, tag: &str) -> Result<Status> {
    let [step, waits, longest_wait, refills] = session.values(&format!(
        "select step::float8, waits::float8, coalesce(extract(epoch from longest_wait), 0)::float8, \
                refills::float8
         from snowflake_ids.segment_status where database = current_database() and tag = '{tag}'"
    ))?;
    Ok(Status { step, waits, longest_wait, refills })
}

/// Waits until the worker that refills segments has left, as it does when there is nothing to do. The
/// next to run out of ids starts a new one.
fn let_the_worker_leave(session: &mut Session) -> Result<()> {
    wait::until(Duration::from_secs(20), "the idle worker to leave", || {
        let left = format!("select count(*) = 0 from pg_stat_activity where backend_type = '{WORKER}'");
        Ok(session.value::<bool>(&left)?.then_some(()))
    })
}
