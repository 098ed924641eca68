//! Slots of tags in shared memory, and the eviction of tags and their ids from slots. These functions lock the directory.
//! While they hold the lock, they call no function that can fail.

use super::error::SegmentError;
use crate::pg::catalog::{Source, Unseen};
use crate::pg::clock::uptime;
use crate::pg::per_process::PerProcess;
use crate::pg::read_lock::Wait;
use crate::pg::rows::{self, Sought, View};
use crate::pg::tag_text::TagText;
use crate::pg::{process, server};
use crate::shared::segments::{PIECE, SEGMENTS, Segments};
use crate::shared::slot::Slot;
use crate::store::tables::{RECEIVED, REGISTRY_SERVER, SEGMENT};
use snowflake_ids_core::tag::clock_sweep::{Sweep, SweptSlot, highest};
use snowflake_ids_core::tag::directory::{Directory, Tag, TagKey};
use snowflake_ids_core::tag::reservation::{HighWaterMark, Reached};
use snowflake_ids_core::tag::step::SlowStart;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Once;
use std::sync::atomic::Ordering::Relaxed;

fn key(source: Source, tag: &Tag) -> TagKey {
    TagKey { database: server::database(), source: source.number(), tag: *tag }
}

/// A tag's slot, and the slot's generation. The generation changes when the slot gets another tag.
pub struct FoundSlot {
    pub slot: &'static Slot,
    pub slot_generation: u64,
    /// The wait of this call, if this look-up has assigned the slot to the tag.
    pub waiter: Option<Waiter>,
}

/// Returns the tag's slot. If the tag has no slot, assigns a slot and begins the call's wait for `want` ids at that slot. Marks
/// the slot as unverified if the tag is not known to exist. Without `creates`, a missing tag is an error. Returns None if
/// more calls wait than there are processes, which cannot happen.
pub fn look_up(
    segments: &'static Segments,
    source: Source,
    tag: &Tag,
    creates: bool,
    want: NonZeroU32,
) -> Result<Option<FoundSlot>, SegmentError> {
    let key = key(source, tag);
    let found = |slot: &'static Slot| {
        Some(FoundSlot { slot, slot_generation: slot.segment.slot_generation(), waiter: None })
    };
    if let Some(slot) = find(segments, &segments.directory.read(), &key) {
        return Ok(found(slot));
    }
    let unverified = match is_known(tag) {
        Ok(Some(true)) => false,
        Ok(Some(false)) if !creates => return Err(SegmentError::unknown(tag)),
        Ok(_) | Err(Unseen::Locked) => true,
        Err(Unseen::NoTable) => return Err(SegmentError::NoTable),
    };
    end_waits_with_session();
    segments.misses.fetch_add(1, Relaxed);
    let mut directory = segments.change_directory();
    if let Some(slot) = find(segments, &directory, &key) {
        return Ok(found(slot));
    }
    let is_full = directory.len() >= segments.slot_count;
    let slot_index = directory.insert(key, ());
    let Some(slot) = slot_index.and_then(|slot_index| segments.slots.get(slot_index)) else {
        return Ok(None);
    };
    segments.hand_over(slot, Some(key.database));
    slot.unverified.store(unverified, Relaxed);
    slot.set_slow_start(is_full.then(SlowStart::default));
    want_more(segments, slot, want);
    let slot_generation = slot.segment.slot_generation();
    Ok(Some(FoundSlot { slot, slot_generation, waiter: Some(Waiter::at(slot, slot_generation, want)) }))
}

/// Returns whether a tag exists. Does not wait for locks. Returns None if only a registry on another server can tell. Needs
/// a transaction.
fn is_known(tag: &Tag) -> Result<Option<bool>, Unseen> {
    let name = (c"tag", Sought::Text(&TagText(*tag)));
    if rows::has(&SEGMENT, Wait::No, View::Committed, &[name])? {
        return Ok(Some(true));
    }
    let mut registries = Vec::new();
    rows::look(&REGISTRY_SERVER, Wait::No, &[], |row| registries.extend(row.tag(c"identity")))?;
    let is_nowhere = registries.is_empty();
    for identity in registries {
        // A row of received ids shows that the registry has the tag.
        if rows::has(&RECEIVED, Wait::No, View::Committed, &[(c"identity", Sought::Text(&identity)), name])? {
            return Ok(Some(true));
        }
    }
    Ok(is_nowhere.then_some(false))
}

/// Frees the slots and high-water marks of dropped databases, even if they were used recently.
pub fn forget_dropped_databases(segments: &Segments, exists: fn(u32) -> bool) {
    let mut known: BTreeSet<u32> = segments.slots.iter().filter_map(Slot::database).collect();
    known.extend(segments.high_water_marks.read().iter().map(|(key, _)| key.database));
    for database in known.into_iter().filter(|database| !exists(*database)) {
        leave_all(database, None);
    }
}

fn find(segments: &'static Segments, directory: &Directory<'_>, key: &TagKey) -> Option<&'static Slot> {
    segments.slots.get(directory.find(key)?)
}

fn want_more(segments: &Segments, slot: &Slot, want: NonZeroU32) {
    if slot.wanted.fetch_add(want.get().into(), Relaxed) == 0 {
        segments.awaited.fetch_add(1, Relaxed);
    }
}

/// A call that waits for ids at a tag's slot. The slot is not evicted meanwhile. The wait ends when this value is dropped,
/// also after an error or a cancel. If the session ends, an exit hook ends the wait.
pub struct Waiter {
    /// True if dropping this value ends the wait. False if dropping an outer `Waiter` of the same call ends the wait.
    ends: bool,
}

/// A slot, its generation, and the number of ids that the call waits for.
type WaitedFor = (&'static Slot, u64, NonZeroU32);

static HERE: PerProcess<Cell<Option<WaitedFor>>> = PerProcess::new(Cell::new(None));

impl Waiter {
    /// Begins to wait for `want` ids at a slot; None if the slot belongs to another tag by now.
    pub fn begin(slot: &'static Slot, slot_generation: u64, want: NonZeroU32) -> Option<Self> {
        let is_here =
            HERE.get().is_some_and(|(here, since, _)| std::ptr::eq(here, slot) && since == slot_generation);
        if is_here {
            return Some(Self { ends: false });
        }
        end_waits_with_session();
        let segments = SEGMENTS.get()?;
        let _directory = segments.directory.read();
        (slot.segment.slot_generation() == slot_generation).then(|| {
            want_more(segments, slot, want);
            Self::at(slot, slot_generation, want)
        })
    }

    fn at(slot: &'static Slot, slot_generation: u64, want: NonZeroU32) -> Self {
        HERE.set(Some((slot, slot_generation, want)));
        Self { ends: true }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if self.ends {
            end_wait();
        }
    }
}

/// Registers the exit hook that ends the wait of this process. Called before the directory is locked, because the
/// registration may fail.
fn end_waits_with_session() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| process::on_exit(end_wait));
}

/// Ends the wait of this process, which took its ids or gave up. The last waiter of an unverified slot frees the slot. If too
/// many tags have slots, a clock sweep evicts some tags.
fn end_wait() {
    let (Some((slot, slot_generation, want)), Some(segments)) = (HERE.take(), SEGMENTS.get()) else { return };
    {
        let directory = segments.directory.read();
        let want = u64::from(want.get());
        if slot.segment.slot_generation() != slot_generation || slot.wanted.fetch_sub(want, Relaxed) != want {
            return;
        }
        segments.awaited.fetch_sub(1, Relaxed);
        if !slot.unverified.load(Relaxed) && has_room(segments, &directory) {
            return;
        }
    }
    {
        let mut directory = segments.change_directory();
        let is_left = slot.segment.slot_generation() == slot_generation && slot.wanted.load(Relaxed) == 0;
        if is_left && slot.unverified.load(Relaxed) {
            vacate(segments, &mut directory, segments.slot_of(slot));
        }
    }
    make_room(segments);
}

/// Returns whether the number of tags with a slot is within its limit. Slots where calls wait do not count.
fn has_room(segments: &Segments, directory: &Directory<'_>) -> bool {
    directory.len() <= segments.slot_count + segments.awaited.load(Relaxed)
}

/// Evicts tags until the number of tags is within its limit. Releases the lock after each piece of a sweep, because other calls
/// for ids wait for it.
fn make_room(segments: &Segments) {
    let begin = || Sweep::new(segments.slots.len());
    let mut sweep = begin();
    loop {
        let mut directory = segments.change_directory();
        if has_room(segments, &directory) {
            return;
        }
        let now = uptime();
        let look = |slot_index: usize| {
            let (key, slot) = directory.get(slot_index).zip(segments.slots.get(slot_index))?;
            let (awaited, unmoved) = (slot.wanted.load(Relaxed) > 0, slot.visit(now));
            let slots = if awaited || unmoved.is_none() { 0 } else { directory.shares().rank(key.database) };
            Some(SweptSlot { awaited, unmoved, slots })
        };
        let mut hand = segments.hand.load(Relaxed);
        let found = sweep.go_on(PIECE, &mut hand, directory.shares().most(), look);
        segments.hand.store(hand, Relaxed);
        let Some(found) = found else { continue };
        let Some(slot_index) = found else { return };
        // The slot may have been found in an earlier piece. By now it may be free, or calls may wait there.
        let is_left = |slot: &Slot| slot.wanted.load(Relaxed) == 0;
        if directory.get(slot_index).is_some() && segments.slots.get(slot_index).is_some_and(is_left) {
            segments.evictions.fetch_add(1, Relaxed);
            vacate(segments, &mut directory, slot_index);
        }
        sweep = begin();
    }
}

/// Runs an action on a tag's slot, with the directory locked for writing; returns None if the tag has no slot.
fn with_slot<T>(source: Source, tag: &Tag, action: impl FnOnce(&Slot) -> T) -> Option<T> {
    let segments = SEGMENTS.get()?;
    let directory = segments.change_directory();
    find(segments, &directory, &key(source, tag)).map(action)
}

/// Empties a tag's buffers, so that no session gets ids from them; returns the highest id that was handed out. `reserved`
/// and `tag_generation` come from the tag's row, which the caller has locked.
pub fn close(source: Source, tag: &Tag, reserved: i64, tag_generation: i64) -> i64 {
    let left = with_slot(source, tag, Slot::clear).unwrap_or_default();
    highest(&left, high_water_mark(source, tag), reserved, tag_generation)
}

/// Discards a tag's buffered ids, and ids that are reserved but not in the buffers yet. The discarded ids become a gap.
pub fn discard(source: Source, tag: &Tag) {
    with_slot(source, tag, Slot::clear);
}

pub fn issued(source: Source, tag: &Tag, reserved: i64, tag_generation: i64) -> i64 {
    let buffer_states = with_slot(source, tag, |slot| slot.segment.buffer_states()).unwrap_or_default();
    highest(&buffer_states, high_water_mark(source, tag), reserved, tag_generation)
}

/// Frees a tag's slot with all its contents, if `is_meant` returns true.
pub fn leave_if(source: Source, tag: &Tag, is_meant: impl FnOnce(&Slot) -> bool) {
    let Some(segments) = SEGMENTS.get() else { return };
    let mut directory = segments.change_directory();
    if let Some(slot_index) = directory.find(&key(source, tag))
        && segments.slots.get(slot_index).is_some_and(is_meant)
    {
        vacate(segments, &mut directory, slot_index);
    }
}

/// Restores the high-water marks that the server saved when it last stopped. Called before any session uses tags. Returns the
/// number of marks for which there was no memory.
pub fn restore_high_water_marks(high_water_marks: impl Iterator<Item = (TagKey, HighWaterMark)>) -> usize {
    let Some(segments) = SEGMENTS.get() else { return 0 };
    let mut recorded = segments.high_water_marks.write();
    high_water_marks.filter(|(key, high_water_mark)| !recorded.raise(key, *high_water_mark)).count()
}

/// Frees all slots and high-water marks of a table of tags, or of a whole database.
pub fn leave_all(database: u32, source: Option<u32>) {
    let Some(segments) = SEGMENTS.get() else { return };
    let mut directory = segments.change_directory();
    let is_theirs =
        |key: &TagKey| key.database == database && source.is_none_or(|source| key.source == source);
    directory.remove_all(is_theirs, |slot_index| set_free(segments, slot_index));
    segments.high_water_marks.write().clear_all(is_theirs);
}

fn vacate(segments: &Segments, directory: &mut Directory<'_>, slot_index: usize) {
    directory.remove(slot_index);
    set_free(segments, slot_index);
}

fn set_free(segments: &Segments, slot_index: usize) {
    if let Some(slot) = segments.slots.get(slot_index) {
        // A session that waits at this slot notices that the slot's generation has changed, and looks the tag up again.
        segments.hand_over(slot, None);
        slot.answered.broadcast();
    }
}

/// Records the highest id that this transaction took from a tag's row after changing the row. A rollback restores the former
/// row, which does not cover this id. Returns false if there is no memory for the record.
pub fn raise_high_water_mark(source: Source, tag: &Tag, high_water_mark: HighWaterMark) -> bool {
    SEGMENTS
        .get()
        .is_none_or(|segments| segments.high_water_marks.write().raise(&key(source, tag), high_water_mark))
}

/// Returns the highest id that rolled-back transactions handed out for a tag, with the tag's generation.
pub fn high_water_mark(source: Source, tag: &Tag) -> Option<HighWaterMark> {
    SEGMENTS.get()?.high_water_marks.read().get(&key(source, tag))
}

/// Returns the high-water marks of all tags of this database.
pub fn high_water_marks(source: Source) -> Vec<(Tag, HighWaterMark)> {
    let Some(segments) = SEGMENTS.get() else { return Vec::new() };
    let (database, source) = (server::database(), source.number());
    let high_water_marks = segments.high_water_marks.read();
    let ours = high_water_marks.iter().filter(|(key, _)| key.database == database && key.source == source);
    ours.map(|(key, high_water_mark)| (key.tag, high_water_mark)).collect()
}

/// Clears a tag's high-water mark if the mark is not above `known`, because the tag's row covers the mark by now. With None,
/// always clears the mark, because the tag's generation to which the mark belongs has ended.
pub fn clear_high_water_mark(source: Source, tag: &Tag, known: Option<Reached>) {
    if let Some(segments) = SEGMENTS.get() {
        segments.high_water_marks.write().clear(&key(source, tag), known);
    }
}

/// Frees the slot of a tag that does not exist, so that misspelt names do not fill the slots. Keeps the slot if its buffers
/// have had ids.
pub fn leave_unused(source: Source, tag: &Tag) {
    leave_if(source, tag, |slot| slot.is_unused());
}

pub fn write_format(source: Source, tag: &Tag, format: &str) {
    with_slot(source, tag, |slot| slot.format.write(format));
}
