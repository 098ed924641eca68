//! Tests inside a server that preloads the library, as datacenter 3, worker 7. Each test runs in a transaction
//! that is rolled back.
//!
//! `pg_regress` (`pg_test/sql`) tests what SQL can observe. The tests here need access from Rust.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[cfg(test)]
mod errors;
#[cfg(test)]
mod raised;
mod segment;
mod shard;
mod snowflake;

use pgrx::prelude::*;

fn one<T: FromDatum + IntoDatum>(sql: &str) -> T {
    Spi::get_one(sql).unwrap().unwrap_or_else(|| panic!("{sql} gave NULL"))
}

/// Returns the SQLSTATE of a statement's error, or `no error`.
fn sqlstate(sql: &str) -> String {
    let sql = sql.replace('\'', "''");
    Spi::run("CREATE TEMP TABLE IF NOT EXISTS caught (state text)").unwrap();
    Spi::run(&format!(
        "DO $$ BEGIN EXECUTE '{sql}'; EXCEPTION WHEN OTHERS THEN INSERT INTO caught VALUES (SQLSTATE); END $$"
    ))
    .unwrap();
    one("WITH gone AS (DELETE FROM caught RETURNING state) SELECT coalesce(max(state), 'no error') FROM gone")
}
