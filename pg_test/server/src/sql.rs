//! Short forms for queries, and for the errors they should give.

use crate::wait;
use anyhow::{Context, Result, bail, ensure};
use postgres::Client;
use postgres::error::{DbError, SqlState};
use postgres::types::FromSqlOwned;
use std::panic::Location;

/// What is asked for takes a state of the server, of a registry or of an object that is not there (55000).
pub const NOT_IN_STATE: &SqlState = &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;

/// The one value of a query.
#[track_caller]
pub fn one<T: FromSqlOwned>(client: &mut Client, query: &str) -> Result<T> {
    let place = Location::caller();
    let value = client.query_one(query, &[]).and_then(|row| row.try_get(0));
    value.with_context(|| format!("{place}: {query}"))
}

/// The first column of a query.
#[track_caller]
pub fn column<T: FromSqlOwned>(client: &mut Client, query: &str) -> Result<Vec<T>> {
    let place = Location::caller();
    let rows = client.query(query, &[]);
    let values = rows.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect());
    values.with_context(|| format!("{place}: {query}"))
}

/// The server's error for a query that must fail.
#[track_caller]
pub fn error(client: &mut Client, query: &str) -> Result<DbError> {
    let place = Location::caller();
    match client.simple_query(query) {
        Ok(_) => bail!("{place}: no error: {query}"),
        Err(error) => match error.as_db_error() {
            Some(db) => Ok(db.clone()),
            None => Err(error).with_context(|| format!("{place}: {query}")),
        },
    }
}

/// The server's error for a query that must fail with this code.
#[track_caller]
pub fn fails(client: &mut Client, query: &str, code: &SqlState) -> Result<DbError> {
    let (place, error) = (Location::caller(), error(client, query)?);
    ensure!(error.code() == code, "{place}: not {code:?}: {query}: {error:?}");
    Ok(error)
}

/// The same for an error with this message, and with both a DETAIL and a HINT.
#[track_caller]
pub fn explained(client: &mut Client, query: &str, code: &SqlState, message: &str) -> Result<DbError> {
    let error = error(client, query)?;
    explains(&error, code, message)?;
    Ok(error)
}

/// The server's error for a query that must fail, in a transaction of its own, where `limit` is the query's time limit. What follows it has the session's own limit
/// again: with a short one it would be cancelled on a busy machine.
#[track_caller]
pub fn error_within(client: &mut Client, limit: &str, query: &str) -> Result<DbError> {
    client.batch_execute(&format!("begin; set local statement_timeout = '{limit}'"))?;
    let error = error(client, query)?;
    client.batch_execute("rollback")?;
    Ok(error)
}

/// Waits until a query gives true.
#[track_caller]
pub fn becomes_true(client: &mut Client, query: &str) -> Result<()> {
    wait::until_true(query, || one(client, query))
}

/// It is the error that was meant, and has both a DETAIL and a HINT.
#[track_caller]
pub fn explains(error: &DbError, code: &SqlState, message: &str) -> Result<()> {
    let (place, meant) = (Location::caller(), error.code() == code && error.message() == message);
    ensure!(meant, "{place}: not {code:?} \"{message}\": {error:?}");
    let whole = error.detail().is_some() && error.hint().is_some();
    ensure!(whole, "{place}: no DETAIL or no HINT: {error:?}");
    Ok(())
}
