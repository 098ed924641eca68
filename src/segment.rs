//! Ids of a tag: dense, out of segments that a worker reserves ahead.
//!
//! | module | holds |
//! | --- | --- |
//! | [`failure`] | why a session got no id |
//! | [`held`] | what this session knows of tags |
//! | [`slot`] | what all sessions share of one |
//! | [`place`] | who has which slot |
//! | [`known`] | whether a tag exists, as far as a session can tell |
//! | [`visit`] | waiting at the slot of a tag that nobody has found yet |
//! | [`patience`] | for how long a call may wait |
//! | [`own`] | tags that this transaction has changed |
//! | [`privilege`] | who may do what with one |

pub mod failure;
pub mod held;
mod known;
pub mod own;
mod patience;
pub mod place;
pub mod privilege;
pub mod slot;
mod visit;

use crate::error::Unready;
use crate::pg::catalog::{self, Source};
use crate::pg::clock::SystemClock;
use crate::pg::server;
use crate::pg::shmem::segments::{Segments, segments};
use crate::pg::tag::{self, TagText};
use crate::pg::wait::Event;
use crate::settings;
use crate::worker;
use failure::TagFailure;
use held::Held;
use patience::Patience;
use pgrx::check_for_interrupts;
use slot::{Slot, Trouble};
use snowflake_ids_core::directory::Tag;
use snowflake_ids_core::request::Answer;
use snowflake_ids_core::reservation::Row;
use snowflake_ids_core::segment::{Miss, Taken};
use snowflake_ids_core::terms::Exhausted;
use std::sync::atomic::Ordering::Relaxed;
use visit::Visit;

/// The next id of a tag where nothing stands in its way; None where [`next`] has more to do. Calls nothing of the
/// server's that can fail.
#[inline]
pub fn next_at_once(held: &Held) -> Option<i64> {
    take_at_once(held).ok().map(|(_, taken)| taken.range.first)
}

/// Takes an id out of the buffers, and has the next range fetched where this one is the taker to ask for it.
#[inline]
fn take_at_once(held: &Held) -> Result<(&'static Slot, Taken), Miss> {
    let (slot, taken) = held.take()?;
    if taken.prefetch {
        ask_ahead(slot);
    }
    Ok((slot, taken))
}

/// The next id of a tag.
pub fn next(function: &'static str, bytes: &[u8]) -> Result<i64, TagFailure> {
    let (tag, segments) = ready(function, bytes)?;
    let patience = Patience::new();
    privilege::to_take(&tag, &patience)?;
    match take_own(segments, &tag, &patience)? {
        Some((taken, _)) => Ok(taken.range.first),
        None => take(segments, &tag, &patience).map(|(_, taken)| taken.range.first),
    }
}

/// The next number of a tag, in the tag's format.
pub fn next_text(function: &'static str, bytes: &[u8]) -> Result<String, TagFailure> {
    let (tag, segments) = ready(function, bytes)?;
    let patience = Patience::new();
    privilege::to_take(&tag, &patience)?;
    if let Some((taken, row)) = take_own(segments, &tag, &patience)? {
        return Ok(held::written(held::format_of(&row.format).as_ref(), taken.day, taken.range.first));
    }
    let (slot, taken) = take(segments, &tag, &patience)?;
    Ok(held::hold(&tag).write(slot, taken.day, taken.range.first))
}

/// The last id of a tag that this session got.
pub fn last(bytes: &[u8]) -> Result<i64, TagFailure> {
    let tag = tag::checked(bytes).map_err(TagFailure::BadTag)?;
    privilege::to_look(&tag, &Patience::new())?;
    held::find(bytes).and_then(Held::last).ok_or(TagFailure::NoLast(TagText(tag).shown()))
}

/// A tag that may be used, and the server's tags.
fn ready(function: &'static str, bytes: &[u8]) -> Result<(Tag, &'static Segments), TagFailure> {
    let segments = segments().ok_or(TagFailure::Unready(Unready::NotPreloaded, function))?;
    if server::in_recovery() {
        return Err(TagFailure::Unready(Unready::InRecovery, function));
    }
    Ok((tag::checked(bytes).map_err(TagFailure::BadTag)?, segments))
}

/// Takes an id of a tag that the transaction has changed. None for other tags, and while there are ids in the buffers
/// that the change does not concern.
fn take_own(
    segments: &'static Segments,
    tag: &Tag,
    patience: &Patience,
) -> Result<Option<(Taken, Row)>, TagFailure> {
    if own::leaves_buffers(tag) {
        let held = held::hold(tag);
        if held.place().is_none() {
            find_place(segments, held, tag, patience)?;
        }
        if held.has_ids() {
            return Ok(None);
        }
    }
    let own = own::next(tag, &SystemClock)?;
    if let Some((taken, _)) = &own {
        held::hold(tag).set_last(taken.range.first);
    }
    Ok(own)
}

/// Takes an id out of the buffers, and waits for one if there is none.
fn take(
    segments: &'static Segments,
    tag: &Tag,
    patience: &Patience,
) -> Result<(&'static Slot, Taken), TagFailure> {
    if let Some(held) = held::find(tag.as_bytes()) {
        return take_with(segments, held, tag, patience);
    }
    // Kept only if the tag is found: else each name that somebody tries would stay in memory.
    let held = Held::new(tag);
    let found = take_with(segments, &held, tag, patience)?;
    held::keep(held);
    Ok(found)
}

fn take_with(
    segments: &'static Segments,
    held: &Held,
    tag: &Tag,
    patience: &Patience,
) -> Result<(&'static Slot, Taken), TagFailure> {
    // From the moment on in which a place is found: what comes before the wait may fail.
    let mut visit = None;
    loop {
        // Again each time, for while a place is looked for, the server may have told of a change.
        held.set_permit(privilege::to_take(tag, patience)?);
        match take_at_once(held) {
            Ok(found) => return Ok(found),
            Err(Miss::Gone) => {
                drop(visit.take());
                find_place(segments, held, tag, patience)?;
                visit = held.place().map(|(slot, incarnation)| Visit::begin(slot, incarnation));
            }
            Err(Miss::Dry | Miss::Over) => {
                if let Some(found) = wait(held, tag, patience)? {
                    return Ok(found);
                }
            }
        }
    }
}

/// Finds the tag's place, or gives it one. It may be taken away before there is an id in it, and so again and again: not
/// beyond the time that a call may wait.
fn find_place(
    segments: &'static Segments,
    held: &Held,
    tag: &Tag,
    patience: &Patience,
) -> Result<(), TagFailure> {
    if patience.has_begun() {
        check_for_interrupts!();
        if patience.is_over() {
            return Err(no_refill(tag, patience, worker::trouble()));
        }
        // What was taken away may have been another table's: the one that this session knew was dropped. A statement
        // that began before is not told otherwise.
        catalog::take_in_changes();
    }
    catalog::on_change(held::forget_places);
    let source = Source::find().ok_or(TagFailure::NoTable)?;
    let creates = settings::segment_auto_create();
    held.set_place(Some(place::look_up(segments, source, tag, creates, patience.left())?));
    Ok(())
}

/// Asks for a refill; `creates`: of a tag that is to be made if there is none, for this call and not for those that come
/// after. Gives the ticket.
fn ask(slot: &Slot, creates: bool) -> u64 {
    segments().map_or(0, |segments| segments.ask(slot, creates))
}

/// Asks for the next range while this one lasts.
#[cold]
fn ask_ahead(slot: &Slot) {
    ask(slot, false);
    worker::call(server::database());
}

/// Waits for a refill. None where the tag's place has gone meanwhile, and has to be looked up again.
#[cold]
fn wait(held: &Held, tag: &Tag, patience: &Patience) -> Result<Option<(&'static Slot, Taken)>, TagFailure> {
    let Some((slot, incarnation)) = held.place() else { return Ok(None) };
    let _visit = Visit::begin(slot, incarnation);
    if own::is_quiet() {
        return Err(TagFailure::Within(TagText(*tag).shown()));
    }
    // Buffers that were never filled, or were taken away, say nothing of its appetite.
    slot.waits.begin(slot.segment.shelves().current.is_some());
    let creates = settings::segment_auto_create();
    let ask = || ask(slot, creates);
    let mut ticket = ask();
    let found = slot.answered.wait(Event::Refill, patience.left(), || {
        match take_at_once(held) {
            Ok(found) => return Some(Ok(Some(found))),
            // Others who were told the same may have given the place back already.
            Err(Miss::Gone) if slot.request.answer_to(ticket) != Some(Answer::Unknown) => {
                return Some(Ok(None));
            }
            Err(_) => {}
        }
        match slot.request.answer_to(ticket) {
            Some(Answer::Unknown) => return Some(Err(TagFailure::unknown(tag))),
            Some(Answer::Exhausted) => {
                let max_value = slot.supplies.max_value.load(Relaxed);
                return Some(Err(TagFailure::exhausted(tag, Exhausted { max_value })));
            }
            Some(Answer::NoTable) => return Some(Err(TagFailure::NoTable)),
            // Others were faster.
            Some(Answer::Supplied) => ticket = ask(),
            None => {}
        }
        // Every time: the worker that was called last may have died.
        worker::call(server::database());
        None
    });
    if slot.segment.incarnation() == incarnation {
        slot.waits.end(patience.waited());
    }
    let trouble = slot.trouble.get().or_else(worker::trouble);
    let found = found.unwrap_or_else(|| Err(no_refill(tag, patience, trouble)));
    if let (Err(TagFailure::Unknown(_)), Some(source)) = (&found, Source::find()) {
        place::leave_unused(source, tag);
    }
    found
}

#[cold]
fn no_refill(tag: &Tag, patience: &Patience, trouble: Option<Trouble>) -> TagFailure {
    TagFailure::NoRefill { tag: TagText(*tag).shown(), limit: patience.limit(), trouble }
}
