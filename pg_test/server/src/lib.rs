//! Throwaway Postgres servers for tests and benchmarks that need one of their own: to preload the
//! extension or not, to crash, to promote, to step the clock.
//!
//! | module | holds |
//! | --- | --- |
//! | [`builder`] | what a server is started with |
//! | [`server`] | a running server: sessions, stop, start, removal |
//! | `clock`, `crash`, `standby` | what else a server can do: step its clock, die, be copied |
//! | [`sql`] | short forms for queries and for the errors they should give |
//! | [`ids`] | what every list of ids must be |
//! | [`segments`] | what tests of segments ask again and again |
//! | [`sessions`] | many sessions at once |
//! | [`owner`], [`programs`], [`port`] | the account, the programs and the port of a server |
//! | [`wait`] | waiting with an end |

pub mod builder;
mod clock;
mod crash;
pub mod ids;
pub mod owner;
pub mod port;
pub mod programs;
pub mod segments;
pub mod server;
pub mod sessions;
pub mod sql;
mod standby;
pub mod wait;

pub use builder::Builder;
pub use server::{Server, Shutdown};

/// Whether to test for as long as it takes to trust it (`SNOWFLAKE_IDS_FULL=1`), or for a moment.
pub fn full() -> bool {
    std::env::var("SNOWFLAKE_IDS_FULL").is_ok_and(|full| full == "1")
}
