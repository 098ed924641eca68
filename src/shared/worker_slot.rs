//! Worker slots of the refill workers and the lease worker.

use crate::pg::clock::uptime;
use crate::pg::process_latch::WorkerLatch;
use snowflake_ids_core::clock::micros;
use snowflake_ids_core::process::time_slices::SliceEnd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A slot for one worker, in shared memory.
#[derive(Default)]
pub struct WorkerSlot {
    /// The database that the slot is assigned to; 0 if the slot is free. The launcher assigns and frees the slot.
    pub database: AtomicU32,
    pub worker_latch: WorkerLatch,
    /// True if the worker has connected to the database.
    pub connected: AtomicBool,
    /// True if the worker has nothing to do.
    pub idle: AtomicBool,
    /// True if the worker has served a request, or found no request.
    pub served: AtomicBool,
    /// True if the worker had to abandon its work because other databases waited.
    pub cut: AtomicBool,
    /// The SQLSTATE of the error that ended the worker, in the server's packed form; 0 if none is known.
    pub failure: AtomicI32,
    /// The time by which the worker has to leave its database, in microseconds of uptime; 0 if the worker may stay.
    leaves_by: AtomicU64,
}

impl WorkerSlot {
    /// Returns whether the slot is assigned to this database. With 0, returns whether the slot is free.
    pub fn is_for(&self, database: u32) -> bool {
        self.database.load(Ordering::Acquire) == database
    }

    /// Tells the worker to leave after its current round, and to abandon that round at the deadline `by`.
    pub fn dismiss(&self, by: Duration) {
        self.leaves_by.store(micros(by).max(1), Ordering::Release);
        self.worker_latch.wake();
    }

    /// Returns whether the worker has been told to leave.
    pub fn is_dismissed(&self) -> bool {
        self.leaves_by.load(Ordering::Acquire) != 0
    }

    /// Returns how long the worker may continue its current work; None if there is no limit.
    pub fn time_left(&self) -> Option<Duration> {
        let by = self.leaves_by.load(Ordering::Acquire);
        (by != 0).then(|| Duration::from_micros(by).saturating_sub(uptime()))
    }

    /// Returns how the worker's time slice ended.
    pub fn end(&self) -> SliceEnd {
        let is = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        match () {
            () if !is(&self.connected) => SliceEnd::OutOfReach,
            () if is(&self.cut) => SliceEnd::Cut,
            () if is(&self.served) => SliceEnd::Served,
            () => SliceEnd::InVain,
        }
    }

    /// Assigns the slot to a database.
    pub fn give_out(&self, database: u32) {
        self.clear();
        self.database.store(database, Ordering::Release);
    }

    pub fn free(&self) {
        self.clear();
        self.database.store(0, Ordering::Release);
    }

    fn clear(&self) {
        for flag in [&self.connected, &self.idle, &self.served, &self.cut] {
            flag.store(false, Ordering::Relaxed);
        }
        self.failure.store(0, Ordering::Relaxed);
        self.leaves_by.store(0, Ordering::Relaxed);
    }
}
