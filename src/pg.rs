//! All unsafe code: entries written by hand, shared memory, locks, workers, transactions, SPI's plans, raw settings and
//! arguments, rights, relations of others, clocks, libpq, and the server's own variables.
//!
//! Everything outside this folder is safe code; every block in it says why it may do what it does.
#![allow(unsafe_code, reason = "the one place for it")]

pub mod access;
pub mod backtrace;
pub mod catalog;
pub mod clock;
pub mod cluster;
pub mod database;
pub mod encoding;
pub mod extension;
pub mod guc;
pub mod inline;
pub mod libpq;
pub mod lock;
pub mod process;
pub mod random;
pub mod read_lock;
pub mod redirect;
pub mod relation;
pub mod relcache;
pub mod replication;
pub mod report;
pub mod role;
pub mod rows;
pub mod sequence;
pub mod server;
pub mod shmem;
pub mod snapshot;
pub mod statement;
pub mod tag;
pub mod text;
pub mod time;
pub mod transaction;
pub mod tuple;
pub mod utility;
pub mod uuid;
pub mod wait;
pub mod worker;
pub mod worker_latch;
