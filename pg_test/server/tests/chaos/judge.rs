//! Errors that may come of faults and changes, and those that may never come.

use anyhow::{Result, ensure};
use postgres::error::{DbError, Error};
use std::path::Path;

/// Errors that sessions may get, those that take ids and those that do something to the server.
const EXPECTED: &[&str] = &[
    "0A000", // cached plan must not change result type
    "23502", // the default is away while the extension is
    "25P02", // the transaction has failed before
    "3D000", "3F000", "42704", "42883",
    "42P01", // a database, a schema, a tag, a function, a table that is away
    "40P01", "55P03", "55006", // locks, and sessions in the way
    "53000", "53300", "53400", // no ids in time, no place for a session, no place for a tag
    "55000", // no sessions wanted; what is in the way of ids
    "57014", "57P01", "57P02", "57P03", "57P04", // cancelled, ended, crashed, starting, dropped
];

/// Postgres's own errors about objects that go while it looks at them.
const OF_POSTGRES: &[&str] = &[
    "cache lookup failed for",
    "could not open relation with OID",
    "tuple concurrently",
    "could not find tuple for",
    "could not find trigger",
];

/// True if an error is the test's fault.
pub fn is_expected(error: &DbError) -> bool {
    let code = error.code().code();
    // Ours come from files in Rust.
    let of_postgres =
        error.file().is_some_and(|file| Path::new(file).extension().is_some_and(|kind| kind == "c"));
    // `segment_set` to what the row said: a refill came between.
    let is_overtaken = code == "22023" && error.message().contains("is below issued ids of segment tag");
    EXPECTED.contains(&code)
        || is_overtaken
        || of_postgres
            && code == "XX000"
            && OF_POSTGRES.iter().any(|start| error.message().starts_with(start))
}

/// An error with all that is known of it.
pub fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(db) => format!(
            "{} {} (detail: {:?}, where: {:?}, {}:{})",
            db.code().code(),
            db.message(),
            db.detail(),
            db.where_(),
            db.file().unwrap_or("?"),
            db.line().unwrap_or(0)
        ),
        None => error.to_string(),
    }
}

/// A server's log has no lines that must not be there; `killed` says that the test killed processes.
pub fn has_no_faults(log: &str, killed: bool) -> Result<()> {
    let faults = faults(log, killed);
    let first = &faults[..faults.len().min(5)];
    ensure!(
        faults.is_empty(),
        "a server's log has {} lines that must not be there: {first:#?}",
        faults.len()
    );
    Ok(())
}

fn faults(log: &str, killed: bool) -> Vec<&str> {
    let words = ["PANIC: ", "TRAP: ", "was terminated by signal", "panicked at", "unexpected"];
    let bad = |line: &&str| {
        // A worker's, told to sessions that waited; which one it was is not said.
        let internal = line.contains(" XX000 ") && !OF_POSTGRES.iter().any(|start| line.contains(start));
        // A process that outlives a killed postmaster says so, and so does one that was connected to it.
        let line =
            line.replace("unexpected postmaster exit", "").replace("closed the connection unexpectedly", "");
        internal
            || words.iter().any(|word| line.contains(word))
                && !(killed && line.contains("was terminated by signal 9"))
    };
    log.lines().filter(bad).collect()
}
