//! Unsafe code: wrappers around the functions and variables of the server, and around libpq.
//!
//! Each unsafe block states why it is sound. Apart from `entry`, all code outside this folder is safe.
#![allow(unsafe_code, reason = "the one place for it")]

pub mod access;
pub mod backtrace;
pub mod catalog;
pub mod clock;
pub mod cluster;
pub mod copying;
pub mod database;
pub mod encoding;
pub mod error;
pub mod extension;
pub mod file_system;
pub mod foreign;
pub mod guc;
pub mod identity;
pub mod inline;
pub mod libpq;
pub mod lock;
pub mod per_process;
pub mod process;
pub mod process_latch;
pub mod random;
pub mod read_lock;
pub mod redirect;
pub mod relation;
pub mod relcache;
pub mod replication;
pub mod report;
pub mod role;
pub mod rows;
pub mod secret;
pub mod sequence;
pub mod server;
pub mod shared_label;
pub mod shmem;
pub mod snapshot;
pub mod statement;
pub mod tag_text;
pub mod text;
pub mod time;
pub mod transaction;
pub mod tuple;
pub mod utility;
pub mod uuid;
pub mod wait;
