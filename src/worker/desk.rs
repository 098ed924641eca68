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
}

impl Desk {
    /// Whether it is given out for this database; 0: whether it is free.
    pub fn is_for(&self, database: u32) -> bool {
        self.database.load(Ordering::Acquire) == database
    }

    /// Gives it back.
    pub fn free(&self) {
        self.connected.store(false, Ordering::Relaxed);
        self.database.store(0, Ordering::Release);
    }
}
