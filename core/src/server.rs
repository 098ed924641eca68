//! A server's state on disk, and the node as which the server issues.
//!
//! | module | holds |
//! | --- | --- |
//! | [`state`] | the stored state: identity, node, high-water marks |
//! | [`issuer`] | the decision as which node the server issues, and up to which position |
//! | [`clock_reference`] | the check of the wall clock |
//! | [`form`] | the head of a file: its form and release |
//! | [`saved_ranges`] | the text of the saved-range file |
//! | [`saved_range_file`] | the saved-range file at a stop and after a start |

pub mod clock_reference;
pub mod form;
pub mod issuer;
pub mod saved_range_file;
pub mod saved_ranges;
pub mod state;
