//! Throwaway Postgres servers for tests and benchmarks that need one of their own: to preload the
//! extension or not, to crash, to promote, to step the clock. A module uses those above it in this list, and none below.
//!
//! | module | holds |
//! | --- | --- |
//! | [`owner`], [`programs`], [`port`] | the account, the programs and the port of a server |
//! | [`installation`] | a Postgres of a test's own, with other versions of the extension |
//! | [`wait`], [`random`], [`sql`], [`ids`] | waiting with an end; numbers from a seed; short forms for statements and for the errors that they should give; properties of every list of ids |
//! | [`functions`] | the functions of the extension that take a text, as the catalog has them |
//! | `folder`, [`processes`], `clock`, `initdb` | a server's folder, its processes, its false clock, its new cluster |
//! | [`server`] | a running server: sessions, stop, start, kill, removal |
//! | [`builder`] | the settings and the environment of a server |
//! | [`mod@cases`] | cases that share a server |
//! | `crash`, `pause`, `standby`, `copies`, `dumps`, `pg_upgrade` | a server whose process dies, that hangs, is promoted, copied, dumped, or becomes one of another Postgres |
//! | [`state_file`] | the file that reserves ids, and its faults |
//! | [`restores`] | parts of its data directory from an earlier moment |
//! | [`sessions`] | many sessions at once, and threads that end |
//! | [`load`] | sessions that take ids without a pause and note each one down |
//! | [`snowflakes`], [`segments`] | helpers for tests of either kind of ids |
//! | [`registry`] | the table that leases worker ids |
//! | [`cluster`] | a registry, and the servers whose ids come from it |
//! | [`citus`] | a stand-in for Citus, and a cluster of it |
//! | [`catalog`] | the catalog's properties of the extension, to be compared |
//! | [`upgrades`] | a database with all that ids are taken from, to be upgraded |
//! | [`bouncer`] | a pooler between clients and a server |

pub mod bouncer;
pub mod builder;
pub mod cases;
pub mod catalog;
pub mod citus;
mod clock;
pub mod cluster;
mod copies;
mod crash;
mod dumps;
mod folder;
pub mod functions;
pub mod ids;
mod initdb;
pub mod installation;
pub mod load;
pub mod owner;
mod pause;
mod pg_upgrade;
pub mod port;
pub mod processes;
pub mod programs;
pub mod random;
pub mod registry;
pub mod restores;
pub mod segments;
pub mod server;
pub mod sessions;
pub mod snowflakes;
pub mod sql;
mod standby;
pub mod state_file;
pub mod upgrades;
pub mod wait;

pub use builder::Builder;
pub use pause::Paused;
pub use server::{Server, Shutdown};

/// A number from the environment.
pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// True if tests are to run for as long as it takes to trust them (`SNOWFLAKE_IDS_FULL=1`), not for a moment.
pub fn full() -> bool {
    std::env::var("SNOWFLAKE_IDS_FULL").is_ok_and(|full| full == "1")
}
