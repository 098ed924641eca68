//! Tags that a transaction has had the registries raise, for a column that has ids already.

use crate::guard::{Guard, holds};

/// All of one transaction. The registries have done it by then, whatever becomes of the transaction. Here, what was reserved
/// before is taken away: at once, so that the transaction itself gets none of it, and again when it is committed. With the
/// commit comes the note that ids up to there are in use, so that a registry that is set back to before is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeded<T>(Vec<(T, i64)>);

impl<T> Seeded<T> {
    /// None.
    pub const NONE: Self = Self(Vec::new());

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The registries have a tag whose ids are above one. A savepoint that is rolled back changes nothing of that.
    pub fn add(&mut self, tag: T, highest: i64, discard: impl FnOnce(&T)) {
        if holds(Guard::AttachDiscards) {
            discard(&tag);
        }
        self.0.push((tag, highest));
    }

    /// Has all of them noted, late: until it is committed, a note holds up all that receives ids of the tag.
    pub fn settle<E>(&self, mut record: impl FnMut(&T, i64) -> Result<(), E>) -> Result<(), E> {
        self.0.iter().try_for_each(|(tag, highest)| record(tag, *highest))
    }

    /// From the note on, what a registry gives is compared with it. What it gave before is taken away.
    pub fn committed(&mut self, mut discard: impl FnMut(&T)) {
        for (tag, _) in std::mem::take(&mut self.0) {
            if holds(Guard::AttachDiscards) {
                discard(&tag);
            }
        }
    }

    /// None of it counts, or all of it is done.
    pub fn forget(&mut self) {
        self.0 = Vec::new();
    }
}
