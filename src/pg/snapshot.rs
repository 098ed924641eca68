//! The snapshot of the present statement, and the transactions of all processes.

use super::server;
use pgrx::pg_sys;
use snowflake_ids_core::generator::safe_position::SnapshotXids;

/// The transactions that the present statement does not see; None if its snapshot is not of the usual kind.
pub fn of_statement() -> Option<SnapshotXids> {
    // SAFETY: within a transaction. An active snapshot lives as long as the statement, and its array has `xcnt` xids.
    unsafe {
        if !pg_sys::ActiveSnapshotSet() {
            return None;
        }
        let snapshot = pg_sys::GetActiveSnapshot().as_ref()?;
        if snapshot.snapshot_type != pg_sys::SnapshotType::SNAPSHOT_MVCC || snapshot.takenDuringRecovery {
            return None;
        }
        let next = pg_sys::ReadNextFullTransactionId().value;
        let running =
            (0..snapshot.xcnt as usize).map(|index| widened(next, *snapshot.xip.add(index))).collect();
        Some(SnapshotXids::new(widened(next, snapshot.xmax), running))
    }
}

/// Returns whether a transaction is running in a process. A prepared one is not.
pub fn runs_in_process(xid: u64) -> bool {
    // SAFETY: looks up shared memory under the server's own lock.
    unsafe { pg_sys::BackendXidGetPid(low_half(xid).into()) != 0 }
}

/// The process ids of server processes, by their number in [`server::process_number`]; 0 for an unused one.
pub fn process_id(number: usize) -> i32 {
    if number >= server::max_processes() {
        return 0;
    }
    // SAFETY: the array of all processes has more entries than that, and lives as long as the server.
    unsafe { (*(*pg_sys::ProcGlobal).allProcs.add(number)).pid }
}

/// An xid with its epoch. It is at most the next one, and less than four billion below it.
fn widened(next: u64, xid: pg_sys::TransactionId) -> u64 {
    next.saturating_sub(low_half(next).wrapping_sub(xid.into_inner()).into())
}

/// An xid without its epoch.
const fn low_half(xid: u64) -> u32 {
    let [a, b, c, d, ..] = xid.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
