//! Background work: the refill of tags, the order of databases, and time slices.

pub mod locked;
pub mod log_limit;
pub mod refill;
pub mod time_slices;
