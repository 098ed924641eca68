//! A server's state on disk, and the node under which the server issues ids.

pub mod clock_reference;
pub mod form;
pub mod issuer;
pub mod lease;
pub mod saved_range_file;
pub mod saved_ranges;
pub mod state;
