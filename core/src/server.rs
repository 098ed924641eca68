//! A server's state on disk, and the node that it issues as.
//!
//! | module | holds |
//! | --- | --- |
//! | [`state`] | what a server keeps of itself: high-water marks, which node it issues as |
//! | [`issuer`] | which node issues on this server, and up to where |
//! | [`clock_reference`] | whether the wall clock can be followed |
//! | [`form`] | which release wrote a file, and in which form |
//! | [`saved_ranges`] | ids that are left when the server stops, as text |
//! | [`saved_range_file`] | what a server does with the file that says so |

pub mod clock_reference;
pub mod form;
pub mod issuer;
pub mod saved_range_file;
pub mod saved_ranges;
pub mod state;
