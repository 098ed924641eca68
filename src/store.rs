//! Durable state: the rows of the extension's tables, and two files in the data directory. Tables of "tags" hold segment
//! tags, the names of ranges of ids.

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
