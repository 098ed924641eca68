//! Ids of a tag: dense, out of segments that a worker reserves ahead.

pub mod cache;
pub mod error;
pub mod privilege;
pub mod slot;
pub mod timeout;
pub mod transaction_tags;

use crate::pg::catalog::{self, Source};
use crate::pg::clock::{SystemClock, uptime};
use crate::pg::tag::{self, TagText};
use crate::pg::wait::Event;
use crate::pg::{role, server, transaction};
use crate::settings;
use crate::shared::generator;
use crate::shared::segments::{self, Segments, segments};
use crate::shared::slot::Slot;
use crate::store::segment as store;
use crate::store::tables::SEGMENT;
use cache::CachedTag;
use error::{Column, SegmentError};
use pgrx::check_for_interrupts;
use slot::Waiter;
use snowflake_ids_core::error::NotReadyError;
use snowflake_ids_core::registry::error::Unregistered;
use snowflake_ids_core::sequence::bound_sequence::{BoundRun, Increment};
use snowflake_ids_core::sequence::definition::{Exhausted, Range};
use snowflake_ids_core::sequence::directory::Tag;
use snowflake_ids_core::sequence::privilege::Action;
use snowflake_ids_core::sequence::reservation::TagRow;
use snowflake_ids_core::sequence::segment::{Miss, TakenIds};
use snowflake_ids_core::sequence::slot::Trouble;
use snowflake_ids_core::sequence::tickets::Answer;
use std::num::NonZeroU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use timeout::SegmentTimeout;

const ONE: NonZeroU32 = NonZeroU32::MIN;

/// The next id of a tag where nothing stands in its way; None where [`next`] has more to do. Calls nothing of the
/// server's that can fail.
#[inline]
pub fn next_at_once(cached: &CachedTag) -> Option<i64> {
    take_at_once(cached, ONE).ok().map(|(_, taken)| taken.range.first)
}

/// Takes ids out of the buffers, one at least and so many at most, and has the next range fetched where this one is the taker to ask
/// for it.
#[inline]
fn take_at_once(cached: &CachedTag, want: NonZeroU32) -> Result<(&'static Slot, TakenIds), Miss> {
    let (slot, taken) = cached.take_up_to(want)?;
    if taken.prefetch {
        ask_ahead(slot);
    }
    Ok((slot, taken))
}

pub fn next(function: &'static str, bytes: &[u8]) -> Result<i64, SegmentError> {
    next_range(function, bytes, ONE).map(|range| range.first)
}

/// The next ids of a tag, one at least and so many at most.
fn next_range(function: &'static str, bytes: &[u8], want: NonZeroU32) -> Result<Range, SegmentError> {
    let (tag, segments) = ready(function, bytes)?;
    match take(segments, &tag, &SegmentTimeout::new(), want)? {
        Served::Buffers((_, taken)) | Served::Own(taken, _) => Ok(taken.range),
    }
}

/// The next number of a sequence that is bound to a tag.
pub fn next_of_sequence(
    function: &'static str,
    tag: &Tag,
    increment: Increment,
) -> Result<i64, SegmentError> {
    let bytes = tag.as_bytes();
    if increment.is_one() {
        return cache::find(bytes).and_then(next_at_once).map_or_else(|| next(function, bytes), Ok);
    }
    let mut run = BoundRun::new(increment);
    loop {
        // The first one, too, where the buffers are known and filled: it is part of the row then.
        let cached = cache::find(bytes).map(|cached| take_at_once(cached, run.missing()));
        let range = match cached {
            Some(Ok((_, taken))) => taken.range,
            _ => next_range(function, bytes, run.missing())?,
        };
        if let Some(number) = run.add(range)? {
            return Ok(number);
        }
        check_for_interrupts!();
    }
}

/// The next number of a tag, in the tag's format.
pub fn next_text(function: &'static str, bytes: &[u8]) -> Result<String, SegmentError> {
    let (tag, segments) = ready(function, bytes)?;
    let timeout = SegmentTimeout::new();
    Ok(match take(segments, &tag, &timeout, ONE)? {
        Served::Buffers((slot, taken)) => cache::hold(&tag).write(slot, taken.day, taken.range.first),
        Served::Own(taken, row) => {
            cache::written(cache::format_of(&row.format).as_ref(), taken.day, taken.range.first)
        }
    })
}

/// The last id of a tag that this session got.
pub fn last(bytes: &[u8]) -> Result<i64, SegmentError> {
    let tag = tag::checked(bytes).map_err(SegmentError::BadTag)?;
    privilege::check(&tag, Action::Look, role::current(), Some(&SegmentTimeout::new()))?;
    cache::find(bytes).and_then(|cached| cached.last.get()).ok_or(SegmentError::NoLast(TagText(tag).shown()))
}

/// A tag that may be used, and the server's tags.
fn ready(function: &'static str, bytes: &[u8]) -> Result<(Tag, &'static Segments), SegmentError> {
    let segments = segments().ok_or(NotReadyError::NotPreloaded(function))?;
    if server::in_recovery() {
        return Err(NotReadyError::InRecovery(function).into());
    }
    Ok((tag::checked(bytes).map_err(SegmentError::BadTag)?, segments))
}

/// The source of an id of a tag.
pub enum Served<T> {
    Buffers(T),
    /// The transaction, which has changed the tag: the id, and the row that it is above.
    Own(TakenIds, TagRow),
}

/// For whom the buffers of a tag are used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    /// The caller, who must have the right to take ids, and may have the tag created by that. It wants so many.
    Caller { want: NonZeroU32 },
    /// This extension, for something else that the tag serves: whatever the caller may do with it, and never one that there is not.
    Extension,
}

impl User {
    fn creates(self) -> bool {
        self != Self::Extension && settings::segment_auto_create()
    }

    fn want(self) -> NonZeroU32 {
        match self {
            Self::Caller { want } => want,
            Self::Extension => ONE,
        }
    }
}

fn take(
    segments: &'static Segments,
    tag: &Tag,
    timeout: &SegmentTimeout,
    want: NonZeroU32,
) -> Result<Served<(&'static Slot, TakenIds)>, SegmentError> {
    privilege::to_take(tag, timeout)?;
    let taken =
        use_buffers(segments, tag, timeout, User::Caller { want }, |cached| take_at_once(cached, want));
    match taken {
        Err(SegmentError::Unknown { column: None, .. }) => {
            Err(SegmentError::unknown_of(tag, column_with_ids(tag)?))
        }
        taken => taken,
    }
}

/// A column of a table with rows that takes ids of a tag by its default, where there is no such tag: after a dump of one table was
/// restored, and on a logical subscriber. Its rows may have any id.
fn column_with_ids(tag: &Tag) -> Result<Option<Column>, SegmentError> {
    let source = SEGMENT.find().filter(|_| !transaction::is_parallel());
    let Some(source) = source else { return Ok(None) };
    let found = source.as_owner(|| store::column_with_ids(tag))?;
    Ok(found.map(|(relation, attribute)| Column { relation, attribute }))
}

/// Has something made of the buffers of a tag that serves something else of this extension. `take` is called again after each refill.
pub fn serve<T>(
    function: &'static str,
    bytes: &[u8],
    take: impl Fn(&'static Slot, u64) -> Result<T, Miss>,
) -> Result<Served<T>, SegmentError> {
    let (tag, segments) = ready(function, bytes)?;
    use_buffers(segments, &tag, &SegmentTimeout::new(), User::Extension, |cached| {
        let (slot, slot_generation) = cached.slot_index.get().ok_or(Miss::Gone)?;
        take(slot, slot_generation)
    })
}

fn use_buffers<T>(
    segments: &'static Segments,
    tag: &Tag,
    timeout: &SegmentTimeout,
    user: User,
    take: impl Fn(&CachedTag) -> Result<T, Miss>,
) -> Result<Served<T>, SegmentError> {
    let known = if transaction_tags::leaves_buffers(tag) {
        Some(cache::hold(tag))
    } else if let Some((taken, row)) = take_own(tag)? {
        return Ok(Served::Own(taken, row));
    } else {
        cache::find(tag.as_bytes())
    };
    if let Some(cached) = known {
        return use_held(segments, cached, tag, timeout, user, take);
    }
    // Kept only if the tag is found: else each name that a user tries would stay in memory.
    let cached = CachedTag::new(tag);
    let served = use_held(segments, &cached, tag, timeout, user, take)?;
    cache::keep(cached);
    Ok(served)
}

fn use_held<T>(
    segments: &'static Segments,
    cached: &CachedTag,
    tag: &Tag,
    timeout: &SegmentTimeout,
    user: User,
    take: impl Fn(&CachedTag) -> Result<T, Miss>,
) -> Result<Served<T>, SegmentError> {
    // From the moment on in which a slot is given: it stays until there is an id.
    let mut waiter = None;
    // One that has given no ids yet is not made before it is seen that no column has ids of it.
    let mut may_create = false;
    loop {
        // Again each time, for while a slot is looked for, the server may have told of a change.
        if user != User::Extension {
            cached.permit.set(privilege::to_take(tag, timeout)?);
        }
        match take(cached) {
            Ok(made) => return Ok(Served::Buffers(made)),
            Err(Miss::Gone) => {
                drop(waiter.take());
                waiter = find_slot(segments, cached, tag, timeout, user)?;
            }
            Err(Miss::Empty | Miss::Over) => {
                // A refill would wait for the end of the transaction that has the row locked: this one.
                if let Some((taken, row)) = take_own(tag)? {
                    return Ok(Served::Own(taken, row));
                }
                let is_known =
                    cached.slot_index.get().is_some_and(|(slot, _)| !slot.unverified.load(Relaxed));
                let creates = user.creates() && (is_known || may_create);
                match wait(cached, tag, timeout, user.want(), creates, || take(cached)) {
                    Err(SegmentError::Unknown { .. }) if user.creates() && !creates => {
                        match column_with_ids(tag)? {
                            None => may_create = true,
                            column => return Err(SegmentError::unknown_of(tag, column)),
                        }
                    }
                    made => {
                        if let Some(made) = made? {
                            return Ok(Served::Buffers(made));
                        }
                    }
                }
            }
        }
    }
}

/// Takes an id of a tag that the transaction has changed; None for other tags. From then on none comes out of the buffers.
fn take_own(tag: &Tag) -> Result<Option<(TakenIds, TagRow)>, SegmentError> {
    let own = transaction_tags::next(tag, &SystemClock)?;
    if let Some((taken, _)) = &own {
        cache::hold(tag).last.set(Some(taken.range.first));
    }
    Ok(own)
}

/// Finds the tag's slot, or gives it one, where this call waits from then on. It may be taken away all the same, and so again and
/// again: not beyond the time that a call may wait.
fn find_slot(
    segments: &'static Segments,
    cached: &CachedTag,
    tag: &Tag,
    timeout: &SegmentTimeout,
    user: User,
) -> Result<Option<Waiter>, SegmentError> {
    if timeout.has_begun() {
        check_for_interrupts!();
        if timeout.is_over() {
            return Err(no_refill(tag, timeout, segments::trouble()));
        }
        // The slot may have been of a table that was dropped. A statement that began before is not told otherwise.
        catalog::take_in_changes();
    }
    SEGMENT.on_change(cache::forget_slots);
    let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
    let found = slot::look_up(segments, source, tag, user.creates(), user.want())?;
    timeout.begin();
    let found = found.ok_or_else(|| no_refill(tag, timeout, None))?;
    cached.slot_index.set(Some((found.slot, found.slot_generation)));
    Ok(found.waiter)
}

/// Asks for a refill; `creates`: of a tag that is to be made if there is none, for this call and not for those that come
/// after. Gives the ticket.
fn ask(slot: &Slot, creates: bool) -> u64 {
    segments().map_or(0, |segments| segments.ask(slot, creates))
}

/// Asks for the next range while this one lasts.
#[cold]
pub fn ask_ahead(slot: &Slot) {
    ask(slot, false);
    segments::wake_workers(server::database());
}

/// A wait, which is counted however it ends: errors and cancels unwind through it.
struct CountedWait<'a> {
    slot: &'static Slot,
    slot_generation: u64,
    timeout: &'a SegmentTimeout,
    began: Duration,
}

impl<'a> CountedWait<'a> {
    fn begin(slot: &'static Slot, slot_generation: u64, timeout: &'a SegmentTimeout) -> Self {
        // Buffers that were never filled, were taken away, or are kept small say nothing of its appetite.
        slot.begin_wait(
            slot.segment.buffer_states().current.is_some() && slot.slow_start().is_none(),
            uptime(),
        );
        Self { slot, slot_generation, timeout, began: uptime() }
    }
}

impl Drop for CountedWait<'_> {
    fn drop(&mut self) {
        if self.slot.segment.slot_generation() == self.slot_generation {
            self.slot.end_wait(uptime().saturating_sub(self.began), self.timeout.waited());
        }
    }
}

/// Waits for a refill. None where the tag's slot has gone meanwhile, and has to be looked up again.
#[cold]
fn wait<T>(
    cached: &CachedTag,
    tag: &Tag,
    timeout: &SegmentTimeout,
    want: NonZeroU32,
    creates: bool,
    take: impl Fn() -> Result<T, Miss>,
) -> Result<Option<T>, SegmentError> {
    let Some((slot, slot_generation)) = cached.slot_index.get() else { return Ok(None) };
    let Some(_waiter) = Waiter::begin(slot, slot_generation, want) else { return Ok(None) };
    if transaction_tags::is_quiet() {
        return Err(SegmentError::Within(TagText(*tag).shown()));
    }
    let _wait = CountedWait::begin(slot, slot_generation, timeout);
    let ask = || ask(slot, creates);
    let mut ticket = ask();
    let found = slot.answered.wait(Event::Refill, timeout.left(), || {
        match take() {
            Ok(found) => return Some(Ok(Some(found))),
            // Others that were told the same may have given the slot back already.
            Err(Miss::Gone) if slot.request.answer_to(ticket) != Some(Answer::Unknown) => {
                return Some(Ok(None));
            }
            Err(_) => {}
        }
        match slot.request.answer_to(ticket) {
            Some(Answer::Unknown) => return Some(Err(SegmentError::unknown(tag))),
            Some(Answer::Exhausted) => {
                let max_value = slot.max_value.load(Relaxed);
                return Some(Err(SegmentError::exhausted(tag, Exhausted { max_value })));
            }
            // The worker does not see the table of a transaction that has not committed yet. Tags of its own are served above.
            Some(Answer::NoTable) if SEGMENT.find().is_some_and(Source::is_new) => {
                return Some(Err(SegmentError::unknown(tag)));
            }
            Some(Answer::NoTable) => return Some(Err(SegmentError::NoTable)),
            Some(Answer::NoRegistry) => return Some(Err(Unregistered.into())),
            // Others were faster.
            Some(Answer::Supplied) => ticket = ask(),
            None => {}
        }
        // Every time: the worker that was called last may have died.
        segments::wake_workers(server::database());
        None
    });
    let trouble = slot.trouble().or_else(segments::trouble);
    let found = found.unwrap_or_else(|| Err(no_refill(tag, timeout, trouble)));
    if let (Err(SegmentError::Unknown { .. }), Some(source)) = (&found, SEGMENT.find()) {
        slot::leave_unused(source, tag);
    }
    found
}

#[cold]
fn no_refill(tag: &Tag, timeout: &SegmentTimeout, trouble: Option<Trouble>) -> SegmentError {
    if let Some(shared) = generator::shared() {
        shared.count_failure();
    }
    SegmentError::no_refill(tag, timeout.limit(), trouble)
}
