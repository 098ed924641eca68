//! A lock timeout on a table of the extension.

use crate::clock::human;
use crate::error::Explain;
use std::time::Duration;

/// A table was locked for longer than the call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("could not read table \"snowflake_ids.{table}\" within {}", human(*.limit))]
#[explain(
    Locked,
    detail = "Another transaction has locked table snowflake_ids.{table}, as VACUUM FULL does.",
    hint = "End that transaction, or try again. To find it: SELECT pid FROM pg_locks WHERE granted AND \
            mode = 'AccessExclusiveLock' AND relation = 'snowflake_ids.{table}'::regclass."
)]
pub struct LockedError {
    /// The table, without its schema.
    pub table: &'static str,
    /// The time limit.
    pub limit: Duration,
}
