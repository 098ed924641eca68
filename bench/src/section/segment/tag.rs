//! The tag that is measured, and the sessions that use it.

use crate::section::prelude::*;
use snowflake_ids_server_tests::segments::WORKER;
use snowflake_ids_server_tests::wait;
use std::time::Duration;

pub const SESSIONS: usize = 32;
/// The tag that has adapted.
pub const HOT: &str = "hot";

/// A load in which all sessions call.
pub fn calls(statement: &str, stop: Stop) -> Load {
    Load::new(SESSIONS, statement, stop)
}

/// The figures that the server reports about a tag.
#[derive(Clone, Copy)]
pub struct Status {
    /// The number of ids in the tag's next segment.
    pub step: f64,
    /// Calls that waited for ids.
    pub waits: f64,
    /// The longest wait of a call, in seconds.
    pub longest_wait: f64,
    /// Reservations of ids.
    pub refills: f64,
}

/// Creates a tag whose first segment holds `step` ids.
pub fn create(session: &mut Session, tag: &str, step: u32) -> Result<()> {
    session.execute(&format!("select snowflake_ids.segment_create('{tag}', step => {step})"))
}

pub fn status(session: &mut Session, tag: &str) -> Result<Status> {
    let [step, waits, longest_wait, refills] = session.values(&format!(
        "select step::float8, waits::float8, coalesce(extract(epoch from longest_wait), 0)::float8, \
                refills::float8
         from snowflake_ids.segment_status where database = current_database() and tag = '{tag}'"
    ))?;
    Ok(Status { step, waits, longest_wait, refills })
}

/// Waits until the refill worker has ended for lack of work. The next session that runs out of ids starts a new worker.
pub fn let_the_worker_leave(session: &mut Session) -> Result<()> {
    wait::until(Duration::from_secs(20), "the idle worker to leave", || {
        let left = format!("select count(*) = 0 from pg_stat_activity where backend_type = '{WORKER}'");
        Ok(session.value::<bool>(&left)?.then_some(()))
    })
}
