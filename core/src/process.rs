//! Background work: the order of tags and databases, time slices, and pauses after errors.

pub mod backoff;
pub mod locked;
pub mod log_limit;
pub mod refill;
pub mod time_slices;
