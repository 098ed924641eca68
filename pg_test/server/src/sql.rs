//! Short forms for statements and expected errors.

use crate::wait;
use anyhow::{Context, Result, bail, ensure};
use postgres::Client;
use postgres::error::{DbError, SqlState};
use postgres::types::FromSqlOwned;
use std::panic::Location;

/// The SQLSTATE 55000: the server, a registry or an object is not in the state that a call needs.
pub const NOT_IN_STATE: &SqlState = &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;

/// Short forms for a session.
pub trait Session {
    /// Runs statements.
    fn run(&mut self, statements: &str) -> Result<()>;

    /// The one value of a query.
    fn one<T: FromSqlOwned>(&mut self, query: &str) -> Result<T>;

    /// The first column of a query.
    fn column<T: FromSqlOwned>(&mut self, query: &str) -> Result<Vec<T>>;

    /// The process that serves the session.
    fn process(&mut self) -> Result<i32>;

    /// The server's error for statements that must fail.
    fn error(&mut self, statements: &str) -> Result<DbError>;

    /// The server's error for statements that must fail with this code.
    fn fails(&mut self, statements: &str, code: &SqlState) -> Result<DbError>;

    /// The server's error for statements that must fail with this code and message, and with both a DETAIL and a HINT.
    fn explained(&mut self, statements: &str, code: &SqlState, message: &str) -> Result<DbError>;

    /// The server's error for a query that must fail, run in a transaction of its own under the time limit `limit`. Later
    /// statements have the session's own limit again, because a short limit would cancel them on a busy machine.
    fn error_within(&mut self, limit: &str, query: &str) -> Result<DbError>;

    /// Waits until a query returns true.
    fn becomes_true(&mut self, query: &str) -> Result<()>;
}

impl Session for Client {
    #[track_caller]
    fn run(&mut self, statements: &str) -> Result<()> {
        let place = Location::caller();
        self.batch_execute(statements).with_context(|| format!("{place}: {statements}"))
    }

    #[track_caller]
    fn one<T: FromSqlOwned>(&mut self, query: &str) -> Result<T> {
        let place = Location::caller();
        let value = self.query_one(query, &[]).and_then(|row| row.try_get(0));
        value.with_context(|| format!("{place}: {query}"))
    }

    #[track_caller]
    fn column<T: FromSqlOwned>(&mut self, query: &str) -> Result<Vec<T>> {
        let place = Location::caller();
        let rows = self.query(query, &[]);
        let values = rows.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect());
        values.with_context(|| format!("{place}: {query}"))
    }

    #[track_caller]
    fn process(&mut self) -> Result<i32> {
        self.one("select pg_backend_pid()")
    }

    #[track_caller]
    fn error(&mut self, statements: &str) -> Result<DbError> {
        let place = Location::caller();
        match self.simple_query(statements) {
            Ok(_) => bail!("{place}: no error: {statements}"),
            Err(error) => match error.as_db_error() {
                Some(db) => Ok(db.clone()),
                None => Err(error).with_context(|| format!("{place}: {statements}")),
            },
        }
    }

    #[track_caller]
    fn fails(&mut self, statements: &str, code: &SqlState) -> Result<DbError> {
        let (place, error) = (Location::caller(), self.error(statements)?);
        ensure!(error.code() == code, "{place}: not {code:?}: {statements}: {error:?}");
        Ok(error)
    }

    #[track_caller]
    fn explained(&mut self, statements: &str, code: &SqlState, message: &str) -> Result<DbError> {
        let error = self.error(statements)?;
        explains(&error, code, message)?;
        Ok(error)
    }

    #[track_caller]
    fn error_within(&mut self, limit: &str, query: &str) -> Result<DbError> {
        self.run(&format!("begin; set local statement_timeout = '{limit}'"))?;
        let error = self.error(query)?;
        self.run("rollback")?;
        Ok(error)
    }

    #[track_caller]
    fn becomes_true(&mut self, query: &str) -> Result<()> {
        wait::until_true(query, || self.one(query))
    }
}

/// Checks an error's code and message, and that it has both a DETAIL and a HINT.
#[track_caller]
pub fn explains(error: &DbError, code: &SqlState, message: &str) -> Result<()> {
    let (place, meant) = (Location::caller(), error.code() == code && error.message() == message);
    ensure!(meant, "{place}: not {code:?} \"{message}\": {error:?}");
    let whole = error.detail().is_some() && error.hint().is_some();
    ensure!(whole, "{place}: no DETAIL or no HINT: {error:?}");
    Ok(())
}
