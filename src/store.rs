//! Durable state: the rows of the extension's tables, and files in the data directory. A "tag" in these modules is a segment
//! tag, the name of a range of ids.

pub mod citus;
pub mod durable;
pub mod generator;
pub mod registry;
pub mod segment;
pub mod sequence;
pub mod series;
pub mod shard;
pub mod tables;
pub mod worker;
