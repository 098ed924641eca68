//! The server's own variables.

use pgrx::pg_sys;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns whether `shared_preload_libraries` is being loaded.
pub fn preloading() -> bool {
    // SAFETY: a plain variable of the server, written only by the postmaster at start.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// Returns whether `pg_upgrade` has started this server: writes and connections would be in its way.
pub fn upgrading() -> bool {
    // SAFETY: a plain variable of the server, set before it loads libraries.
    unsafe { pg_sys::IsBinaryUpgrade }
}

static RECOVERY_OVER: AtomicBool = AtomicBool::new(false);

/// Returns whether the server is known not to replay its log. Once over, recovery stays over.
#[inline]
pub fn out_of_recovery() -> bool {
    RECOVERY_OVER.load(Ordering::Relaxed)
}

/// Returns whether the server replays its log.
pub fn in_recovery() -> bool {
    if !out_of_recovery() {
        // SAFETY: callable by every process that is attached to shared memory, as all that run SQL are.
        let over = unsafe { !pg_sys::RecoveryInProgress() };
        RECOVERY_OVER.store(over, Ordering::Relaxed);
    }
    !out_of_recovery()
}

/// Fails where the server replays its log, as the commands that write do there. Else it would be an internal error.
pub fn refuse_during_recovery() {
    // SAFETY: the text is a constant; the error is the server's own.
    unsafe { pg_sys::PreventCommandDuringRecovery(c"statements on tables of snowflake_ids".as_ptr()) };
}

/// Fails where a command may not write: in recovery, a read-only transaction or a parallel query. The errors are the server's.
pub fn refuse_unless_writable(command: &'static CStr) {
    // SAFETY: the text is a constant; the errors are the server's own.
    unsafe {
        pg_sys::PreventCommandDuringRecovery(command.as_ptr());
        pg_sys::PreventCommandIfReadOnly(command.as_ptr());
        pg_sys::PreventCommandIfParallelMode(command.as_ptr());
    }
}

// The raw symbol: it cannot fail.
unsafe extern "C-unwind" {
    fn IsInParallelMode() -> bool;
}

/// Returns whether a command is known to be one that may write: where it is not, [`refuse_unless_writable`] tells.
#[inline]
pub fn is_writable() -> bool {
    // SAFETY: variables of this process.
    out_of_recovery() && unsafe { !pg_sys::XactReadOnly && !IsInParallelMode() }
}

/// The number of this process among those that run SQL: 0 to `max_processes() - 1`, its own while it lives.
#[inline]
pub fn process_number() -> usize {
    // SAFETY: set once at the start of every process that runs SQL.
    #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16")))]
    let number = unsafe { pg_sys::MyProcNumber };
    // SAFETY: MyProc points to this process's own entry from its start to its end.
    #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16"))]
    let number = unsafe { (*pg_sys::MyProc).pgprocno };
    usize::try_from(number).unwrap_or(0)
}

/// The number of the process whose transaction this one works for: in a parallel query the leader's, else its own.
pub fn leader_number() -> usize {
    // SAFETY: MyProc points to this process's own entry, whose leader outlives it; all entries lie in one array.
    let leader = unsafe {
        (*pg_sys::MyProc)
            .lockGroupLeader
            .as_ref()
            .map(|leader| std::ptr::from_ref(leader).offset_from((*pg_sys::ProcGlobal).allProcs))
    };
    leader.and_then(|number| usize::try_from(number).ok()).unwrap_or_else(process_number)
}

/// Returns the number of processes that can run SQL at once.
pub fn max_processes() -> usize {
    // SAFETY: a plain variable of the server, fixed before shared memory is sized.
    #[cfg(not(feature = "pg14"))]
    let processes = usize::try_from(unsafe { pg_sys::MaxBackends }).unwrap_or(0).max(1);
    // These add them up only after libraries were loaded, which is too late. One more is the launcher of autovacuum.
    #[cfg(feature = "pg14")]
    let processes =
        [c"max_connections", c"autovacuum_max_workers", c"max_worker_processes", c"max_wal_senders"]
            .iter()
            .filter_map(|setting| super::guc::shown(setting)?.parse::<usize>().ok())
            .sum::<usize>()
            + 1;
    processes
}

/// Returns the number of workers that can run at once.
pub fn max_workers() -> usize {
    // SAFETY: a plain variable of the server, fixed before libraries are loaded.
    let workers = unsafe { pg_sys::max_worker_processes };
    usize::try_from(workers).unwrap_or(0).max(1)
}

/// Returns whether the user may see what others do: a member of `pg_read_all_stats`.
pub fn may_see_all_activity() -> bool {
    /// The role's oid, in all versions.
    const READ_ALL_STATS: u32 = 3375;
    // SAFETY: within a transaction.
    unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), READ_ALL_STATS.into()) }
}

/// The database that this process is connected to.
pub fn database() -> u32 {
    // SAFETY: a plain variable of this process, set when it connected.
    unsafe { pg_sys::MyDatabaseId }.to_u32()
}
