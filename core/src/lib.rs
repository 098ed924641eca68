//! The algorithms of `snowflake_ids`, which issue two kinds of ids: 64-bit ids that are ordered by time and unique
//! across servers, and dense ids of tags (named id ranges). A refill worker reserves dense ids in segments, ahead of
//! use.
//!
//! docs/architecture.md describes the rules and the modules.

#![forbid(unsafe_code)]

// `derive(Explain)` generates paths that begin with `snowflake_ids_core`. This alias makes those paths valid inside
// this crate.
extern crate self as snowflake_ids_core;

pub mod backoff;
pub mod bound;
pub mod clock;
pub mod column;
pub mod error;
pub mod generator;
pub mod guard;
pub mod ids;
mod named_enum;
pub mod process;
pub mod registry;
pub mod report;
pub mod series;
pub mod server;
pub mod session;
mod sync;
pub mod tag;

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
pub use sync::CacheLine;
