//! What is unsafe: an entry written by hand, the clock, text arguments, shared memory, raw settings, waiting, and the server's own variables.
//!
//! Everything outside this folder is safe code; every block in it says why it may do what it does.
#![allow(unsafe_code, reason = "the one place for it")]

pub mod call;
pub mod clock;
pub mod guc;
pub mod server;
pub mod shmem;
pub mod text;
pub mod wait;
