//! A table of the extension that another session has locked.

use crate::clock::human;
use crate::error::{Explain, Kind};
use std::time::Duration;

/// A table was locked for longer than a call may wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not read table \"snowflake_ids.{table}\" within {}", human(*.limit))]
pub struct LockedError {
    /// The table, without its schema.
    pub table: &'static str,
    /// The time that the call may wait.
    pub limit: Duration,
}

impl Explain for LockedError {
    fn kind(&self) -> Kind {
        Kind::Locked
    }

    fn detail(&self) -> Option<String> {
        Some(format!("A transaction has table snowflake_ids.{} locked, as VACUUM FULL does.", self.table))
    }

    fn hint(&self) -> Option<String> {
        Some(format!(
            "End that transaction, or try again. To find it: SELECT pid FROM pg_locks WHERE granted AND \
             mode = 'AccessExclusiveLock' AND relation = 'snowflake_ids.{}'::regclass.",
            self.table
        ))
    }
}
