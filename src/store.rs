//! All that is durable: rows of the tables, through SQL, and two files of the data directory; and the views that tell of
//! both.

pub mod citus;
pub mod durable;
pub mod generator;
pub mod registry;
pub mod section;
pub mod segment;
pub mod sequence;
pub mod series;
pub mod shard;
pub mod tables;
pub mod worker;
