//! A server's state on disk, and the node that it issues as.
//!
//! | module | holds |
//! | --- | --- |
//! | [`state`] | what a server keeps of itself: high-water marks, which node it issues as |
//! | [`issuer`] | which node issues on this server, and up to where |
//! | [`anchor`] | whether the wall clock can be followed |
//! | [`form`] | which release wrote a file, and in which form |
//! | [`carry_over`] | ids that are left when the server stops, as text |
//! | [`carry_over_file`] | what a server does with the file that says so |

pub mod anchor;
pub mod carry_over;
pub mod carry_over_file;
pub mod form;
pub mod issuer;
pub mod state;
