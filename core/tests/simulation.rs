//! Servers, clocks, crashes, copies and a registry, with the protocol of the server around the core's own code.
//!
//! Deterministic: what happens follows from the seed. Every id that was ever issued is checked against all others,
//! and at the end of each run, when all faults are over, every server has to issue ids again.
//!
//! `SNOWFLAKE_IDS_SEEDS` says how many runs there are, `SNOWFLAKE_IDS_FULL=1` makes it 10,000, `SNOWFLAKE_IDS_SEED` runs
//! one seed and shows what happened.

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
