//! Tags whose rows a transaction has inserted, changed or deleted.
//!
//! Until it commits, no other can reserve from such a row: they do not see it, or find it locked. So the transaction serves
//! itself, one id after the other from its own memory, and just before it commits writes down how far it came. What it did
//! to the row reaches the other sessions then: their buffers are taken away where they no longer hold, while the row's lock
//! keeps others from filling them anew before the commit.

use crate::clock::Clock;
use crate::guard::{Guard, holds};
use crate::sequence::definition::Exhausted;
use crate::sequence::reservation::{HighWaterMark, Reached, TagRow};
use crate::sequence::segment::{Period, TakenIds};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::Hash;

/// A change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It does not concern ids already reserved.
    Tuned,
    /// The rule by which ids are made.
    Altered,
    /// The position, back to ids that were handed out: its owner says that none of them is in use.
    Forced,
    /// The position.
    Moved,
    /// It was inserted.
    Created,
    /// It was deleted.
    Gone,
}

/// The rows of tags, as the transaction sees them, and their places in shared memory.
pub trait TransactionTagsHost<T> {
    /// Reason why a statement failed.
    type Error;

    /// Returns whether the table that holds the tag's row is there still.
    fn is_there(&self, tag: &T) -> bool;
    /// Reads and locks a tag's row; None where there is none.
    fn read(&self, tag: &T) -> Result<Option<TagRow>, Self::Error>;
    /// Notes in the row that ids up to this one are handed out or reserved.
    fn write(&self, tag: &T, max_id: i64, period: Period) -> Result<(), Self::Error>;
    /// Returns how far transactions came that were rolled back, or may be.
    fn high_water_mark(&self, tag: &T) -> Option<HighWaterMark>;
    /// Notes that a transaction came so far which may be rolled back.
    fn raise_high_water_mark(&self, tag: &T, high_water_mark: HighWaterMark);
    /// The row knows of ids up to this one by now; None: none of them is in use any more.
    fn clear_high_water_mark(&self, tag: &T, known: Option<Reached>);
    /// Takes a tag's buffered ids away from all sessions; gives the highest that was handed out. `reserved` is what its row
    /// says, and `tag_generation` the one that it is in.
    fn close(&self, tag: &T, reserved: i64, tag_generation: i64) -> i64;
    /// Takes a tag's place away, with all that is in it, but for its floor.
    fn leave(&self, tag: &T);
    /// Takes a tag's place away where nothing is in it.
    fn leave_unused(&self, tag: &T);
    /// Has the numbers of a tag written in another format.
    fn write_format(&self, tag: &T, format: &str);
}

/// Reason why there is no next id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionTagError<E> {
    /// There is no such tag any more.
    Unknown,
    /// It has no ids left.
    Exhausted(Exhausted),
    /// A statement failed.
    Here(E),
}

/// All tags that a transaction has changed. `T` tells them apart, and `S` its subtransactions: one that begins later is
/// higher, so those above one that is rolled back are part of it.
#[derive(Debug)]
pub struct TransactionTags<T, S> {
    all: FxHashMap<T, TransactionTag<T, S>>,
}

/// One of them.
#[derive(Debug)]
struct TransactionTag<T, S> {
    changes: Vec<Made<S>>,
    /// The row, as of the last change.
    row: Option<TagRow>,
    /// The period and the id above which the next one must be, where the row doesn't know.
    issued: Option<Reached>,
    /// The life in which the tag was before the transaction, and is again should it be rolled back; None if there was none.
    tag_generation: Option<i64>,
    /// The row's former names in this transaction, and its generation under each.
    former: Vec<(T, i64)>,
}

/// A change, and where.
#[derive(Debug)]
struct Made<S> {
    at: S,
    change: Change,
    /// The high-water mark before a change that forgets it.
    before: Option<Reached>,
}

impl<T, S> Default for TransactionTags<T, S> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T, S> TransactionTags<T, S> {
    /// None.
    pub const NONE: Self = Self { all: FxHashMap::with_hasher(FxBuildHasher) };
}

impl<T: Copy + Eq + Hash, S: Copy + PartialOrd> TransactionTags<T, S> {
    /// Takes note of a change, of a tag that was in this generation.
    pub fn record(&mut self, tag: T, change: Change, former_tag_generation: Option<i64>, at: S) {
        let new = || TransactionTag {
            changes: Vec::new(),
            row: None,
            issued: None,
            tag_generation: former_tag_generation,
            former: Vec::new(),
        };
        self.all.entry(tag).or_insert_with(new).add(at, change);
    }

    /// Takes note that a tag's row, in this generation, is called otherwise from now on: it goes on where it is. `recorded` is the
    /// floor of its former name.
    pub fn record_renamed(
        &mut self,
        old: T,
        new: T,
        tag_generation: Option<i64>,
        recorded: Option<HighWaterMark>,
        at: S,
    ) {
        self.record(old, Change::Gone, tag_generation, at);
        self.record(new, Change::Created, None, at);
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

    /// Returns whether the transaction has changed no tag.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether it has changed this one.
    pub fn has(&self, tag: &T) -> bool {
        self.all.contains_key(tag)
    }

    /// Returns whether its changes leave the ids of a tag that are in the buffers as they are, and it took none from
    /// the row.
    pub fn leaves_buffers(&self, tag: &T) -> bool {
        self.all.get(tag).is_some_and(|own| own.issued.is_none() && own.worst() == Some(Change::Tuned))
    }

    /// The last id that it handed out of a tag that it changed.
    pub fn issued(&self, tag: &T) -> Option<i64> {
        self.all.get(tag)?.issued.map(|(_, id)| id)
    }

    /// The next id of a tag that it has changed, with the row that it comes from; None for all other tags.
    pub fn next<H: TransactionTagsHost<T>>(
        &mut self,
        tag: &T,
        clock: &impl Clock,
        host: &H,
    ) -> Result<Option<(TakenIds, TagRow)>, TransactionTagError<H::Error>> {
        let Some(own) = self.all.get_mut(tag) else { return Ok(None) };
        if own.last_change() == Some(Change::Gone) {
            return Err(TransactionTagError::Unknown);
        }
        let row = own.row_now(tag, clock, host)?;
        let range = row.one_after(own.issued).map_err(TransactionTagError::Exhausted)?;
        let day = row.period.day;
        own.issued = Some((day, range.first));
        // Should all be rolled back, nothing else tells of it.
        let names =
            own.former.iter().copied().chain(own.tag_generation.map(|tag_generation| (*tag, tag_generation)));
        for (tag, tag_generation) in names.filter(|_| holds(Guard::OwnHighWaterMark)) {
            host.raise_high_water_mark(&tag, HighWaterMark { tag_generation, day, id: range.first });
        }
        Ok(Some((TakenIds { range, day, prefetch: false }, row)))
    }

    /// Makes the changes known to all sessions, just before they are committed.
    pub fn settle<H: TransactionTagsHost<T>>(&self, host: &H) -> Result<(), H::Error> {
        self.all.iter().filter(|(tag, _)| host.is_there(tag)).try_for_each(|(tag, own)| own.settle(tag, host))
    }

    /// It is committed: what was handed out is in the rows by now.
    pub fn committed<H: TransactionTagsHost<T>>(&mut self, host: &H) {
        for (tag, own) in &self.all {
            let is_gone = own.last_change() == Some(Change::Gone);
            // The life that it was of is over.
            if is_gone || own.has(Change::Forced) || own.has(Change::Created) {
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

    /// It is over.
    pub fn forget(&mut self) {
        self.all = FxHashMap::default();
    }

    /// A subtransaction was rolled back, with all that began within it.
    pub fn undo(&mut self, aborted: S) {
        self.all.retain(|_, own| {
            own.undo(aborted);
            !own.changes.is_empty()
        });
    }
}

impl<T, S: Copy + PartialOrd> TransactionTag<T, S> {
    fn last_change(&self) -> Option<Change> {
        self.changes.last().map(|made| made.change)
    }

    /// The change that reaches furthest.
    fn worst(&self) -> Option<Change> {
        self.changes.iter().map(|made| made.change).max()
    }

    fn has(&self, change: Change) -> bool {
        self.changes.iter().any(|made| made.change == change)
    }

    fn add(&mut self, at: S, change: Change) {
        self.row = None;
        let before = if change == Change::Forced { self.issued.take() } else { None };
        self.changes.push(Made { at, change, before });
    }

    /// A high-water mark that the undone change forgot counts again.
    fn undo(&mut self, aborted: S) {
        self.row = None;
        for undone in self.changes.extract_if(.., |made| made.at >= aborted) {
            self.issued = self.issued.max(undone.before);
        }
    }

    /// The row, read anew after a change and when its period is over.
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
        // Another transaction may have handed out more, and rolled back.
        self.issued = self.issued.max(row.high_water_mark(host.high_water_mark(tag)));
        self.row = Some(row.clone());
        Ok(row)
    }

    fn settle<H: TransactionTagsHost<T>>(&self, tag: &T, host: &H) -> Result<(), H::Error> {
        let (Some(last), Some(worst)) = (self.last_change(), self.worst()) else { return Ok(()) };
        if last == Change::Gone || worst == Change::Created && self.issued.is_none() {
            host.leave(tag);
            return Ok(());
        }
        let Some(row) = host.read(tag)? else { return Ok(()) };
        host.write_format(tag, &row.format);
        let reserved = row.definition.max_id;
        let to_close = worst > Change::Tuned && holds(Guard::OwnCloses);
        let closed = if to_close { host.close(tag, reserved, row.tag_generation) } else { reserved };
        let reached = match self.issued {
            Some(issued) => row.above(Some(issued)).max_id,
            // Nothing of what is reserved beyond this was handed out, or will be.
            None if worst == Change::Altered && row.period == Period::FOREVER => closed,
            None => reserved,
        };
        if (reached != reserved || self.issued.is_some()) && holds(Guard::OwnWritten) {
            host.write(tag, reached, row.period)?;
        }
        Ok(())
    }
}
