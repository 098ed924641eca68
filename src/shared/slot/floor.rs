//! Ids that a rolled back transaction handed out.

use snowflake_ids_core::reservation::Floor;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering::Relaxed};

/// The highest id that a transaction handed out by itself, out of a change of the row that others can't see yet.
/// Should it be rolled back, the row forgets; this doesn't. One transaction at a time writes it, the one that
/// has the row locked, and the transaction that locks the row next reads it.
#[derive(Default)]
pub struct FloorCell {
    life: AtomicI64,
    id: AtomicI64,
    day: AtomicI32,
    set: AtomicBool,
}

impl FloorCell {
    /// Notes an id.
    pub fn raise(&self, floor: Floor) {
        let floor = floor.beside(self.get());
        self.life.store(floor.life, Relaxed);
        self.id.store(floor.id, Relaxed);
        self.day.store(floor.day, Relaxed);
        self.set.store(true, Relaxed);
    }

    /// What it holds.
    pub fn get(&self) -> Option<Floor> {
        let floor = || Floor {
            life: self.life.load(Relaxed),
            day: self.day.load(Relaxed),
            id: self.id.load(Relaxed),
        };
        self.set.load(Relaxed).then(floor)
    }

    /// The row knows of ids up to this one, or they are given out: a floor up to there is of no more use. A higher one
    /// is of a transaction that came after.
    pub fn pass(&self, day: i32, id: i64) {
        if self.get().is_some_and(|floor| floor.reached() <= (day, id)) {
            self.clear();
        }
    }

    /// The row knows by now.
    pub fn clear(&self) {
        self.set.store(false, Relaxed);
    }
}
