//! Simulated servers that run the core's own code, with clocks that step, crashes, copies and a registry.
//!
//! The run is deterministic: it follows from the seed. Every issued id is compared with all others. At the end of each run, after
//! all faults, every server has to issue ids again.
//!
//! `SNOWFLAKE_IDS_SEEDS` sets the number of runs, `SNOWFLAKE_IDS_FULL=1` sets it to 10,000, and `SNOWFLAKE_IDS_SEED` runs one
//! seed and shows its events.

pub mod chance;
mod databases;
mod disk;
mod event;
mod faults;
mod host;
mod lease_worker;
mod ledger;
mod membership;
mod operator;
pub mod process;
mod registry;
mod removal;
mod run;
pub mod seeds;
mod server;
mod sessions;
mod sim;
mod stories;
mod world;

use run::{Run, Total};
use seeds::setting;

#[test]
fn no_id_is_issued_twice_and_service_resumes() {
    if let Some(seed) = setting("SNOWFLAKE_IDS_SEED") {
        let run = Run::told(seed);
        return assert!(run.is_good(), "seed {seed}: {}", run.verdict());
    }
    let full = setting("SNOWFLAKE_IDS_FULL") == Some(1);
    let seeds = setting("SNOWFLAKE_IDS_SEEDS").unwrap_or(if full { 10_000 } else { 500 });
    let total = Total::of(0..seeds);
    println!("{total}");
    if let Some(seed) = total.bad.first() {
        println!("{} of {seeds} runs are bad; their seeds are {:?}", total.bad.len(), total.bad);
        panic!("{}", Run::told(*seed).verdict());
    }
}
