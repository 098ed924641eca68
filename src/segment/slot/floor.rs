//! Ids that a rolled back transaction handed out.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering::Relaxed};

/// The highest id that a transaction handed out by itself, out of a change of the row that others can't see yet.
/// Should it be rolled back, the row forgets; this doesn't. One transaction at a time writes it, the one that
/// has the row locked, and whoever locks the row next reads it.
pub struct Floor {
    id: AtomicI64,
    day: AtomicI32,
    set: AtomicBool,
}

impl Default for Floor {
    fn default() -> Self {
        Self { id: AtomicI64::new(0), day: AtomicI32::new(0), set: AtomicBool::new(false) }
    }
}

impl Floor {
    /// Notes an id of the period that begins on this day.
    pub fn raise(&self, day: i32, id: i64) {
        if self.get().is_some_and(|floor| floor >= (day, id)) {
            return;
        }
        self.id.store(id, Relaxed);
        self.day.store(day, Relaxed);
        self.set.store(true, Relaxed);
    }

    /// The day and the id.
    pub fn get(&self) -> Option<(i32, i64)> {
        self.set.load(Relaxed).then(|| (self.day.load(Relaxed), self.id.load(Relaxed)))
    }

    /// The row knows of ids up to this one, or they are given out: a floor up to there is of no more use. A higher one
    /// is of a transaction that came after.
    pub fn pass(&self, day: i32, id: i64) {
        if self.get().is_some_and(|floor| floor <= (day, id)) {
            self.clear();
        }
    }

    /// The row knows by now.
    pub fn clear(&self) {
        self.set.store(false, Relaxed);
    }
}
