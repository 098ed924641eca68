//! The last time that recovery replayed, which tells a promoted server how far ids of the previous primary may have
//! come. Only a fixed worker id is continued by another server. If a server's clock is behind this time, its commits hide the
//! time from its own standbys, so the time is stored with the commits.

use crate::pg::clock::SystemClock;
use crate::pg::transaction::{self, Hooks};
use crate::pg::{cluster, server, shared_label};
use crate::shared::generator::{SHARED, Shared};
use snowflake_ids_core::server::state::{Identity, time_to_replicate};
use snowflake_ids_core::{Clock, UnixMicros};
use std::ffi::CStr;
use std::sync::OnceLock;

const PROVIDER: &CStr = c"snowflake_ids";

static HOOKS: Hooks = Hooks { before_commit: replicate, ..Hooks::none() };

/// Registers the hook at server start, so that every process has it.
pub fn watch() {
    transaction::watch(&HOOKS);
}

/// Returns true if another server may continue with this server's worker id after a promotion.
fn may_be_continued(shared: &Shared) -> bool {
    matches!(shared.identity, Identity::Fixed { .. })
}

/// Returns the commit time of the last transaction that was replayed since server start, or, with a fixed worker id, a later
/// time that a previous primary stored. Outside a transaction, only a process that has called this function within a
/// transaction knows the stored time.
pub fn last(shared: &Shared) -> Option<UnixMicros> {
    static STORED: OnceLock<Option<UnixMicros>> = OnceLock::new();
    let replayed = cluster::last_replayed();
    if !may_be_continued(shared) {
        return replayed;
    }
    let is_readable = transaction::is_open() && !server::in_recovery();
    let stored = if is_readable {
        *STORED.get_or_init(|| shared_label::read(PROVIDER).map(UnixMicros))
    } else {
        STORED.get().copied().flatten()
    };
    replayed.max(stored)
}

/// Called before PREPARE TRANSACTION. A standby that is promoted with a fixed worker id begins above the last time that it
/// has replayed. The transaction may commit after the promotion, so its ids must be below this time too, also those of
/// triggers that wait for its end.
pub fn preparing() {
    if SHARED.get().is_some_and(may_be_continued) && transaction::is_block() {
        transaction::run_deferred_triggers();
        // A time behind the one that this server replayed would hide that one from standbys.
        if tells_standbys() && time_to_store().is_none() {
            transaction::log_time();
        }
    }
}

/// Stores, with the commit, the last time that recovery replayed, if the clock is behind it.
fn replicate() {
    if tells_standbys()
        && let Some(UnixMicros(time)) = time_to_store()
    {
        transaction::with_snapshot(|| shared_label::raise(PROVIDER, time));
    }
}

/// Returns true if this server may be continued, and this transaction may have stored ids. They may be ids that other
/// transactions took.
fn tells_standbys() -> bool {
    SHARED.get().is_some_and(may_be_continued) && transaction::xid().is_some()
}

/// Returns the last time that recovery replayed, if the clock is behind it. Call only in a transaction that has an id. It runs
/// after recovery, so the time does not change any more, and commits need not read it from shared memory.
fn time_to_store() -> Option<UnixMicros> {
    static REPLAYED: OnceLock<Option<UnixMicros>> = OnceLock::new();
    let replayed = (*REPLAYED.get_or_init(cluster::last_replayed))?;
    time_to_replicate(Some(replayed), SystemClock.now())
}
