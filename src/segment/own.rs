//! Tags whose rows the session's transaction has inserted, changed or deleted: what [`snowflake_ids_core::sequence::own`] touches.

use super::error::SegmentError;
use super::held;
use super::place;
use crate::pg::catalog::Source;
use crate::pg::process::PerProcess;
use crate::pg::report::{raise, spi};
use crate::pg::tag::TagText;
use crate::pg::transaction::{self, Hooks, Subtransaction};
use crate::store::tables::SEGMENT;
use crate::store::{registry, segment as store};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::SpiError;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name};
use snowflake_ids_core::Clock;
use snowflake_ids_core::sequence::directory::Tag;
use snowflake_ids_core::sequence::own::{OwnError, OwnHost, OwnTags};
use snowflake_ids_core::sequence::reservation::{Floor, Reached, TagRow};
use snowflake_ids_core::sequence::segment::{Period, Taken};
use std::cell::{Cell, RefCell};

pub use snowflake_ids_core::sequence::own::Change;

type TagOfTable = (Source, Tag);

static OWN: PerProcess<RefCell<OwnTags<TagOfTable, Subtransaction>>> =
    PerProcess::new(RefCell::new(OwnTags::NONE));
/// True if changes of rows are our own doing.
static QUIET: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// True if the user was told that an id of the transaction could not be noted.
static WARNED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

fn warn_of_no_floor(tag: &Tag) {
    let message =
        format!("could not note the ids of segment tag \"{}\" for a rollback", TagText(*tag).shown());
    ErrorReport::new(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, message, function_name!())
        .set_detail("Transactions have left such notes of as many tags as there is memory for.")
        .set_hint("Should this transaction be rolled back, these ids may come again. Notes go when their tags are used, and there are more with a higher snowflake_ids.max_tags.")
        .report(PgLogLevel::WARNING);
}

struct OwnTagsHost;

impl OwnHost<TagOfTable> for OwnTagsHost {
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

    fn floor(&self, (source, tag): &TagOfTable) -> Option<Floor> {
        place::floor(*source, tag)
    }

    fn raise_floor(&self, (source, tag): &TagOfTable, floor: Floor) {
        if !place::raise_floor(*source, tag, floor) && !WARNED.replace(true) {
            warn_of_no_floor(tag);
        }
    }

    fn clear_floor(&self, (source, tag): &TagOfTable, known: Option<Reached>) {
        place::clear_floor(*source, tag, known);
    }

    fn close(&self, (source, tag): &TagOfTable, reserved: i64, life: i64) -> i64 {
        place::close(*source, tag, reserved, life)
    }

    fn leave(&self, (source, tag): &TagOfTable) {
        place::leave_if(*source, tag, |_| true);
    }

    fn leave_unused(&self, (source, tag): &TagOfTable) {
        place::leave_unused(*source, tag);
    }

    fn write_format(&self, (source, tag): &TagOfTable, format: &str) {
        place::write_format(*source, tag, format);
    }
}

/// Takes note of a change, of a tag that was in this life. Changes by workers and this module do not count.
pub fn note(source: Source, tag: &Tag, change: Change, former_life: Option<i64>) {
    if begin(source, &[tag]) {
        OWN.borrow_mut().note((source, *tag), change, former_life, Subtransaction::current());
    }
}

/// Takes note that a tag's row, in this life, is called otherwise from now on: it goes on where it is.
pub fn note_renamed(source: Source, old: &Tag, new: &Tag, life: Option<i64>) {
    if begin(source, &[old, new]) {
        let (noted, at) = (place::floor(source, old), Subtransaction::current());
        OWN.borrow_mut().note_renamed((source, *old), (source, *new), life, noted, at);
    }
}

/// Returns whether a change of these tags counts; if so, the transaction's end is watched from now on.
fn begin(source: Source, tags: &[&Tag]) -> bool {
    static HOOKS: Hooks = Hooks {
        before_commit: settle,
        before_prepare: settle,
        committed,
        ended: forget,
        subtransaction_aborted: undo,
        ..Hooks::none()
    };
    if QUIET.get() || is_elsewhere(source) {
        return false;
    }
    transaction::watch(&HOOKS);
    transaction::stay_in_one_process();
    for tag in tags {
        forget_place(tag);
    }
    true
}

/// From now on nothing comes out of the buffers: they may yet get ids below those of the transaction.
fn forget_place(tag: &Tag) {
    if let Some(held) = held::find(tag.as_bytes()) {
        held.place.set(None);
    }
}

/// Returns whether ids come from a registry that is another server: then these rows say nothing.
fn is_elsewhere(source: Source) -> bool {
    source.as_owner(registry::in_use).unwrap_or_else(|error| raise(spi(&error)))
}

pub fn is_empty() -> bool {
    OWN.borrow().is_empty()
}

/// Changes of rows in this process are not the user's from now on.
pub fn keep_quiet(quiet: bool) {
    QUIET.set(quiet);
}

/// Returns whether a row is being changed by this extension itself, so that no refill can be waited for.
pub fn is_quiet() -> bool {
    QUIET.get()
}

/// Returns whether the transaction's changes leave the ids of a tag that are in the buffers as they are, and it took
/// none from the row.
pub fn leaves_buffers(tag: &Tag) -> bool {
    name(tag).is_some_and(|name| OWN.borrow().leaves_buffers(&name))
}

/// The last id that the transaction handed out of a tag that it changed.
pub fn issued(tag: &Tag) -> Option<i64> {
    OWN.borrow().issued(&name(tag)?)
}

/// The tag as it is known here; None where the transaction has changed none at all, which is found out fast.
fn name(tag: &Tag) -> Option<TagOfTable> {
    if is_empty() {
        return None;
    }
    SEGMENT.find().map(|source| (source, *tag))
}

/// The next id of a tag that the transaction has changed, with the row it comes from; None for all other tags.
pub fn next(tag: &Tag, clock: &impl Clock) -> Result<Option<(Taken, TagRow)>, SegmentError> {
    let Some(name) = name(tag) else { return Ok(None) };
    let mut all = OWN.borrow_mut();
    if all.has(&name) {
        if transaction::is_parallel() {
            return Err(SegmentError::Parallel(TagText(*tag).shown()));
        }
        forget_place(tag);
    }
    all.next(&name, clock, &OwnTagsHost).map_err(|error| match error {
        OwnError::Unknown => SegmentError::unknown(tag),
        OwnError::Exhausted(exhausted) => SegmentError::exhausted(tag, exhausted),
        OwnError::Here(error) => error.into(),
    })
}

fn settle() {
    if is_empty() {
        return;
    }
    let all = OWN.take();
    keep_quiet(true);
    let settled = transaction::with_snapshot(|| all.settle(&OwnTagsHost));
    keep_quiet(false);
    if let Err(error) = settled {
        raise(spi(&error));
    }
    OWN.replace(all);
}

fn committed() {
    // Borrowed where the process ends in the middle of a call; then nothing asks any more.
    if let Ok(mut all) = OWN.try_borrow_mut() {
        all.committed(&OwnTagsHost);
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
