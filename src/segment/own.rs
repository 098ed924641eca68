//! Tags whose rows the session's transaction has inserted, changed or deleted.
//!
//! Until it commits, nobody else can reserve from such a row: they don't see it, or find it locked. So the
//! transaction serves itself, one id after the other from its own memory, and just before it commits writes
//! down how far it came. What it did to the row reaches the other sessions then: their buffers are taken away
//! where they no longer hold, while the row's lock keeps everybody from filling them anew before the commit.

use super::error::SegmentError;
use super::held;
use super::place;
use crate::pg::catalog::Source;
use crate::pg::process::PerProcess;
use crate::pg::report::{raise, spi};
use crate::pg::tag::TagText;
use crate::pg::transaction::{self, Hooks, Subtransaction};
use crate::store::{registry, segment as store};
use pgrx::spi::SpiError;
use rustc_hash::{FxBuildHasher, FxHashMap};
use snowflake_ids_core::Clock;
use snowflake_ids_core::directory::Tag;
use snowflake_ids_core::reservation::{Floor, Reached, Row};
use snowflake_ids_core::segment::{Period, Taken};
use std::cell::{Cell, RefCell};
use std::sync::Once;

/// What was done to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing that concerns ids already reserved.
    Tuned,
    /// The rule by which ids are made.
    Altered,
    /// Where it stands, back to ids that were handed out: its owner says that none of them is in use.
    Forced,
    /// Where it stands.
    Moved,
    /// It was inserted.
    Created,
    /// It was deleted.
    Gone,
}

/// A change, and where.
struct Made {
    at: Subtransaction,
    change: Change,
    /// What was issued before, of one that forgets it.
    before: Option<Reached>,
}

#[derive(Default)]
struct Own {
    changes: Vec<Made>,
    /// The row, as of the last change.
    row: Option<Row>,
    /// The period and the id above which the next one must be, where the row doesn't know.
    issued: Option<Reached>,
    /// The life in which the tag was before the transaction, and is again should it be rolled back; None if there was none.
    life: Option<i64>,
    /// What the row was called before, in this transaction, and in which life.
    former: Vec<(Tag, i64)>,
}

/// A table of tags, and a tag in it.
type Name = (Source, Tag);

static OWN: PerProcess<RefCell<FxHashMap<Name, Own>>> =
    PerProcess::new(RefCell::new(FxHashMap::with_hasher(FxBuildHasher)));
/// Whether changes of rows are our own doing.
static QUIET: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// Takes note of a change, of a tag that was in this life. What workers and this module do to rows is none.
pub fn note(source: Source, tag: &Tag, change: Change, former_life: Option<i64>) {
    static HOOKS: Hooks = Hooks {
        watched: Once::new(),
        before_commit: settle,
        before_prepare: settle,
        committed: forget_floors,
        ended: forget,
        subtransaction_aborted: undo,
        subtransaction_committed: hand_up,
    };
    if QUIET.get() || is_elsewhere(source) {
        return;
    }
    transaction::watch(&HOOKS);
    transaction::stay_in_one_process();
    if let Some(held) = held::find(tag.as_bytes()) {
        held.set_place(None);
    }
    let new = || Own { life: former_life, ..Own::default() };
    OWN.borrow_mut().entry((source, *tag)).or_insert_with(new).add(Subtransaction::current(), change);
}

/// Takes note that a tag's row, in this life, is called otherwise from now on: it goes on where it is.
pub fn note_renamed(source: Source, old: &Tag, new: &Tag, life: Option<i64>) {
    note(source, old, Change::Gone, life);
    note(source, new, Change::Created, None);
    let noted =
        place::floor(source, old).filter(|floor| Some(floor.life) == life).map(|floor| floor.reached());
    let mut all = OWN.borrow_mut();
    let Some(was) = all.get(&(source, *old)) else { return };
    let issued = was.issued.max(noted);
    let former = was.former.iter().copied().chain(life.map(|life| (*old, life))).collect();
    if let Some(own) = all.get_mut(&(source, *new)) {
        own.issued = own.issued.max(issued);
        own.former = former;
    }
}

/// Whether ids come from a registry that is another server: then these rows say nothing.
fn is_elsewhere(source: Source) -> bool {
    source.as_owner(registry::in_use).unwrap_or_else(|error| raise(spi(&error)))
}

/// Whether the transaction has changed no tag.
pub fn is_empty() -> bool {
    OWN.borrow().is_empty()
}

/// Changes of rows in this process are not the user's from now on.
pub fn keep_quiet(quiet: bool) {
    QUIET.set(quiet);
}

/// Whether a row is being changed by this extension itself, so that no refill can be waited for.
pub fn is_quiet() -> bool {
    QUIET.get()
}

/// Whether the transaction's changes leave the ids of a tag that are in the buffers as they are, and it took none
/// from the row.
pub fn leaves_buffers(tag: &Tag) -> bool {
    with(tag, |own| own.issued.is_none() && own.worst() == Some(Change::Tuned)).unwrap_or(false)
}

/// The last id that the transaction handed out of a tag that it changed.
pub fn issued(tag: &Tag) -> Option<i64> {
    with(tag, |own| own.issued)?.map(|(_, id)| id)
}

/// The tag as it is known here; None where the transaction has changed none at all, which is found out fast.
fn name(tag: &Tag) -> Option<Name> {
    if OWN.borrow().is_empty() {
        return None;
    }
    Source::find().map(|source| (source, *tag))
}

fn with<T>(tag: &Tag, look: impl FnOnce(&Own) -> T) -> Option<T> {
    let name = name(tag)?;
    OWN.borrow().get(&name).map(look)
}

/// The next id of a tag that the transaction has changed, with the row it comes from; None for all other tags.
pub fn next(tag: &Tag, clock: &impl Clock) -> Result<Option<(Taken, Row)>, SegmentError> {
    let Some(name) = name(tag) else { return Ok(None) };
    let mut all = OWN.borrow_mut();
    let Some(own) = all.get_mut(&name) else { return Ok(None) };
    if own.last_change() == Some(Change::Gone) {
        return Err(SegmentError::unknown(tag));
    }
    if transaction::is_parallel() {
        return Err(SegmentError::Parallel(TagText(*tag).shown()));
    }
    // From now on nothing comes out of the buffers: they may yet get ids below these.
    if let Some(held) = held::find(tag.as_bytes()) {
        held.set_place(None);
    }
    let row = own.row_now(&name, clock)?;
    let range = row.one_after(own.issued).map_err(|exhausted| SegmentError::exhausted(tag, exhausted))?;
    let day = row.period.day;
    own.issued = Some((day, range.first));
    // Should all be rolled back, nothing else tells of it.
    let names = own.former.iter().copied().chain(own.life.map(|life| (*tag, life)));
    for (tag, life) in names {
        place::raise_floor(name.0, &tag, Floor { life, day, id: range.first });
    }
    Ok(Some((Taken { range, day, prefetch: false }, row)))
}

impl Own {
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

    fn add(&mut self, at: Subtransaction, change: Change) {
        self.row = None;
        let before = if change == Change::Forced { self.issued.take() } else { None };
        self.changes.push(Made { at, change, before });
    }

    /// What was forgotten by a change that is undone counts again, beside all that was issued since.
    fn undo(&mut self, aborted: Subtransaction) {
        self.row = None;
        for undone in self.changes.extract_if(.., |made| made.at == aborted) {
            self.issued = self.issued.max(undone.before);
        }
    }

    /// The row, read anew after a change and when its period is over.
    fn row_now(&mut self, (source, tag): &Name, clock: &impl Clock) -> Result<Row, SegmentError> {
        if let Some(row) = self.row.as_ref().filter(|row| !row.period.is_over(clock)) {
            return Ok(row.clone());
        }
        let row = source.as_owner(|| store::read(tag))?.ok_or(SegmentError::unknown(tag))?;
        // What another transaction handed out and rolled back.
        self.issued = self.issued.max(row.floor(place::floor(*source, tag)));
        self.row = Some(row.clone());
        Ok(row)
    }

    /// Makes the changes known to everybody, just before they are committed.
    fn settle(&self, (source, tag): &Name) -> Result<(), SpiError> {
        let (source, last, worst) = match (self.last_change(), self.worst()) {
            (Some(last), Some(worst)) => (*source, last, worst),
            _ => return Ok(()),
        };
        if last == Change::Gone || worst == Change::Created && self.issued.is_none() {
            place::leave(source, tag);
            return Ok(());
        }
        let Some(row) = store::read(tag)? else { return Ok(()) };
        place::write_format(source, tag, &row.format);
        let reserved = row.definition.max_id;
        let closed =
            if worst > Change::Tuned { place::close(source, tag, reserved, row.life) } else { reserved };
        let reached = match self.issued {
            Some(issued) => row.above(Some(issued)).max_id,
            // Nothing of what is reserved beyond this was handed out, or will be.
            None if worst == Change::Altered && row.period == Period::FOREVER => closed,
            None => reserved,
        };
        if reached != reserved || self.issued.is_some() {
            store::write(tag, reached, row.period)?;
        }
        Ok(())
    }
}

fn settle() {
    if OWN.borrow().is_empty() {
        return;
    }
    let all = OWN.take();
    keep_quiet(true);
    let settled = transaction::with_snapshot(|| {
        let mut there = all.iter().filter(|((source, _), _)| source.is_there());
        there.try_for_each(|(name, own)| name.0.as_owner(|| own.settle(name)))
    });
    keep_quiet(false);
    if let Err(error) = settled {
        raise(spi(&error));
    }
    OWN.replace(all);
}

/// What was handed out is in the rows by now.
fn forget_floors() {
    if let Ok(all) = OWN.try_borrow() {
        for ((source, tag), own) in all.iter() {
            let is_gone = own.last_change() == Some(Change::Gone);
            // The life that it was of is over.
            if is_gone || own.has(Change::Forced) || own.has(Change::Created) {
                place::clear_floor(*source, tag, None);
            } else if own.issued.is_some() {
                place::clear_floor(*source, tag, own.issued);
            }
            if is_gone {
                place::leave_unused(*source, tag);
            }
        }
    }
    forget();
}

fn forget() {
    keep_quiet(false);
    // Borrowed where the process ends in the middle of a call; then nobody asks any more.
    if let Ok(mut all) = OWN.try_borrow_mut() {
        *all = FxHashMap::default();
    }
}

fn undo(aborted: Subtransaction) {
    keep_quiet(false);
    let Ok(mut all) = OWN.try_borrow_mut() else { return };
    all.retain(|_, own| {
        own.undo(aborted);
        !own.changes.is_empty()
    });
}

fn hand_up(committed: Subtransaction, parent: Subtransaction) {
    for own in OWN.borrow_mut().values_mut() {
        for made in own.changes.iter_mut().filter(|made| made.at == committed) {
            made.at = parent;
        }
    }
}
