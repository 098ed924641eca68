//! Ids of tags (named id ranges). A background worker reserves the ids in advance, in segments.

pub mod cache;
pub mod error;
pub mod privilege;
pub mod slot;
pub mod timeout;
pub mod transaction_tags;

use crate::issuer;
use crate::pg::catalog::{self, Source};
use crate::pg::clock::{SystemClock, uptime};
use crate::pg::tag_text::{self, TagText};
use crate::pg::wait::Event;
use crate::pg::{role, server, transaction};
use crate::settings;
use crate::shared::generator::SHARED;
use crate::shared::registries;
use crate::shared::segments::{self, SEGMENTS, Segments};
use crate::shared::slot::Slot;
use crate::store::tables::SEGMENT;
use crate::store::tag as store;
use cache::CachedTag;
use error::{ColumnOfTag, SegmentError};
use pgrx::check_for_interrupts;
use slot::Waiter;
use snowflake_ids_core::bound::{BoundRun, Increment};
use snowflake_ids_core::error::NotReadyError;
use snowflake_ids_core::registry::error::Unregistered;
use snowflake_ids_core::tag::definition::{Exhausted, Range};
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::privilege::Access;
use snowflake_ids_core::tag::reservation::TagRow;
use snowflake_ids_core::tag::segment::{Miss, TakenIds};
use snowflake_ids_core::tag::slot::Trouble;
use snowflake_ids_core::tag::tickets::Answer;
use std::num::NonZeroU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use timeout::SegmentTimeout;

const ONE: NonZeroU32 = NonZeroU32::MIN;

/// Returns a tag's next id on the fast path; None if [`next`] is needed. Calls no server function that can fail.
#[inline]
pub fn next_at_once(cached: &CachedTag) -> Option<i64> {
    take_at_once(cached, ONE).ok().map(|(_, taken)| taken.range.first)
}

/// Takes between one and `want` ids from the tag's buffers. Each range has an id at which the next range becomes due. The call
/// that takes this id requests the next range.
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

/// Returns the tag's next ids: between one and `want`.
fn next_range(function: &'static str, bytes: &[u8], want: NonZeroU32) -> Result<Range, SegmentError> {
    let (tag, segments) = ready(function, bytes)?;
    match take(segments, &tag, &SegmentTimeout::new(), want)? {
        Served::Buffers((_, taken)) | Served::Own(taken, _) => Ok(taken.range),
    }
}

/// Returns the next number of a sequence that is bound to a tag.
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
        // With an increment above 1, each number needs adjoining ids. Each pass tries the fast path first, because the fast
        // path leaves other sessions the least time to take the adjoining ids.
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

/// Returns a tag's next number as text in the tag's format.
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

/// Returns the last id that this session got for a tag.
pub fn last(bytes: &[u8]) -> Result<i64, SegmentError> {
    let tag = tag_text::checked(bytes).map_err(SegmentError::BadTag)?;
    privilege::check(&tag, Access::Look, role::current(), Some(&SegmentTimeout::new()))?;
    cache::find(bytes).and_then(|cached| cached.last.get()).ok_or(SegmentError::NoLast(TagText(tag).shown()))
}

/// Returns the checked tag and the shared memory of tags; fails if the server cannot generate ids now.
fn ready(function: &'static str, bytes: &[u8]) -> Result<(Tag, &'static Segments), SegmentError> {
    let segments = SEGMENTS.get().ok_or(NotReadyError::NotPreloaded(function))?;
    if server::in_recovery() {
        return Err(NotReadyError::InRecovery(function).into());
    }
    Ok((tag_text::checked(bytes).map_err(SegmentError::BadTag)?, segments))
}

/// The source that served a call for ids of a tag.
pub enum Served<T> {
    Buffers(T),
    /// The tag's row, because this transaction has changed the tag. Holds the ids and the row.
    Own(TakenIds, TagRow),
}

/// The kind of caller that takes ids from a tag's buffers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taker {
    /// The caller of an SQL function. The caller needs the right to take ids, may create the tag, and wants `want` ids.
    Caller { want: NonZeroU32 },
    /// The extension itself. The caller needs no right on the tag, and the tag is never created.
    Extension,
}

impl Taker {
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
        use_buffers(segments, tag, timeout, Taker::Caller { want }, |cached| take_at_once(cached, want));
    match taken {
        Err(SegmentError::Unknown { column: None, .. }) => {
            Err(SegmentError::unknown_of(tag, column_with_ids(tag)?))
        }
        taken => taken,
    }
}

/// Finds a non-empty table with a column whose default takes ids of this missing tag. The tag can be missing after a dump of
/// only that table was restored, or on a logical subscriber. A newly created tag could repeat ids of the table's rows.
fn column_with_ids(tag: &Tag) -> Result<Option<ColumnOfTag>, SegmentError> {
    let source = SEGMENT.find().filter(|_| !transaction::is_parallel());
    let Some(source) = source else { return Ok(None) };
    let found = source.as_owner(|| store::column_with_ids(tag))?;
    Ok(found.map(|(relation, attribute)| ColumnOfTag { relation, attribute }))
}

/// Serves a caller inside this extension from a tag's buffers. Calls `take` again after each refill.
pub fn serve<T>(
    function: &'static str,
    bytes: &[u8],
    take: impl Fn(&'static Slot, u64) -> Result<T, Miss>,
) -> Result<Served<T>, SegmentError> {
    let (tag, segments) = ready(function, bytes)?;
    use_buffers(segments, &tag, &SegmentTimeout::new(), Taker::Extension, |cached| {
        let (slot, slot_generation) = cached.slot_index.get().ok_or(Miss::Gone)?;
        take(slot, slot_generation)
    })
}

fn use_buffers<T>(
    segments: &'static Segments,
    tag: &Tag,
    timeout: &SegmentTimeout,
    taker: Taker,
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
        return use_held(segments, cached, tag, timeout, taker, take);
    }
    // The tag is cached only after it was found, because the cache never shrinks, and users may try any number of names.
    let cached = CachedTag::new(tag);
    let served = use_held(segments, &cached, tag, timeout, taker, take)?;
    cache::keep(cached);
    Ok(served)
}

fn use_held<T>(
    segments: &'static Segments,
    cached: &CachedTag,
    tag: &Tag,
    timeout: &SegmentTimeout,
    taker: Taker,
    take: impl Fn(&CachedTag) -> Result<T, Miss>,
) -> Result<Served<T>, SegmentError> {
    // `find_slot` sets `waiter` when it assigns a slot to the tag. The tag then keeps the slot until this call has an id.
    let mut waiter = None;
    // A missing tag is created only after a search has shown that no column holds ids of this tag.
    let mut may_create = false;
    loop {
        // The right is checked in each pass, because invalidation messages may arrive while the call looks for a slot.
        if taker != Taker::Extension {
            cached.permit.set(privilege::to_take(tag, timeout)?);
        }
        match take(cached) {
            Ok(made) => return Ok(Served::Buffers(made)),
            Err(Miss::Gone) => {
                drop(waiter.take());
                waiter = find_slot(segments, cached, tag, timeout, taker)?;
            }
            Err(Miss::Empty) => {
                // If this transaction has locked the tag's row, a refill would wait for the end of this transaction.
                if let Some((taken, row)) = take_own(tag)? {
                    return Ok(Served::Own(taken, row));
                }
                let is_known =
                    cached.slot_index.get().is_some_and(|(slot, _)| !slot.unverified.load(Relaxed));
                let creates = taker.creates() && (is_known || may_create);
                match wait(cached, tag, timeout, taker.want(), creates, || take(cached)) {
                    Err(SegmentError::Unknown { .. }) if taker.creates() && !creates => {
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

/// Takes an id from the row of a tag that this transaction has changed; None for other tags. Afterwards, this transaction
/// takes no more ids from the tag's buffers.
fn take_own(tag: &Tag) -> Result<Option<(TakenIds, TagRow)>, SegmentError> {
    let own = transaction_tags::next(tag, &SystemClock)?;
    if let Some((taken, _)) = &own {
        issuer::record_reserved();
        cache::hold(tag).last.set(Some(taken.range.first));
    }
    Ok(own)
}

/// Finds the tag's slot. If the tag has no slot, assigns one and returns a waiter, which keeps the slot from being evicted.
///
/// # Errors
/// The table is missing, no slot is free, or the call has waited for the longest allowed time.
fn find_slot(
    segments: &'static Segments,
    cached: &CachedTag,
    tag: &Tag,
    timeout: &SegmentTimeout,
    taker: Taker,
) -> Result<Option<Waiter>, SegmentError> {
    if timeout.has_begun() {
        check_for_interrupts!();
        if timeout.is_over() {
            return Err(no_refill(tag, timeout, segments::trouble()));
        }
        // The slot may belong to a dropped table. A running statement receives no invalidation messages without this call.
        catalog::take_in_changes();
    }
    SEGMENT.on_change(cache::forget_slots);
    let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
    let found = slot::look_up(segments, source, tag, taker.creates(), taker.want())?;
    timeout.begin();
    let found = found.ok_or_else(|| no_refill(tag, timeout, None))?;
    cached.slot_index.set(Some((found.slot, found.slot_generation)));
    Ok(found.waiter)
}

/// Requests a refill and returns the ticket. With `creates`, this request allows the worker to create a missing tag.
fn ask(slot: &Slot, creates: bool) -> u64 {
    SEGMENTS.get().map_or(0, |segments| segments.ask(slot, creates))
}

/// Requests the next range before the present range is used up.
#[cold]
pub fn ask_ahead(slot: &Slot) {
    ask(slot, false);
    segments::wake_workers(server::database());
}

/// A wait for ids. The wait is counted when this value is dropped, also after an error or a cancel.
struct CountedWait<'a> {
    slot: &'static Slot,
    slot_generation: u64,
    timeout: &'a SegmentTimeout,
    began: Duration,
}

impl<'a> CountedWait<'a> {
    fn begin(slot: &'static Slot, slot_generation: u64, timeout: &'a SegmentTimeout) -> Self {
        // A wait is no sign of a higher demand if the buffers are new, were evicted, or are kept small.
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

/// Waits for a refill. Returns None if the tag's slot was evicted meanwhile and must be looked up again.
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
    if slot.trouble() == Some(Trouble::Registry) || registries::is_down(server::database()) {
        timeout.shorten();
    }
    let ask = || ask(slot, creates);
    let mut ticket = ask();
    let found = slot.answered.wait(Event::Refill, timeout.left(), || {
        match take() {
            Ok(found) => return Some(Ok(Some(found))),
            // If the answer is `Unknown`, another caller may already have freed the slot. The code below handles the answer
            // `Unknown`.
            Err(Miss::Gone) if slot.request.answer_to(ticket) != Some(Answer::Unknown) => {
                return Some(Ok(None));
            }
            Err(_) => {}
        }
        match slot.request.answer_to(ticket) {
            Some(Answer::Unknown) => return Some(Err(SegmentError::unknown(tag))),
            Some(Answer::Exhausted) => {
                let max_value = slot.max_value.load(Relaxed);
                return Some(Err(counted(SegmentError::exhausted(tag, Exhausted { max_value }))));
            }
            // The worker does not see a table that this transaction has created. Tags that this transaction has created were
            // served by `take_own`.
            Some(Answer::NoTable) if SEGMENT.find().is_some_and(Source::is_new) => {
                return Some(Err(SegmentError::unknown(tag)));
            }
            Some(Answer::NoTable) => return Some(Err(SegmentError::NoTable)),
            Some(Answer::NoRegistry) => return Some(Err(Unregistered.into())),
            // Other callers took all ids of the refill.
            Some(Answer::Supplied) => ticket = ask(),
            None => {}
        }
        // The worker is woken in each pass, because the worker that was woken last may have died.
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

fn no_refill(tag: &Tag, timeout: &SegmentTimeout, trouble: Option<Trouble>) -> SegmentError {
    counted(SegmentError::no_refill(tag, timeout.limit(), trouble))
}

/// Counts a call that fails because a tag has no ids.
#[cold]
fn counted(error: SegmentError) -> SegmentError {
    if let Some(shared) = SHARED.get() {
        shared.count_failure();
    }
    error
}
