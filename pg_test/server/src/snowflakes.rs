//! Helpers for tests of snowflake ids.

use crate::sql::Session;
use anyhow::Result;
use postgres::Client;
use postgres::error::DbError;
use postgres::types::FromSqlOwned;
use std::time::{SystemTime, UNIX_EPOCH};

/// The call under test.
pub const NEXT: &str = "select snowflake_nextval()";

/// The range of the difference between an id's time and the clock, in seconds, on a busy machine.
pub const NEAR: std::ops::Range<f64> = -60.0..60.0;

/// The error of a call when the clock is too far behind.
pub const BEHIND: &str = "the clock is behind the ids already issued";

/// The next id.
#[track_caller]
pub fn next(client: &mut Client) -> Result<i64> {
    client.one(NEXT)
}

/// Takes ids by separate calls within one statement.
#[track_caller]
pub fn take(client: &mut Client, count: usize) -> Result<Vec<i64>> {
    client.column(&format!("{NEXT} from generate_series(1, {count})"))
}

/// The error of a call that must fail.
#[track_caller]
pub fn refused(client: &mut Client) -> Result<DbError> {
    client.error(NEXT)
}

/// A column of the view `status`.
#[track_caller]
pub fn status<T: FromSqlOwned>(client: &mut Client, column: &str) -> Result<T> {
    client.one(&format!("select {column} from snowflake_ids.status"))
}

/// A duration that the view `status` shows, in seconds.
#[track_caller]
pub fn seconds(client: &mut Client, column: &str) -> Result<f64> {
    status(client, &format!("coalesce(extract(epoch from {column}), 0)::float8"))
}

/// The time in an id, in seconds since 1970.
#[track_caller]
pub fn time(client: &mut Client, id: i64) -> Result<f64> {
    client.one(&format!("select extract(epoch from snowflake_timestamp({id}))::float8"))
}

/// The worker id in an id.
#[track_caller]
pub fn worker(client: &mut Client, id: i64) -> Result<i32> {
    client.one(&format!("select snowflake_worker_id({id})"))
}

/// The rollback value in an id.
#[track_caller]
pub fn rollback(client: &mut Client, id: i64) -> Result<i32> {
    client.one(&format!("select rollback from snowflake_decode({id})"))
}

/// The true time, in seconds since 1970.
#[track_caller]
pub fn now() -> Result<f64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64())
}
