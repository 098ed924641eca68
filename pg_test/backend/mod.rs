//! Tests that run inside a server which preloads the library: datacenter 3, worker 7. Each runs in a transaction
//! that is rolled back.
//!
//! What SQL shows is tested by `pg_regress` (`pg_test/sql`); here is what takes Rust to see.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod segment;
mod shard;
mod snowflake;

use pgrx::prelude::*;

fn one<T: FromDatum + IntoDatum>(sql: &str) -> T {
    Spi::get_one(sql).unwrap().unwrap_or_else(|| panic!("{sql} gave NULL"))
}

/// The SQLSTATE of a statement that fails.
fn sqlstate(sql: &str) -> String {
    let sql = sql.replace('\'', "''");
    Spi::run("CREATE TEMP TABLE IF NOT EXISTS caught (state text)").unwrap();
    Spi::run(&format!(
        "DO $$ BEGIN EXECUTE '{sql}'; EXCEPTION WHEN OTHERS THEN INSERT INTO caught VALUES (SQLSTATE); END $$"
    ))
    .unwrap();
    one("WITH gone AS (DELETE FROM caught RETURNING state) SELECT coalesce(max(state), 'no error') FROM gone")
}
