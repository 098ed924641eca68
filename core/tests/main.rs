//! All tests of the core in one program, which is built and linked once.

#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod backoff;
mod bound;
mod chosen;
mod citus;
mod clock;
mod clock_sweep;
mod column;
#[cfg(feature = "guards")]
mod counters;
mod counts;
mod definition;
mod directory;
mod encode;
mod even_shards;
mod evictions;
mod excerpt;
mod failover;
mod fuzz;
mod fuzz_wire;
mod generator;
#[cfg(feature = "guards")]
mod guards;
mod here;
mod high_water_marks;
mod history;
mod hosts;
mod layout_change;
mod layouts;
mod lease;
mod lease_launch;
mod log_limit;
mod machine;
#[cfg_attr(not(feature = "guards"), allow(dead_code, reason = "most tests that use it need the guards"))]
mod memory;
mod named;
mod odds;
mod page;
mod privilege;
mod progress;
mod props;
mod rate;
mod refill_locks;
#[cfg(feature = "guards")]
mod registries;
mod request_bitmap;
mod reservation;
#[cfg(feature = "guards")]
mod rules;
#[cfg(feature = "guards")]
mod safe_position;
#[cfg(feature = "guards")]
mod saved_range_simulation;
mod saved_ranges;
mod segment;
mod serial;
mod series;
mod series_column;
mod series_monotonic;
mod setup;
mod shard;
#[cfg(feature = "guards")]
mod simulation;
mod standing;
mod state;
mod step;
mod threads;
mod time_slices;
mod uuid;
mod wire;
