//! Short forms for queries, and for the errors they should give.

use anyhow::{Context, Result, bail, ensure};
use postgres::Client;
use postgres::error::{DbError, SqlState};
use postgres::types::FromSqlOwned;

/// The one value of a query.
///
/// # Errors
/// The query's.
pub fn one<T: FromSqlOwned>(client: &mut Client, query: &str) -> Result<T> {
    let row = client.query_one(query, &[]).with_context(|| query.to_owned())?;
    row.try_get(0).with_context(|| query.to_owned())
}

/// The first column of a query.
///
/// # Errors
/// The query's.
pub fn column<T: FromSqlOwned>(client: &mut Client, query: &str) -> Result<Vec<T>> {
    let rows = client.query(query, &[]).with_context(|| query.to_owned())?;
    rows.iter().map(|row| row.try_get(0).with_context(|| query.to_owned())).collect()
}

/// The server's error for a query that must fail.
///
/// # Errors
/// The query succeeds, or the session is lost.
pub fn error(client: &mut Client, query: &str) -> Result<DbError> {
    match client.simple_query(query) {
        Ok(_) => bail!("no error: {query}"),
        Err(error) => match error.as_db_error() {
            Some(db) => Ok(db.clone()),
            None => Err(error).with_context(|| query.to_owned()),
        },
    }
}

/// It is the error that was meant, and has both a DETAIL and a HINT.
///
/// # Errors
/// It is another one, or explains nothing.
pub fn explains(error: &DbError, code: &SqlState, message: &str) -> Result<()> {
    ensure!(error.code() == code && error.message() == message, "not {code:?} \"{message}\": {error:?}");
    ensure!(error.detail().is_some() && error.hint().is_some(), "no DETAIL or no HINT: {error:?}");
    Ok(())
}
