//! Throwaway Postgres servers for tests and benchmarks that need one of their own: to preload the
//! extension or not, to crash, to promote, to step the clock.
//!
//! | module | holds |
//! | --- | --- |
//! | [`builder`] | what a server is started with |
//! | [`server`] | a running server: sessions, stop, start, removal |
//! | `clock`, `crash`, `pause`, `standby`, `copies` | what else a server can do: step its clock, die, hang, be promoted, be copied |
//! | [`state_file`] | the file that reserves ids, and what can happen to it |
//! | [`restores`] | parts of its data directory from an earlier moment |
//! | [`load`] | sessions that take ids without a pause and note each one down |
//! | [`sql`] | short forms for queries and for the errors they should give |
//! | [`ids`] | what every list of ids must be |
//! | [`snowflakes`], [`segments`] | what tests of either kind of ids ask again and again |
//! | [`registry`] | the table that leases worker ids |
//! | [`cluster`] | a registry, and the servers whose ids come from it |
//! | [`latency`] | how long calls take |
//! | [`sessions`] | many sessions at once |
//! | [`owner`], [`programs`], [`port`] | the account, the programs and the port of a server |
//! | [`bouncer`] | a pooler between clients and a server |
//! | [`random`] | numbers from a seed |
//! | [`wait`] | waiting with an end |

pub mod bouncer;
pub mod builder;
mod clock;
pub mod cluster;
mod copies;
mod crash;
pub mod ids;
pub mod latency;
pub mod load;
pub mod owner;
mod pause;
pub mod port;
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
pub mod wait;

pub use builder::Builder;
pub use pause::Paused;
pub use server::{Server, Shutdown};

/// Whether to test for as long as it takes to trust it (`SNOWFLAKE_IDS_FULL=1`), or for a moment.
pub fn full() -> bool {
    std::env::var("SNOWFLAKE_IDS_FULL").is_ok_and(|full| full == "1")
}
