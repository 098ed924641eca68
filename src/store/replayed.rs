//! The last time that recovery replayed, which tells a promoted server how far ids of the previous primary may have
//! come. If the server's clock is behind this time, its commits hide the time from its own standbys, so the time is
//! stored with the commits.

use crate::pg::clock::SystemClock;
use crate::pg::{cluster, server, shared_label, transaction};
use snowflake_ids_core::server::state::time_to_replicate;
use snowflake_ids_core::{Clock, UnixMicros};
use std::ffi::CStr;
use std::sync::OnceLock;

const PROVIDER: &CStr = c"snowflake_ids";

/// Returns the commit time of the last transaction that was replayed since server start, or a later time that a
/// previous primary stored. Outside a transaction, only a process that has called this function within a transaction
/// knows the stored time.
pub fn last() -> Option<UnixMicros> {
    static STORED: OnceLock<Option<UnixMicros>> = OnceLock::new();
    let is_readable = transaction::is_open() && !server::in_recovery();
    let stored = if is_readable {
        *STORED.get_or_init(|| shared_label::read(PROVIDER).map(UnixMicros))
    } else {
        STORED.get().copied().flatten()
    };
    cluster::last_replayed().max(stored)
}

/// Returns true if the clock is behind the last time that recovery replayed.
pub fn is_ahead() -> bool {
    time_to_store().is_some()
}

/// Stores the last time that recovery replayed, if the clock is behind it. Call before the transaction commits.
pub fn replicate() {
    if let Some(UnixMicros(time)) = time_to_store() {
        transaction::with_snapshot(|| shared_label::raise(PROVIDER, time));
    }
}

fn time_to_store() -> Option<UnixMicros> {
    time_to_replicate(cluster::last_replayed(), SystemClock.now())
}
