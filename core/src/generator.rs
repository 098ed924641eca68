//! The generator of snowflake ids: a session takes from a clock in one cache line.
//!
//! | module | holds |
//! | --- | --- |
//! | [`snowflake`] | the generator: a hybrid logical clock in one cache line |
//! | [`rules`] | what the generator may do |
//! | [`drift`] | ids too far ahead of the clock, and every other refusal |
//! | [`session`] | a session's calls for ids |
//! | [`block`] | what a session holds of the ids it took |
//! | [`safe_position`] | a position below which readers miss no row |
//! | [`named`] | what a named generator's row says |

pub mod block;
pub mod drift;
pub mod named;
pub mod rules;
pub mod safe_position;
pub mod session;
pub mod snowflake;
