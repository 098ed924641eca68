//! Tags whose rows this transaction has inserted, changed or deleted. [`snowflake_ids_core::tag::transaction_tags`]
//! decides how these tags are handled.

use super::cache;
use super::error::SegmentError;
use super::slot;
use crate::pg::catalog::Source;
use crate::pg::per_process::PerProcess;
use crate::pg::report::{raise, report, spi};
use crate::pg::tag_text::TagText;
use crate::pg::transaction::{self, Hooks, Subtransaction};
use crate::store::tables::SEGMENT;
use crate::store::{registry, tag as store};
use pgrx::PgLogLevel;
use pgrx::spi::SpiError;
use snowflake_ids_core::Clock;
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::reservation::{HighWaterMark, Reached, TagRow};
use snowflake_ids_core::tag::segment::{Period, TakenIds};
use snowflake_ids_core::tag::transaction_tags::{TransactionTagError, TransactionTags, TransactionTagsHost};
use std::cell::{Cell, RefCell};

pub use snowflake_ids_core::tag::transaction_tags::TagChange;

type TagOfTable = (Source, Tag);

static OWN: PerProcess<RefCell<TransactionTags<TagOfTable, Subtransaction>>> =
    PerProcess::new(RefCell::new(TransactionTags::NONE));
/// True while this extension itself changes rows of tags.
static QUIET: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// True if the user has already been warned in this transaction that there is no memory for a high-water mark.
static WARNED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

fn warn_of_no_high_water_mark(tag: &Tag) {
    let tag = TagText(*tag).shown();
    report(SegmentError::NoHighWaterMark(tag)).report(PgLogLevel::WARNING);
}

struct TagsInSession;

impl TransactionTagsHost<TagOfTable> for TagsInSession {
    type Error = SpiError;

    fn is_there(&self, (source, _): &TagOfTable) -> bool {
        source.is_there()
    }

    fn read(&self, (source, tag): &TagOfTable) -> Result<Option<TagRow>, SpiError> {
        source.as_owner(|| store::read(tag))
    }

    fn write(&self, (source, tag): &TagOfTable, max_id: i64, period: Period) -> Result<(), SpiError> {
        source.as_owner(|| store::write(tag, max_id, period))
    }

    fn high_water_mark(&self, (source, tag): &TagOfTable) -> Option<HighWaterMark> {
        slot::high_water_mark(*source, tag)
    }

    fn raise_high_water_mark(&self, (source, tag): &TagOfTable, high_water_mark: HighWaterMark) {
        if !slot::raise_high_water_mark(*source, tag, high_water_mark) && !WARNED.replace(true) {
            warn_of_no_high_water_mark(tag);
        }
    }

    fn clear_high_water_mark(&self, (source, tag): &TagOfTable, known: Option<Reached>) {
        slot::clear_high_water_mark(*source, tag, known);
    }

    fn close(&self, (source, tag): &TagOfTable, reserved: i64, tag_generation: i64) -> i64 {
        slot::close(*source, tag, reserved, tag_generation)
    }

    fn leave(&self, (source, tag): &TagOfTable) {
        slot::leave_if(*source, tag, |_| true);
    }

    fn leave_unused(&self, (source, tag): &TagOfTable) {
        slot::leave_unused(*source, tag);
    }

    fn write_format(&self, (source, tag): &TagOfTable, format: &str) {
        slot::write_format(*source, tag, format);
    }
}

/// Records a change of a tag, with the tag's generation before the change. Ignores changes that the extension itself makes,
/// and all changes while ids come from a registry on another server.
pub fn record(source: Source, tag: &Tag, change: TagChange, former_tag_generation: Option<i64>) {
    if begin(source, &[tag]) {
        OWN.borrow_mut().record((source, *tag), change, former_tag_generation, Subtransaction::current());
    }
}

/// Records that a tag was renamed. Its ids under the new name continue above the high-water mark of the old name.
pub fn record_renamed(source: Source, old: &Tag, new: &Tag, tag_generation: Option<i64>) {
    if begin(source, &[old, new]) {
        let (recorded, at) = (slot::high_water_mark(source, old), Subtransaction::current());
        OWN.borrow_mut().record_renamed((source, *old), (source, *new), tag_generation, recorded, at);
    }
}

/// Returns whether a change of these tags must be recorded. If so, installs the hooks for the transaction's end, and makes
/// this session stop taking ids from the tags' buffers.
fn begin(source: Source, tags: &[&Tag]) -> bool {
    static HOOKS: Hooks = Hooks {
        before_commit: settle,
        before_prepare: settle,
        committed,
        ended: forget,
        subtransaction_aborted: Some(undo),
        ..Hooks::none()
    };
    if QUIET.get() || is_elsewhere(source) {
        return false;
    }
    transaction::watch(&HOOKS);
    transaction::stay_in_one_process();
    for tag in tags {
        forget_slot(tag);
    }
    true
}

/// Removes the tag's slot from the session's cache, so that the session takes no ids from the buffers. A refill may have
/// published ids that are below the transaction's ids.
fn forget_slot(tag: &Tag) {
    if let Some(cached) = cache::find(tag.as_bytes()) {
        cached.slot_index.set(None);
    }
}

/// Returns whether ids come from a registry on another server. In that case the rows of tags in this database have no
/// effect.
fn is_elsewhere(source: Source) -> bool {
    source.as_owner(registry::in_use).unwrap_or_else(|error| raise(spi(error)))
}

pub fn is_empty() -> bool {
    OWN.borrow().is_empty()
}

/// Sets whether later changes of tags' rows in this process are made by the extension itself (true) or by the user (false).
pub fn keep_quiet(quiet: bool) {
    QUIET.set(quiet);
}

/// Returns whether this extension itself is changing a tag's row. During the change, a trigger's call for ids must not wait for
/// a refill.
pub fn is_quiet() -> bool {
    QUIET.get()
}

/// Returns whether the transaction has changed the tag but may still use the tag's buffers. The transaction may use the
/// buffers if its changes leave the buffers valid, and if the transaction took no id from the row.
pub fn leaves_buffers(tag: &Tag) -> bool {
    name(tag).is_some_and(|name| OWN.borrow().leaves_buffers(&name))
}

/// Returns the last id that the transaction took from the tag's row, if the transaction has changed this tag.
pub fn issued(tag: &Tag) -> Option<i64> {
    OWN.borrow().issued(&name(tag)?)
}

/// Returns the tag with its table; returns None without a look-up if the transaction has changed no tag at all.
fn name(tag: &Tag) -> Option<TagOfTable> {
    if is_empty() {
        return None;
    }
    SEGMENT.find().map(|source| (source, *tag))
}

/// Returns the next id of a tag that the transaction has changed, with the tag's row; None for all other tags.
pub fn next(tag: &Tag, clock: &impl Clock) -> Result<Option<(TakenIds, TagRow)>, SegmentError> {
    let Some(name) = name(tag) else { return Ok(None) };
    let mut all = OWN.borrow_mut();
    if all.has(&name) {
        if transaction::is_parallel() {
            return Err(SegmentError::Parallel(TagText(*tag).shown()));
        }
        forget_slot(tag);
    }
    all.next(&name, clock, &TagsInSession).map_err(|error| match error {
        TransactionTagError::Unknown => SegmentError::unknown(tag),
        TransactionTagError::Exhausted(exhausted) => SegmentError::exhausted(tag, exhausted),
        TransactionTagError::Here(error) => error.into(),
    })
}

fn settle() {
    if is_empty() {
        return;
    }
    let all = OWN.take();
    keep_quiet(true);
    let settled = transaction::with_snapshot(|| all.settle(&TagsInSession));
    keep_quiet(false);
    if let Err(error) = settled {
        raise(spi(error));
    }
    OWN.replace(all);
}

fn committed() {
    // The borrow fails if the process exits in the middle of a call. Then no code needs these tags.
    if let Ok(mut all) = OWN.try_borrow_mut() {
        all.committed(&TagsInSession);
    }
    forget();
}

fn forget() {
    keep_quiet(false);
    WARNED.set(false);
    if let Ok(mut all) = OWN.try_borrow_mut() {
        all.forget();
    }
}

fn undo(aborted: Subtransaction) {
    keep_quiet(false);
    if let Ok(mut all) = OWN.try_borrow_mut() {
        all.undo(aborted);
    }
}
