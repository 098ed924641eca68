//! Durable state: the rows of the extension's tables, and files in the data directory. A "tag" in these modules is a segment
//! tag, the name of a range of ids.

pub mod bound;
pub mod citus;
pub mod durable;
pub mod fork;
pub mod generator;
pub mod registry;
pub mod replayed;
pub mod series;
pub mod setup;
pub mod shard;
pub mod tables;
pub mod tag;
pub mod worker_id;
