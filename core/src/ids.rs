//! Snowflake ids: their bits, their text form, and UUIDs with the same fields.

pub mod encode;
pub mod id;
pub mod layout;
pub mod position;
pub(crate) mod scatter;
pub mod shard;
pub mod uuid;
