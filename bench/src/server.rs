//! The throwaway servers that are measured.

use crate::session::{DATABASE, Session};
use anyhow::Result;
use snowflake_ids_server_tests::{Builder, Server};
use std::thread;

/// Settings of all measurements. Commits are durable, as users have them. Nothing starts by itself in the middle of a slice
/// (checkpoints, autovacuum), and nothing changes a plan (parallel workers, JIT).
const SETTINGS: [(&str, &str); 11] = [
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("shared_buffers", "1GB"),
    ("work_mem", "64MB"),
    ("max_wal_size", "16GB"),
    ("checkpoint_timeout", "1h"),
    ("autovacuum", "off"),
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("max_connections", "100"),
    ("snowflake_ids.max_drift", "1h"),
];

/// Sources of keys for [`crate::key`] and the sections, apart from the snowflake ids.
const SEQUENCES: &str = "create sequence one_by_one;
    create sequence cache_32 cache 32;
    create sequence cache_1000 cache 1000;
    select snowflake_ids.segment_create('by_segment')";

/// A server with the settings of all measurements, and others.
pub fn builder(extra: &[(&str, &str)]) -> Builder {
    SETTINGS.iter().chain(extra).fold(Server::full_size().quiet(), |b, (name, value)| b.set(name, value))
}

/// Starts a server with the benchmark's database, its sequences and its tag.
pub fn start(extra: &[(&str, &str)]) -> Result<Server> {
    let server = builder(extra).start()?;
    server.create_database(DATABASE)?;
    Session::open(&server)?.execute(SEQUENCES)?;
    Ok(server)
}

/// Cores of this machine.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The conditions of a run, in general terms: day, server version, cores.
pub fn describe() -> Result<String> {
    let server = start(&[])?;
    let mut session = Session::open(&server)?;
    let day: String = session.value("select to_char(now() at time zone 'UTC', 'YYYY-MM-DD')")?;
    let version: String = session.value("select split_part(current_setting('server_version'), ' ', 1)")?;
    let extension: String =
        session.value("select extversion from pg_extension where extname = 'snowflake_ids'")?;
    let layout: String = session.value("select current_setting('snowflake_ids.layout')")?;
    Ok(format!(
        "{day}, snowflake_ids {extension} (layout {layout}), PostgreSQL {version}, {cores} cores shared by \
         server and clients, fsync and synchronous_commit on unless stated otherwise",
        cores = cores()
    ))
}
