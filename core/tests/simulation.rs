//! Servers, clocks, crashes, copies and a registry, with the protocol of the server around the core's own code.
//!
//! Deterministic: what happens follows from the seed. Every id that was ever issued is checked against all others,
//! and at the end of each run, when all faults are over, every server has to issue ids again.
//!
//! `SNOWFLAKE_IDS_SEEDS` says how many runs there are, `SNOWFLAKE_IDS_FULL=1` makes it 10,000, `SNOWFLAKE_IDS_SEED` runs
//! one seed and shows what happened.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "simulation/chance.rs"]
mod chance;
#[path = "simulation/databases.rs"]
mod databases;
#[path = "simulation/disk.rs"]
mod disk;
#[path = "simulation/event.rs"]
mod event;
#[path = "simulation/faults.rs"]
mod faults;
#[path = "simulation/host.rs"]
mod host;
#[path = "simulation/lease_worker.rs"]
mod lease_worker;
#[path = "simulation/ledger.rs"]
mod ledger;
#[path = "simulation/membership.rs"]
mod membership;
#[path = "simulation/operator.rs"]
mod operator;
#[path = "simulation/process.rs"]
mod process;
#[path = "simulation/registry.rs"]
mod registry;
#[path = "simulation/removal.rs"]
mod removal;
#[path = "simulation/run.rs"]
mod run;
#[path = "simulation/seeds.rs"]
mod seeds;
#[path = "simulation/server.rs"]
mod server;
#[path = "simulation/sessions.rs"]
mod sessions;
#[path = "simulation/sim.rs"]
mod sim;
#[path = "simulation/stories.rs"]
mod stories;
#[path = "simulation/world.rs"]
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
