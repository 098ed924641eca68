//! Rows that arrive by logical replication.

use pgrx::pg_sys;
use std::ffi::CStr;

/// The entry points of the server's own processes that apply rows.
const APPLIERS: [&CStr; 3] = [
    c"ApplyWorkerMain",
    if cfg!(feature = "pg19") { c"TableSyncWorkerMain" } else { c"TablesyncWorkerMain" },
    c"ParallelApplyWorkerMain",
];
/// The entry point of the process that sets sequences as a publisher's stand, from 19 on.
const SEQUENCES: &CStr = c"SequenceSyncWorkerMain";

/// Returns whether the row that a trigger is called for came from a publisher: this process applies such rows, and no
/// function runs a statement in it now, as triggers and the like do by SPI.
pub fn is_applied() -> bool {
    is_applier() && !is_within_spi()
}

/// Returns whether this process applies such rows.
pub fn is_applier() -> bool {
    // Before 17 the last one had a process of the first kind.
    entry_point().is_some_and(|function| APPLIERS.contains(&function))
}

/// Returns whether this process sets sequences as a publisher's stand.
pub fn is_setting_sequences() -> bool {
    cfg!(feature = "pg19") && entry_point() == Some(SEQUENCES)
}

/// The function that this process runs; None where it is no background worker of the server's own.
fn entry_point() -> Option<&'static CStr> {
    // SAFETY: the server's own, set when a background worker starts and never changed; both names are C strings.
    unsafe {
        let entry = pg_sys::MyBgworkerEntry.as_ref()?;
        let library = CStr::from_ptr(entry.bgw_library_name.as_ptr());
        (library == c"postgres").then(|| CStr::from_ptr(entry.bgw_function_name.as_ptr()))
    }
}

/// Returns whether this is called by a statement that a function runs.
fn is_within_spi() -> bool {
    // SAFETY: looks for a relation of a name that none has, and does nothing else.
    unsafe { pg_sys::SPI_unregister_relation(c"".as_ptr()) != pg_sys::SPI_ERROR_UNCONNECTED }
}
