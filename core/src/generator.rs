//! The generator of snowflake ids: sessions take positions from a hybrid logical clock in shared memory.
//!
//! | module | holds |
//! | --- | --- |
//! | [`snowflake`] | the generator: a hybrid logical clock in one cache line |
//! | [`rules`] | limits that an administrator sets |
//! | [`drift`] | errors of a generator |
//! | [`session`] | a session's calls for ids |
//! | [`block`] | positions that a session has taken and not handed out |
//! | [`safe_position`] | a position below which readers miss no row |
//! | [`named`] | named generators: the properties in a generator's row |

pub mod block;
pub mod drift;
pub mod named;
pub mod rules;
pub mod safe_position;
pub mod session;
pub mod snowflake;
