//! Tags whose rows a transaction has inserted, changed or deleted.
//!
//! No other transaction can reserve ids from such a row until the commit, because the row is invisible or locked to
//! others. The transaction therefore takes ids one by one from its own memory. The transaction writes the highest of
//! these ids to the row just before the commit. Other sessions then lose the buffered ids that are no longer valid. The
//! row's lock prevents a refill of the buffers before the commit.

use crate::clock::Clock;
use crate::guard::{Guard, holds};
use crate::tag::definition::Exhausted;
use crate::tag::reservation::{HighWaterMark, Reached, TagRow};
use crate::tag::segment::{Period, TakenIds};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::Hash;

/// A change of a tag's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TagChange {
    /// A change that does not affect reserved ids, for example of the step.
    Tuned,
    /// A change of the increment, the remainder or the largest id.
    Altered,
    /// A move of the position back to ids that were handed out. The tag's owner asserts that none of these ids is in use.
    Forced,
    /// Another change of the highest reserved id, or a change of the start or the period.
    Moved,
    /// The row was inserted.
    Created,
    /// The row was deleted.
    Gone,
}

/// The rows of tags as the transaction sees them, and the tags' slots in shared memory.
pub trait TransactionTagsHost<T> {
    /// Reason why a statement failed.
    type Error;

    /// Returns true if the table with the tag's row still exists.
    fn is_there(&self, tag: &T) -> bool;
    /// Reads and locks a tag's row; None if the tag has no row.
    fn read(&self, tag: &T) -> Result<Option<TagRow>, Self::Error>;
    /// Writes to the row that ids up to `max_id` are handed out or reserved.
    fn write(&self, tag: &T, max_id: i64, period: Period) -> Result<(), Self::Error>;
    /// Returns the highest id that transactions handed out from a row that they had changed. These transactions were
    /// rolled back, or may still be rolled back.
    fn high_water_mark(&self, tag: &T) -> Option<HighWaterMark>;
    /// Records an id that this transaction handed out. The transaction may be rolled back.
    fn raise_high_water_mark(&self, tag: &T, high_water_mark: HighWaterMark);
    /// Drops the tag's high-water mark if `known` is None, or if the mark is at most `known`. The row records ids up to
    /// `known`.
    fn clear_high_water_mark(&self, tag: &T, known: Option<Reached>);
    /// Discards, for all sessions, the buffered ids of a tag, and returns the highest id handed out. `reserved` is the
    /// row's highest id, and `tag_generation` the row's generation.
    fn close(&self, tag: &T, reserved: i64, tag_generation: i64) -> i64;
    /// Frees the tag's slot with its content, but keeps the high-water mark.
    fn leave(&self, tag: &T);
    /// Frees the tag's slot if the slot is empty.
    fn leave_unused(&self, tag: &T);
    /// Sets the number format of a tag.
    fn write_format(&self, tag: &T, format: &str);
}

/// Reason why there is no next id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionTagError<E> {
    /// The tag does not exist any more.
    Unknown,
    /// The tag has no ids left.
    Exhausted(Exhausted),
    /// A statement failed.
    Here(E),
}

/// All tags that a transaction has changed. `T` identifies a tag, and `S` a subtransaction. Later subtransactions are
/// greater. A rollback of `S` undoes the changes of `S` and of all greater subtransactions.
#[derive(Debug)]
pub struct TransactionTags<T, S> {
    all: FxHashMap<T, TransactionTag<T, S>>,
}

#[derive(Debug)]
struct TransactionTag<T, S> {
    changes: Vec<Made<S>>,
    /// The row after the last change.
    row: Option<TagRow>,
    /// The highest id that the transaction handed out but has not written to the row yet, and the period of this id.
    issued: Option<Reached>,
    /// The tag's generation before the transaction, which a rollback restores; None if the tag did not exist.
    tag_generation: Option<i64>,
    /// Earlier names of the row in this transaction, with the row's generation under each name.
    former: Vec<(T, i64)>,
}

/// A change, with the subtransaction that made it.
#[derive(Debug)]
struct Made<S> {
    at: S,
    change: TagChange,
    /// The high-water mark before a change that drops the mark.
    before: Option<Reached>,
}

impl<T, S> Default for TransactionTags<T, S> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T, S> TransactionTags<T, S> {
    /// No tags.
    pub const NONE: Self = Self { all: FxHashMap::with_hasher(FxBuildHasher) };
}

impl<T: Copy + Eq + Hash, S: Copy + PartialOrd> TransactionTags<T, S> {
    /// Records a change of a tag. `former_tag_generation` is the tag's generation before the change.
    pub fn record(&mut self, tag: T, change: TagChange, former_tag_generation: Option<i64>, at: S) {
        let new = || TransactionTag {
            changes: Vec::new(),
            row: None,
            issued: None,
            tag_generation: former_tag_generation,
            former: Vec::new(),
        };
        self.all.entry(tag).or_insert_with(new).add(at, change);
    }

    /// Records that a tag's row got a new name and keeps its position. `tag_generation` and `recorded` are the row's
    /// generation and high-water mark under the old name.
    pub fn record_renamed(
        &mut self,
        old: T,
        new: T,
        tag_generation: Option<i64>,
        recorded: Option<HighWaterMark>,
        at: S,
    ) {
        self.record(old, TagChange::Gone, tag_generation, at);
        self.record(new, TagChange::Created, None, at);
        let recorded = recorded
            .filter(|high_water_mark| Some(high_water_mark.tag_generation) == tag_generation)
            .map(|high_water_mark| high_water_mark.reached());
        let Some(was) = self.all.get(&old) else { return };
        let issued = was.issued.max(recorded);
        let former = was
            .former
            .iter()
            .copied()
            .chain(tag_generation.map(|tag_generation| (old, tag_generation)))
            .collect();
        if let Some(own) = self.all.get_mut(&new) {
            own.issued = own.issued.max(issued);
            own.former = former;
        }
    }

    /// Returns true if the transaction has changed no tag.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns true if the transaction has changed this tag.
    pub fn has(&self, tag: &T) -> bool {
        self.all.contains_key(tag)
    }

    /// Returns true if the changes do not affect the tag's buffered ids, and the transaction took no id from the row.
    pub fn leaves_buffers(&self, tag: &T) -> bool {
        self.all.get(tag).is_some_and(|own| own.issued.is_none() && own.worst() == Some(TagChange::Tuned))
    }

    /// Returns the last id that the transaction handed out from a tag that it changed.
    pub fn issued(&self, tag: &T) -> Option<i64> {
        self.all.get(tag)?.issued.map(|(_, id)| id)
    }

    /// Takes the next id of a tag that the transaction has changed, and returns the id and the row. Returns None for a
    /// tag that the transaction has not changed.
    pub fn next<H: TransactionTagsHost<T>>(
        &mut self,
        tag: &T,
        clock: &impl Clock,
        host: &H,
    ) -> Result<Option<(TakenIds, TagRow)>, TransactionTagError<H::Error>> {
        let Some(own) = self.all.get_mut(tag) else { return Ok(None) };
        if own.last_change() == Some(TagChange::Gone) {
            return Err(TransactionTagError::Unknown);
        }
        let row = own.row_now(tag, clock, host)?;
        let range = row.one_after(own.issued).map_err(TransactionTagError::Exhausted)?;
        let day = row.period.day;
        own.issued = Some((day, range.first));
        // If the transaction is rolled back, only this high-water mark records the id.
        let names =
            own.former.iter().copied().chain(own.tag_generation.map(|tag_generation| (*tag, tag_generation)));
        for (tag, tag_generation) in names.filter(|_| holds(Guard::OwnHighWaterMark)) {
            host.raise_high_water_mark(&tag, HighWaterMark { tag_generation, day, id: range.first });
        }
        Ok(Some((TakenIds { range, day, prefetch: false }, row)))
    }

    /// Publishes the changes to all sessions, just before the commit.
    pub fn settle<H: TransactionTagsHost<T>>(&self, host: &H) -> Result<(), H::Error> {
        self.all.iter().filter(|(tag, _)| host.is_there(tag)).try_for_each(|(tag, own)| own.settle(tag, host))
    }

    /// Drops high-water marks after the commit, because the rows now record the ids.
    pub fn committed<H: TransactionTagsHost<T>>(&mut self, host: &H) {
        for (tag, own) in &self.all {
            let is_gone = own.last_change() == Some(TagChange::Gone);
            // The generation to which the high-water mark belongs has ended.
            if is_gone || own.has(TagChange::Forced) || own.has(TagChange::Created) {
                host.clear_high_water_mark(tag, None);
            } else if own.issued.is_some() {
                host.clear_high_water_mark(tag, own.issued);
            }
            if is_gone {
                host.leave_unused(tag);
            }
        }
        self.forget();
    }

    /// Forgets all changes when the transaction ends.
    pub fn forget(&mut self) {
        self.all = FxHashMap::default();
    }

    /// Undoes the changes of a subtransaction that was rolled back, and of all subtransactions within it.
    pub fn undo(&mut self, aborted: S) {
        self.all.retain(|_, own| {
            own.undo(aborted);
            !own.changes.is_empty()
        });
    }
}

impl<T, S: Copy + PartialOrd> TransactionTag<T, S> {
    fn last_change(&self) -> Option<TagChange> {
        self.changes.last().map(|made| made.change)
    }

    fn worst(&self) -> Option<TagChange> {
        self.changes.iter().map(|made| made.change).max()
    }

    fn has(&self, change: TagChange) -> bool {
        self.changes.iter().any(|made| made.change == change)
    }

    fn add(&mut self, at: S, change: TagChange) {
        self.row = None;
        // A tag that is made again begins anew.
        let is_new = matches!(change, TagChange::Forced | TagChange::Created);
        let before = if is_new { self.issued.take() } else { None };
        self.changes.push(Made { at, change, before });
    }

    /// Undoes changes. If one of them had dropped a high-water mark, restores that mark, unless the present mark is higher.
    fn undo(&mut self, aborted: S) {
        self.row = None;
        for undone in self.changes.extract_if(.., |made| made.at >= aborted) {
            self.issued = self.issued.max(undone.before);
        }
    }

    /// Returns the row. Reads the row again after a change, and after the row's period has ended.
    fn row_now<H: TransactionTagsHost<T>>(
        &mut self,
        tag: &T,
        clock: &impl Clock,
        host: &H,
    ) -> Result<TagRow, TransactionTagError<H::Error>> {
        if let Some(row) = self.row.as_ref().filter(|row| !row.period.is_over(clock)) {
            return Ok(row.clone());
        }
        let row = host.read(tag).map_err(TransactionTagError::Here)?.ok_or(TransactionTagError::Unknown)?;
        // Another transaction may have handed out higher ids before it was rolled back.
        self.issued = self.issued.max(row.high_water_mark(host.high_water_mark(tag)));
        self.row = Some(row.clone());
        Ok(row)
    }

    fn settle<H: TransactionTagsHost<T>>(&self, tag: &T, host: &H) -> Result<(), H::Error> {
        let (Some(last), Some(worst)) = (self.last_change(), self.worst()) else { return Ok(()) };
        if last == TagChange::Gone || worst == TagChange::Created && self.issued.is_none() {
            host.leave(tag);
            return Ok(());
        }
        let Some(row) = host.read(tag)? else { return Ok(()) };
        host.write_format(tag, &row.format);
        let reserved = row.definition.max_id;
        let to_close = worst > TagChange::Tuned && holds(Guard::OwnCloses);
        let closed = if to_close { host.close(tag, reserved, row.tag_generation) } else { reserved };
        let reached = match self.issued {
            Some(issued) => row.above(Some(issued)).max_id,
            // The reserved ids above `closed` were not handed out, and never will be handed out.
            None if worst == TagChange::Altered && row.period == Period::FOREVER => closed,
            None => reserved,
        };
        if (reached != reserved || self.issued.is_some()) && holds(Guard::OwnWritten) {
            host.write(tag, reached, row.period)?;
        }
        Ok(())
    }
}
