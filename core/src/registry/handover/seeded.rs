//! Tags that a transaction raised at the registries, because the transaction attaches a column that already has ids.

use crate::guard::{Guard, holds};

/// The raised tags of one transaction, each with the highest id of the attached column. The registries have already
/// committed the raise.
///
/// Locally, buffered ids of each tag are discarded twice. The first time is immediately, so that this transaction
/// issues none of these ids. The second time is at commit. The commit also records that ids up to the column's highest
/// id are used. A registry that is later restored to a state before the raise is then refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeded<T>(pub Vec<(T, i64)>);

impl<T> Seeded<T> {
    /// No tags.
    pub const NONE: Self = Self(Vec::new());

    /// Adds a tag that the registries have raised above `highest`. A rollback to a savepoint does not remove the tag.
    pub fn add(&mut self, tag: T, highest: i64, discard: impl FnOnce(&T)) {
        if holds(Guard::AttachDiscards) {
            discard(&tag);
        }
        self.0.push((tag, highest));
    }

    /// Discards buffered ids after the commit. Ids that registries send from now on are compared with the recorded
    /// highest id.
    pub fn committed(&mut self, mut discard: impl FnMut(&T)) {
        for (tag, _) in std::mem::take(&mut self.0) {
            if holds(Guard::AttachDiscards) {
                discard(&tag);
            }
        }
    }
}
