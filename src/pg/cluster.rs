//! The cluster: its identity, its timeline, how far it has replayed.

use super::server::in_recovery;
use pgrx::pg_sys;
use snowflake_ids_core::UnixMicros;

/// The cluster's number, which all its copies share.
pub fn system_identifier() -> u64 {
    // SAFETY: reads shared memory that is there since the server's start.
    unsafe { pg_sys::GetSystemIdentifier() }
}

/// The timeline that this server writes; that it replays while it is in recovery.
pub fn timeline() -> u32 {
    if in_recovery() {
        let mut timeline = 0;
        // SAFETY: reads shared memory under its own lock, and writes to a variable of ours.
        unsafe { pg_sys::GetXLogReplayRecPtr(&raw mut timeline) };
        return timeline;
    }
    #[cfg(not(feature = "pg14"))]
    // SAFETY: fixed from the end of recovery on, which was asked.
    let timeline = unsafe { pg_sys::GetWALInsertionTimeLine() };
    #[cfg(feature = "pg14")]
    // SAFETY: a plain variable of this process, set when it learns that recovery is over.
    let timeline = unsafe { pg_sys::ThisTimeLineID };
    timeline
}

/// Returns whether the server has stopped in good order, and no process runs but the postmaster.
pub fn is_shut_down() -> bool {
    control_file(|control| control.state == pg_sys::DBState::DB_SHUTDOWNED) == Some(true)
}

/// The time of the checkpoint that this server started from, by the clock of the server that made it. Only while shared
/// memory is laid out: later ones have this server's own.
pub fn checkpoint_time() -> Option<UnixMicros> {
    control_file(|control| UnixMicros(control.checkPointCopy.time.saturating_mul(1_000_000)))
}

/// Reads of the control file; None where it is damaged.
fn control_file<T>(read: impl FnOnce(&pg_sys::ControlFileData) -> T) -> Option<T> {
    let mut intact = false;
    // SAFETY: reads a file of the server's, whose path is set; what it gives is allocated for the caller.
    let found = unsafe {
        let control = pg_sys::get_controlfile(pg_sys::DataDir, &raw mut intact);
        let found = read(&*control);
        pg_sys::pfree(control.cast());
        found
    };
    intact.then_some(found)
}

/// The commit time of the last transaction replayed since the start, by the clock of the server that committed it.
pub fn last_replayed() -> Option<UnixMicros> {
    /// From 1970 to 2000, in microseconds.
    const SINCE_1970: i64 = 946_684_800_000_000;
    // SAFETY: reads shared memory under its own lock.
    let last = unsafe { pg_sys::GetLatestXTime() };
    (last != 0).then(|| UnixMicros(last.saturating_add(SINCE_1970)))
}

/// The mode of the files of the cluster: who may read and write them.
pub fn file_mode() -> u32 {
    unsafe extern "C" {
        static pg_file_create_mode: std::ffi::c_int;
    }
    // SAFETY: set before the server starts its first process.
    unsafe { pg_file_create_mode }.cast_unsigned()
}

/// The data directory, for people.
pub fn data_directory() -> String {
    super::guc::shown(c"data_directory").unwrap_or_default()
}
