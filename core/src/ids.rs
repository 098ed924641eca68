//! Snowflake ids themselves: their bits, their text, UUIDs made of them.
//!
//! | module | holds |
//! | --- | --- |
//! | [`layout`] | which bits say when, who and which; its text form and the presets |
//! | [`id`] | fields to ids and back, the bounds of an instant |
//! | [`position`] | ticks, positions, the bits of a node |
//! | [`encode`] | ids as text |
//! | [`uuid`] | UUIDs that are made as ids are |
//! | [`shard`] | which ids are a shard's |

pub mod encode;
pub mod id;
pub mod layout;
pub mod position;
pub mod shard;
pub mod uuid;
