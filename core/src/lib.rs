//! The algorithms of `snowflake_ids`: 64-bit ids that are unique across servers and ordered by time, and dense
//! ones per tag, out of segments reserved ahead.
//!
//! Nothing here knows Postgres, does I/O or reads a clock. Time is an argument ([`Clock`]). Shared state is
//! a plain struct of atomics that the shell places into shared memory. Errors say what they are ([`Kind`])
//! without knowing an SQLSTATE. So all of it runs under proptest, threads and loom.
//!
//! | module | holds |
//! | --- | --- |
//! | [`ids`] | snowflake ids themselves: bits, text, UUIDs |
//! | [`generator`] | the generator, and what a session holds of its ids |
//! | [`server`] | what a server keeps of itself: state, marks, clock, issuer |
//! | [`registry`] | tables that many servers share: protocol, client, answers, leases |
//! | [`sequence`] | tags: segments, buffers, reservation; bound sequences |
//! | [`series`] | numbers for each key |
//! | [`worker`] | refills in the background: rounds, turns, pauses |
//! | [`report`] | the status page, history, progress |
//! | [`clock`] | instants |
//! | [`error`] | what all errors can say |
//! | [`guard`] | rules that a test may leave out |

#![forbid(unsafe_code)]

// `derive(Explain)` names this crate by its name, here too.
extern crate self as snowflake_ids_core;

pub mod clock;
pub mod error;
pub mod generator;
pub mod guard;
pub mod ids;
pub mod registry;
pub mod report;
pub mod sequence;
pub mod series;
pub mod server;
mod sync;
pub mod worker;

pub use clock::{Clock, UnixMicros};
pub use error::{Explain, Kind};
pub use generator::block::Block;
pub use generator::drift::{Cause, Drift, GeneratorError};
pub use generator::rules::{ClockRollback, Rules, SequenceStart};
pub use generator::snowflake::{Generator, Snapshot, StepBack, TakenPositions};
pub use ids::encode::{Format, PrefixedFormat, TextError};
pub use ids::id::{Decoded, IdError, Node};
pub use ids::layout::{Field, Layout, LayoutError, Order, PRESETS, TickError, Widths};
pub use ids::position::{Issued, NodeBits, Position, PositionRange, Tick};
pub use ids::shard::{Shard, ShardError};
pub use ids::uuid::{Filler, IdOrUuid, Uuid, UuidError};
