//! Facts about the cluster: identity, timeline, control file and replay progress.

use super::server::in_recovery;
use super::time::POSTGRES_EPOCH;
use pgrx::pg_sys;
use snowflake_ids_core::UnixMicros;

/// Returns the system identifier, which a cluster shares with its replicas and copies.
pub fn system_identifier() -> u64 {
    // SAFETY: reads shared memory that exists since server start.
    unsafe { pg_sys::GetSystemIdentifier() }
}

/// Returns the timeline that this server writes. During recovery, returns the timeline that the server replays.
pub fn timeline() -> u32 {
    if in_recovery() {
        let mut timeline = 0;
        // SAFETY: reads shared memory under the server's own lock, and writes to a local variable.
        unsafe { pg_sys::GetXLogReplayRecPtr(&raw mut timeline) };
        return timeline;
    }
    #[cfg(not(feature = "pg14"))]
    // SAFETY: recovery has ended, as the check above found. The timeline is fixed from then on.
    let timeline = unsafe { pg_sys::GetWALInsertionTimeLine() };
    #[cfg(feature = "pg14")]
    // SAFETY: a plain variable of this process. The server sets it when this process learns that recovery has ended.
    let timeline = unsafe { pg_sys::ThisTimeLineID };
    timeline
}

/// Returns whether the server was shut down cleanly. In that case, only the postmaster still runs.
pub fn is_shut_down() -> bool {
    control_file(|control| control.state == pg_sys::DBState::DB_SHUTDOWNED) == Some(true)
}

/// Returns the time of the checkpoint that this server started from, by the clock of the server that wrote the checkpoint.
/// Call only while shared memory is created, because this server later writes its own checkpoints.
pub fn checkpoint_time() -> Option<UnixMicros> {
    control_file(|control| UnixMicros(control.checkPointCopy.time.saturating_mul(1_000_000)))
}

/// Reads the control file; None if the file is damaged.
fn control_file<T>(read: impl FnOnce(&pg_sys::ControlFileData) -> T) -> Option<T> {
    let mut intact = false;
    // SAFETY: the data directory is set; the server allocates the result for the caller.
    let found = unsafe {
        let control = pg_sys::get_controlfile(pg_sys::DataDir, &raw mut intact);
        let found = read(&*control);
        pg_sys::pfree(control.cast());
        found
    };
    intact.then_some(found)
}

/// Returns the commit time of the last transaction that was replayed since server start, by the clock of the primary.
pub fn last_replayed() -> Option<UnixMicros> {
    // SAFETY: reads shared memory under the server's own lock.
    let last = unsafe { pg_sys::GetLatestXTime() };
    (last != 0).then(|| UnixMicros(last.saturating_add(POSTGRES_EPOCH)))
}

/// Returns the permission bits of new files in the data directory.
pub fn file_mode() -> u32 {
    unsafe extern "C" {
        static pg_file_create_mode: std::ffi::c_int;
    }
    // SAFETY: the variable is set before the server starts its first process.
    unsafe { pg_file_create_mode }.cast_unsigned()
}

/// Returns the path of the data directory, for messages.
pub fn data_directory() -> String {
    super::guc::shown(c"data_directory").unwrap_or_default()
}
