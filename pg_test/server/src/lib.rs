//! Throwaway Postgres servers for tests and benchmarks, with or without the extension preloaded. Tests crash and promote such
//! servers, and step their clocks. Each module in this list uses only modules above it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`owner`], [`programs`], [`port`] | the account, the programs and the port of a server |
//! | [`installation`] | a Postgres of a test's own, with other versions of the extension |
//! | [`wait`], [`random`], [`sql`], [`ids`] | waits with a limit; numbers from a seed; statements and expected errors; checks of id lists |
//! | [`functions`] | the extension's functions that take text, from the catalog |
//! | [`facts`] | the host name, machine id and container that a server sees |
//! | `folder`, [`processes`], `preload`, `clock`, `initdb` | a server's folder, processes, preloaded libraries, shifted clock and new cluster |
//! | [`server`] | a running server: sessions, stop, start, kill, removal |
//! | [`containers`] | servers in containers of one image, with host names of their own |
//! | [`builder`] | the settings and the environment of a server |
//! | [`mod@cases`] | cases that share a server |
//! | `crash`, `pause`, `standby`, `copies`, `dumps`, `pg_upgrade` | a server that crashes, hangs, is promoted, copied, dumped or upgraded |
//! | [`state_file`] | the state file and its faults |
//! | [`restores`] | parts of a data directory from an earlier moment |
//! | [`sessions`] | concurrent sessions, and threads whose panics fail the test |
//! | [`load`] | sessions that take ids without a pause, and record each id |
//! | [`snowflakes`], [`segments`] | helpers for tests of either kind of ids |
//! | [`registry`] | the table that leases worker ids |
//! | [`cluster`] | a registry, and the servers whose ids come from it |
//! | [`citus`] | a stand-in for Citus, and a cluster of servers with the stand-in |
//! | [`catalog`] | the catalog's properties of the extension, for comparisons |
//! | [`upgrades`] | a database with all sources of ids, for upgrades |
//! | [`next`] | a made-up next version of the extension |
//! | [`bouncer`] | a pooler between clients and a server |
//! | [`prelude`] | the names that most tests use |

pub mod bouncer;
pub mod builder;
pub mod cases;
pub mod catalog;
pub mod citus;
mod clock;
pub mod cluster;
pub mod containers;
mod copies;
mod crash;
mod dumps;
pub mod facts;
mod folder;
pub mod functions;
pub mod ids;
mod initdb;
pub mod installation;
pub mod load;
pub mod next;
pub mod owner;
mod pause;
mod pg_upgrade;
pub mod port;
mod preload;
pub mod prelude;
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

/// Whether tests should run long (`SNOWFLAKE_IDS_FULL=1`) instead of for a moment.
pub fn full() -> bool {
    std::env::var("SNOWFLAKE_IDS_FULL").is_ok_and(|full| full == "1")
}
