//! A server's state on disk, and the node under which the server issues.
//!
//! | module | contents |
//! | --- | --- |
//! | [`state`] | the stored state: identity, node, high-water marks |
//! | [`issuer`] | the choice of the node that issues ids, and the limit of its positions |
//! | [`clock_reference`] | the check of the wall clock |
//! | [`form`] | the head of a file: its format version and release |
//! | [`saved_ranges`] | the text of the saved-range file |
//! | [`saved_range_file`] | the file of unused tag ids: written at a stop, read after a start |

pub mod clock_reference;
pub mod form;
pub mod issuer;
pub mod saved_range_file;
pub mod saved_ranges;
pub mod state;
