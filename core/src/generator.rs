//! The generator of snowflake ids: sessions take positions from a hybrid logical clock in shared memory.

pub mod block;
pub mod drift;
pub mod named;
pub mod rules;
pub mod safe_position;
pub mod snowflake;
