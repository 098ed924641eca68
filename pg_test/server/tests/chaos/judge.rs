//! Errors that faults and changes may cause, and errors that are never allowed.

use anyhow::{Result, ensure};
use postgres::error::{DbError, Error};
use std::path::Path;

/// Errors that are allowed, both in sessions that take ids and in sessions that change the server.
const EXPECTED: &[&str] = &[
    "0A000", // cached plan must not change result type
    "23502", // the default is missing while the extension is dropped
    "25P02", // the transaction has failed before
    "3D000", "3F000", "42704", "42883", "42P01", // a missing database, schema, tag, function or table
    "40P01", "55P03", "55006", // locks, and sessions in the way
    "53000", "53300", "53400", // no ids in time, no slot for a session, no slot for a tag
    "55000", // no sessions allowed; obstacles to ids
    "57014", "57P01", "57P02", "57P03", "57P04", // cancelled, ended, crashed, starting, dropped
];

/// Postgres's own errors about objects that are dropped while it reads them.
const OF_POSTGRES: &[&str] = &[
    "cache lookup failed for",
    "could not open relation with OID",
    "tuple concurrently",
    "could not find tuple for",
    "could not find trigger",
];

/// Whether an error is caused by the test.
pub fn is_expected(error: &DbError) -> bool {
    let code = error.code().code();
    // Errors of the extension come from Rust files.
    let of_postgres =
        error.file().is_some_and(|file| Path::new(file).extension().is_some_and(|kind| kind == "c"));
    // `segment_set` to the row's value fails if a refill has raised the row meanwhile.
    let is_overtaken = code == "22023" && error.message().contains("is below issued ids of segment tag");
    EXPECTED.contains(&code)
        || is_overtaken
        || of_postgres
            && code == "XX000"
            && OF_POSTGRES.iter().any(|start| error.message().starts_with(start))
}

/// An error with all its parts.
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

/// Checks a server's log for forbidden lines. `killed`: the test killed processes.
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
        // This line reports a worker's internal error to waiting sessions, without saying which one.
        let internal = line.contains(" XX000 ") && !OF_POSTGRES.iter().any(|start| line.contains(start));
        // After a postmaster was killed, its remaining processes and their clients report the loss. Recovery ends at a WAL page
        // left from an earlier use of a recycled file.
        let usual =
            ["unexpected postmaster exit", "closed the connection unexpectedly", "unexpected pageaddr"];
        let line = usual.iter().fold(line.to_string(), |line, words| line.replace(words, ""));
        internal
            || words.iter().any(|word| line.contains(word))
                && !(killed && line.contains("was terminated by signal 9"))
    };
    log.lines().filter(bad).collect()
}
