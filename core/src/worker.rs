//! Work in the background: which tags are served next, and for how long.
//!
//! | module | holds |
//! | --- | --- |
//! | [`refill`] | the worker that reserves ids ahead of demand |
//! | [`turns`] | which of those that serve makes room |
//! | [`backoff`] | pauses that grow with each failure, and what is tried again |
//! | [`locked`] | a table of the extension that another session has locked |
//! | [`log_limit`] | what the log was told already |

pub mod backoff;
pub mod locked;
pub mod log_limit;
pub mod refill;
pub mod turns;
