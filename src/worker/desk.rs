//! A refiller's place.

use crate::pg::station::Station;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A place for one refiller, in shared memory.
#[derive(Default)]
pub struct Desk {
    /// The database it is for; 0: free. The supervisor gives it out, who sits there gives it back.
    pub database: AtomicU32,
    /// Who sits there.
    pub station: Station,
    /// Whether that worker has reached the database.
    pub connected: AtomicBool,
    /// Whether it is to leave after its present round, as others wait for a place.
    leaves: AtomicBool,
}

impl Desk {
    /// Whether it is given out for this database; 0: whether it is free.
    pub fn is_for(&self, database: u32) -> bool {
        self.database.load(Ordering::Acquire) == database
    }

    /// Has whoever sits there leave after the present round.
    pub fn dismiss(&self) {
        self.leaves.store(true, Ordering::Release);
        self.station.wake();
    }

    /// Whether whoever sits there is to leave.
    pub fn is_dismissed(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }

    /// Gives it out for a database.
    pub fn give_out(&self, database: u32) {
        self.leaves.store(false, Ordering::Relaxed);
        self.database.store(database, Ordering::Release);
    }

    /// Gives it back.
    pub fn free(&self) {
        self.connected.store(false, Ordering::Relaxed);
        self.leaves.store(false, Ordering::Relaxed);
        self.database.store(0, Ordering::Release);
    }
}
