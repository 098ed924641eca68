//! A refill worker's slot, and the lease worker's.

use crate::pg::clock::uptime;
use crate::pg::worker_latch::WorkerLatch;
use snowflake_ids_core::clock::micros;
use snowflake_ids_core::worker::time_slices::SliceEnd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A slot for one worker, in shared memory.
#[derive(Default)]
pub struct WorkerSlot {
    /// The database it is for; 0: free. The launcher gives it out, and takes it back when the worker has ended.
    pub database: AtomicU32,
    /// The worker there.
    pub worker_latch: WorkerLatch,
    /// True if that worker has reached the database.
    pub connected: AtomicBool,
    /// True if it has nothing to do.
    pub idle: AtomicBool,
    /// True if it has served something, or found nothing to be served.
    pub served: AtomicBool,
    /// True if it had to give up what it was doing, as others waited.
    pub cut: AtomicBool,
    /// The SQLSTATE of the error that ended it, packed as the server has it; 0: none that is known.
    pub failure: AtomicI32,
    /// By when it is to have left, as others wait for a slot, in microseconds of uptime; 0: it may stay.
    leaves_by: AtomicU64,
}

impl WorkerSlot {
    /// Returns whether it is given out for this database; 0: whether it is free.
    pub fn is_for(&self, database: u32) -> bool {
        self.database.load(Ordering::Acquire) == database
    }

    /// Has the worker there leave after the present round, and give up by then what it is doing.
    pub fn dismiss(&self, by: Duration) {
        self.leaves_by.store(micros(by).max(1), Ordering::Release);
        self.worker_latch.wake();
    }

    /// Returns whether the worker there is to leave.
    pub fn is_dismissed(&self) -> bool {
        self.leaves_by.load(Ordering::Acquire) != 0
    }

    /// Returns how much longer the worker there may go on with what it is doing; None: as long as it takes.
    pub fn time_left(&self) -> Option<Duration> {
        let by = self.leaves_by.load(Ordering::Acquire);
        (by != 0).then(|| Duration::from_micros(by).saturating_sub(uptime()))
    }

    /// Returns how its worker ended.
    pub fn end(&self) -> SliceEnd {
        let is = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        match () {
            () if !is(&self.connected) => SliceEnd::OutOfReach,
            () if is(&self.cut) => SliceEnd::Cut,
            () if is(&self.served) => SliceEnd::Served,
            () => SliceEnd::InVain,
        }
    }

    /// Gives it out for a database.
    pub fn give_out(&self, database: u32) {
        self.clear();
        self.database.store(database, Ordering::Release);
    }

    /// Gives it back.
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
