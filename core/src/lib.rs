//! The algorithms of `snowflake_ids`. They issue two kinds of ids: 64-bit ids that are ordered by time and unique
//! across servers, and dense ids of tags (named id ranges). A refill worker reserves dense ids in segments, ahead of
//! use.
//!
//! The core does not call Postgres, does no I/O and reads no clock. Time is an argument ([`Clock`]). Shared state is a
//! plain struct of atomics, which the shell (the pgrx crate) places in shared memory. An error has a [`Kind`], which
//! the shell maps to an SQLSTATE. Without Postgres, tests can run the core under proptest, threads and loom.
//!
//! | module | contents |
//! | --- | --- |
//! | [`ids`] | snowflake ids: bits, text, UUIDs |
//! | [`generator`] | the snowflake generator, and the ids that a session has taken in advance |
//! | [`server`] | the state of a server: state file, high-water marks, clock, issuer |
//! | [`registry`] | registries, which lease worker ids and supply tag ids to other servers |
//! | [`sequence`] | tags: segments, buffers, reservation; bound sequences |
//! | [`series`] | series: numbers counted separately for each key |
//! | [`worker`] | background refills of segments: their order, time slices, pauses |
//! | [`report`] | the status page, history, progress |
//! | [`clock`] | instants and durations |
//! | [`error`] | the trait of all errors |
//! | [`guard`] | protocol rules that a test can leave out |

#![forbid(unsafe_code)]

// `derive(Explain)` generates paths that begin with `snowflake_ids_core`. This alias makes those paths valid inside
// this crate.
extern crate self as snowflake_ids_core;

pub mod clock;
pub mod error;
pub mod generator;
pub mod guard;
pub mod ids;
mod named_enum;
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
