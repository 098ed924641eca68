//! Detection of the server's logical replication workers.

use pgrx::pg_sys;
use std::ffi::CStr;

/// Entry points of the server's workers that apply rows.
const APPLIERS: [&CStr; 3] = [
    c"ApplyWorkerMain",
    if cfg!(feature = "pg19") { c"TableSyncWorkerMain" } else { c"TablesyncWorkerMain" },
    c"ParallelApplyWorkerMain",
];
/// The entry point of the worker that copies the positions of the publisher's sequences. The worker exists since Postgres 19.
const SEQUENCES: &CStr = c"SequenceSyncWorkerMain";

/// Returns whether logical replication delivered the row for which a trigger is called. Returns false for a row that a
/// function, such as another trigger, inserts through SPI.
pub fn is_applied() -> bool {
    is_applier() && !is_within_spi()
}

/// Returns whether this process applies rows of a publisher.
pub fn is_applier() -> bool {
    // Before Postgres 17 the table synchronization worker also had the entry point `ApplyWorkerMain`.
    entry_point().is_some_and(|function| APPLIERS.contains(&function))
}

/// Returns whether this process copies the positions of a publisher's sequences.
pub fn is_setting_sequences() -> bool {
    cfg!(feature = "pg19") && entry_point() == Some(SEQUENCES)
}

/// Returns the entry point of this process; None if the process is no background worker of the server itself.
fn entry_point() -> Option<&'static CStr> {
    // SAFETY: the server sets the entry when a background worker starts, and never changes it; both names are C strings.
    unsafe {
        let entry = pg_sys::MyBgworkerEntry.as_ref()?;
        let library = CStr::from_ptr(entry.bgw_library_name.as_ptr());
        (library == c"postgres").then(|| CStr::from_ptr(entry.bgw_function_name.as_ptr()))
    }
}

/// Returns whether a function is running the current statement through SPI.
pub fn is_within_spi() -> bool {
    // SAFETY: looks up a relation by a name that no relation has, and has no other effect.
    unsafe { pg_sys::SPI_unregister_relation(c"".as_ptr()) != pg_sys::SPI_ERROR_UNCONNECTED }
}
