//! The generator of snowflake ids: sessions take positions from a hybrid logical clock in shared memory.
//!
//! | module | holds |
//! | --- | --- |
//! | [`snowflake`] | the generator: a hybrid logical clock in one cache line |
//! | [`rules`] | what the generator may do |
//! | [`drift`] | ids too far ahead of the clock, and every other refusal |
//! | [`session`] | a session's calls for ids |
//! | [`block`] | what a session holds of the ids it took |
//! | [`named`] | what a named generator's row says |

pub mod block;
pub mod drift;
pub mod named;
pub mod rules;
pub mod session;
pub mod snowflake;
