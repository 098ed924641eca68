//! The snapshot of the current statement, and the transactions of all processes.

use super::server;
use pgrx::pg_sys;
use snowflake_ids_core::generator::safe_position::SnapshotXids;

/// The xids of a snapshot, without epochs.
pub struct Raw {
    xmax: u32,
    running: Vec<u32>,
}

impl Raw {
    /// Returns the current statement's snapshot; None if there is no MVCC snapshot, or if the server took it in recovery.
    pub fn of_statement() -> Option<Self> {
        let (xmax, running) = of_statement()?;
        Some(Self { xmax, running: running.iter().map(|xid| xid.into_inner()).collect() })
    }

    /// Returns whether the current statement's snapshot sees the same transactions as this snapshot.
    pub fn is_of_statement(&self) -> bool {
        of_statement().is_some_and(|(xmax, running)| {
            xmax == self.xmax && running.iter().map(|xid| xid.into_inner()).eq(self.running.iter().copied())
        })
    }

    /// Returns the xids with their epochs.
    pub fn xids(&self) -> SnapshotXids {
        let next = next_xid();
        let running = self.running.iter().map(|xid| widened(next, *xid)).collect();
        SnapshotXids::new(widened(next, self.xmax), running)
    }
}

fn of_statement() -> Option<(u32, &'static [pg_sys::TransactionId])> {
    // SAFETY: the caller is within a transaction, and uses the slice immediately. An active snapshot lives as long as the
    // statement. The snapshot's array has `xcnt` xids.
    unsafe {
        if !pg_sys::ActiveSnapshotSet() {
            return None;
        }
        let snapshot = pg_sys::GetActiveSnapshot().as_ref()?;
        if snapshot.snapshot_type != pg_sys::SnapshotType::SNAPSHOT_MVCC || snapshot.takenDuringRecovery {
            return None;
        }
        let running = match snapshot.xcnt as usize {
            0 => &[],
            count => std::slice::from_raw_parts(snapshot.xip, count),
        };
        Some((snapshot.xmax.into_inner(), running))
    }
}

/// Returns the xid that the next transaction will get, with its epoch.
pub fn next_xid() -> u64 {
    // SAFETY: reads shared memory under the server's own lock.
    unsafe { pg_sys::ReadNextFullTransactionId() }.value
}

/// Returns whether a process is running the transaction. Prepared transactions run in no process.
pub fn runs_in_process(xid: u64) -> bool {
    // SAFETY: reads shared memory under the server's own lock.
    unsafe { pg_sys::BackendXidGetPid(low_half(xid).into()) != 0 }
}

/// Returns whether a transaction is prepared, in a database other than `database`.
pub fn is_prepared_elsewhere(xid: u64, database: u32) -> bool {
    let (xid, own): (pg_sys::TransactionId, _) = (low_half(xid).into(), pg_sys::Oid::from(database));
    is_prepared(|prepared, of| prepared == xid && of != own && of != pg_sys::InvalidOid)
}

/// Returns whether a transaction of this database is prepared.
pub fn is_any_prepared() -> bool {
    is_prepared(|_, of| of == pg_sys::Oid::from(server::database()))
}

/// Returns whether a transaction with such an xid and database is prepared.
fn is_prepared(is_it: impl Fn(pg_sys::TransactionId, pg_sys::Oid) -> bool) -> bool {
    /// The index of `ProcArrayLock` among the server's main locks, in Postgres 14 to 19.
    const PROC_ARRAY_LOCK: usize = 4;
    // SAFETY: the lock and the arrays live as long as the server. While the lock is held, no prepared transaction begins or
    // ends, and the entries of prepared transactions stay the same. An entry that is free or being filled may have an xid, which
    // must also be among those that run.
    unsafe {
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(PROC_ARRAY_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_SHARED);
        let found = (0..usize::try_from(pg_sys::max_prepared_xacts).unwrap_or(0)).any(|number| {
            let entry = pg_sys::PreparedXactProcs.add(number);
            let xid = (*entry).xid;
            let runs = |index| *(*pg_sys::ProcGlobal).xids.add(index) == xid;
            usize::try_from((*entry).pgxactoff).is_ok_and(runs) && is_it(xid, (*entry).databaseId)
        });
        pg_sys::LWLockRelease(lock);
        found
    }
}

/// Returns whether a transaction was rolled back. Call only for a transaction that a current snapshot does not see.
pub fn was_rolled_back(xid: u64) -> bool {
    // SAFETY: the server keeps the status of every transaction that a current snapshot does not see.
    unsafe { pg_sys::TransactionIdDidAbort(low_half(xid).into()) }
}

/// Returns the pid of the process with this [`super::server::process_number`]; 0 if there is no such process.
pub fn process_id(number: usize) -> i32 {
    // SAFETY: the number is below the count of processes that run SQL. The array has an entry for each of these processes,
    // and lives as long as the server.
    unsafe { (*(*pg_sys::ProcGlobal).allProcs.add(number)).pid }
}

/// Adds the epoch to an xid. The xid is at most `next`, and less than four billion below `next`.
fn widened(next: u64, xid: u32) -> u64 {
    next.saturating_sub(low_half(next).wrapping_sub(xid).into())
}

/// Returns an xid without its epoch.
const fn low_half(xid: u64) -> u32 {
    let [a, b, c, d, ..] = xid.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
