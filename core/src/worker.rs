//! Work in the background: which tags are served next, and for how long.

pub mod backoff;
pub mod locked;
pub mod log_limit;
pub mod refill;
pub mod time_slices;
