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
