//! Global variables of the server.

use super::{role, transaction};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns whether the server is loading `shared_preload_libraries`.
pub fn preloading() -> bool {
    // SAFETY: a plain variable, which only the postmaster writes at start.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// Returns whether `pg_upgrade` has started this server. Writes and connections would disturb `pg_upgrade`.
pub fn upgrading() -> bool {
    // SAFETY: a plain variable, set before the server loads libraries.
    unsafe { pg_sys::IsBinaryUpgrade }
}

static RECOVERY_OVER: AtomicBool = AtomicBool::new(false);

/// Returns whether recovery is known to have ended. Recovery cannot begin again.
#[inline]
pub fn out_of_recovery() -> bool {
    RECOVERY_OVER.load(Ordering::Relaxed)
}

/// Returns whether the server is in recovery.
pub fn in_recovery() -> bool {
    if !out_of_recovery() {
        // SAFETY: callable in every process that is attached to shared memory.
        let over = unsafe { !pg_sys::RecoveryInProgress() };
        RECOVERY_OVER.store(over, Ordering::Relaxed);
    }
    !out_of_recovery()
}

/// Raises the server's error for a command that cannot run during recovery. Without this check, a write during recovery
/// would fail with an internal error.
pub fn refuse_during_recovery() {
    // SAFETY: the text is a constant.
    unsafe { pg_sys::PreventCommandDuringRecovery(c"statements on tables of snowflake_ids".as_ptr()) };
}

/// Raises the server's error if the command cannot write: in recovery, in a read-only transaction or in a parallel query.
pub fn refuse_unless_writable(command: &'static CStr) {
    // SAFETY: the text is a constant.
    unsafe { pg_sys::PreventCommandDuringRecovery(command.as_ptr()) };
    transaction::refuse_change(command);
}

// This declaration bypasses pg_sys's wrapper, because this function cannot fail.
unsafe extern "C-unwind" {
    fn IsInParallelMode() -> bool;
}

/// Returns whether a write is allowed: not in recovery, in a read-only transaction or in a parallel query.
#[inline]
pub fn is_writable() -> bool {
    // SAFETY: reads variables of this process.
    !in_recovery() && unsafe { !pg_sys::XactReadOnly && !IsInParallelMode() }
}

/// Returns the number of this process, from 0 to `max_processes() - 1`. Processes that run SQL have different numbers.
#[inline]
pub fn process_number() -> usize {
    // SAFETY: set once at the start of every process that runs SQL.
    #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16")))]
    let number = unsafe { pg_sys::MyProcNumber };
    // SAFETY: MyProc points to this process's own entry during the life of the process.
    #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16"))]
    let number = unsafe { (*pg_sys::MyProc).pgprocno };
    usize::try_from(number).unwrap_or(0)
}

/// Returns the leader's process number in a parallel worker, and this process's own number otherwise.
pub fn leader_number() -> usize {
    // SAFETY: MyProc points to this process's own entry. The leader's entry outlives it; all entries are in one array.
    let leader = unsafe {
        (*pg_sys::MyProc)
            .lockGroupLeader
            .as_ref()
            .map(|leader| std::ptr::from_ref(leader).offset_from((*pg_sys::ProcGlobal).allProcs))
    };
    leader.and_then(|number| usize::try_from(number).ok()).unwrap_or_else(process_number)
}

/// Returns the number of processes that can run SQL concurrently.
pub fn max_processes() -> usize {
    // SAFETY: a plain variable, fixed before shared memory is sized.
    #[cfg(not(feature = "pg14"))]
    let processes = usize::try_from(unsafe { pg_sys::MaxBackends }).unwrap_or(0).max(1);
    // Postgres 14 computes MaxBackends after it has loaded libraries. The 1 is for the autovacuum launcher.
    #[cfg(feature = "pg14")]
    let processes =
        [c"max_connections", c"autovacuum_max_workers", c"max_worker_processes", c"max_wal_senders"]
            .iter()
            .filter_map(|setting| super::guc::shown(setting)?.parse::<usize>().ok())
            .sum::<usize>()
            + 1;
    processes
}

/// Returns the highest number of background workers that can run concurrently.
pub fn max_workers() -> usize {
    // SAFETY: a plain variable, fixed before libraries are loaded.
    let workers = unsafe { pg_sys::max_worker_processes };
    usize::try_from(workers).unwrap_or(0).max(1)
}

/// Returns whether the current role has the privileges of `pg_read_all_stats`, and may see the activity of other users.
pub fn may_see_all_activity() -> bool {
    /// The OID of `pg_read_all_stats`, the same in all versions.
    const READ_ALL_STATS: u32 = 3375;
    role::has_privileges_of(READ_ALL_STATS.into())
}

/// Returns the OID of the database that this process is connected to.
pub fn database() -> u32 {
    // SAFETY: a plain variable of this process, set when the process connects.
    unsafe { pg_sys::MyDatabaseId }.to_u32()
}
