//! Snowflake ids: their bits, their text form, and UUIDs with the same fields.
//!
//! | module | contents |
//! | --- | --- |
//! | [`layout`] | the fields of an id and their widths; text form and presets |
//! | [`id`] | conversion between ids and fields; the lowest and highest id of an instant |
//! | [`position`] | ticks, positions, the bits of a node |
//! | [`encode`] | ids as text |
//! | [`uuid`] | UUIDs of version 7 with the fields of an id |
//! | [`shard`] | the ids of a shard |

pub mod encode;
pub mod id;
pub mod layout;
pub mod position;
pub mod shard;
pub mod uuid;
