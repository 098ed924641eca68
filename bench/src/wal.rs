//! The data that a slice of work leaves on the server: WAL, its flushes, transaction ids.

use crate::session::Session;
use anyhow::Result;
use std::ops::Sub;

/// The number of bytes of WAL that the server has written since initdb.
pub fn bytes(session: &mut Session) -> Result<f64> {
    session.value("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8")
}

/// The number of transaction ids that the server has used since initdb. The query uses none.
pub fn transaction_ids(session: &mut Session) -> Result<f64> {
    session.value("select pg_snapshot_xmax(pg_current_snapshot())::text::float8")
}

/// Flushes of the WAL to disk.
#[derive(Clone, Copy, Debug)]
pub struct Flushes {
    /// The number of flushes.
    pub count: f64,
    /// The time of all flushes, in seconds.
    pub time: f64,
}

/// Settings for [`flushes`]. With them, the server measures the time of flushes, and logs no standby snapshots, which it would
/// otherwise log by itself every 15 s. Every counted flush was therefore caused by a call.
pub const ONLY_OURS: [(&str, &str); 3] =
    [("wal_level", "minimal"), ("max_wal_senders", "0"), ("track_wal_io_timing", "on")];

/// The flushes that the server has counted since initdb.
pub fn flushes(session: &mut Session) -> Result<Flushes> {
    let version: i32 = session.value("select current_setting('server_version_num')::int")?;
    let source = if version < 180_000 {
        "wal_sync::float8, wal_sync_time from pg_stat_wal"
    } else {
        "sum(fsyncs)::float8, sum(fsync_time) from pg_stat_io where object = 'wal'"
    };
    let [count, milliseconds] = session.values(&format!("select {source}"))?;
    Ok(Flushes { count, time: milliseconds / 1e3 })
}

impl Sub for Flushes {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { count: self.count - before.count, time: self.time - before.time }
    }
}
