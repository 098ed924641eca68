//! A tag's slot in shared memory, and how places and their ids are taken away. Everything here locks the directory, and does
//! nothing meanwhile that could fail.

use super::error::SegmentError;
use crate::pg::catalog::{Source, Unseen};
use crate::pg::process::PerProcess;
use crate::pg::read_lock::Wait;
use crate::pg::rows::{self, Sought, View};
use crate::pg::tag::TagText;
use crate::pg::{server, worker};
use crate::shared::segments::{Segments, segments};
use crate::shared::slot::Slot;
use crate::store::tables::{RECEIVED, REGISTRY_SERVER, SEGMENT};
use snowflake_ids_core::sequence::clock_sweep::{SweptSlot, highest, sweep};
use snowflake_ids_core::sequence::directory::{Directory, Tag, TagKey};
use snowflake_ids_core::sequence::reservation::{HighWaterMark, Reached};
use snowflake_ids_core::sequence::step::SlowStart;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Once;
use std::sync::atomic::Ordering::Relaxed;

fn key(source: Source, tag: &Tag) -> TagKey {
    TagKey { database: server::database(), source: source.number(), tag: *tag }
}

/// A tag's slot, and the generation in which it is the tag's.
pub struct Found {
    pub slot: &'static Slot,
    pub slot_generation: u64,
    /// The wait of this call, which begins where the slot was given just now.
    pub waiter: Option<Waiter>,
}

/// The tag's slot. If it has none, it is given one, where the call waits for so many ids; unverified where it may not exist.
/// `creates`: it is made where there is none. None: more calls wait than there are processes, which can't be.
pub fn look_up(
    segments: &'static Segments,
    source: Source,
    tag: &Tag,
    creates: bool,
    want: NonZeroU32,
) -> Result<Option<Found>, SegmentError> {
    let key = key(source, tag);
    let found = |slot: &'static Slot| {
        Some(Found { slot, slot_generation: slot.segment.slot_generation(), waiter: None })
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
    let mut directory = segments.directory.write();
    if let Some(slot) = find(segments, &directory, &key) {
        return Ok(found(slot));
    }
    let is_full = directory.len() >= segments.slot_count;
    let slot_index = directory.insert(key, ());
    let Some(slot) = slot_index.and_then(|slot_index| segments.slots.get(slot_index)) else {
        return Ok(None);
    };
    segments.hand_over(slot);
    slot.unverified.store(unverified, Relaxed);
    slot.set_slow_start(is_full.then(SlowStart::default));
    want_more(segments, slot, want);
    let slot_generation = slot.segment.slot_generation();
    Ok(Some(Found { slot, slot_generation, waiter: Some(Waiter::at(slot, slot_generation, want)) }))
}

/// Returns whether there is a tag, as far as a session can tell by itself, without waiting; None where that can't be seen from
/// here: ids come from registries on other servers, which may have it. Only within a transaction.
fn is_known(tag: &Tag) -> Result<Option<bool>, Unseen> {
    let name = (c"tag", Sought::Text(&TagText(*tag)));
    if rows::has(&SEGMENT, Wait::No, View::Committed, &[name])? {
        return Ok(Some(true));
    }
    let mut registries = Vec::new();
    rows::look(&REGISTRY_SERVER, Wait::No, &[], |row| registries.extend(row.tag(c"identity")))?;
    let is_nowhere = registries.is_empty();
    for identity in registries {
        // Received ids say that the registry has it.
        if rows::has(&RECEIVED, Wait::No, View::Committed, &[(c"identity", Sought::Text(&identity)), name])? {
            return Ok(Some(true));
        }
    }
    Ok(is_nowhere.then_some(false))
}

/// Their tags are free, however lately they were used.
pub fn forget_dropped_databases(segments: &Segments, exists: fn(u32) -> bool) {
    let mut known: BTreeSet<u32> = segments.directory.read().iter().map(|(_, key)| key.database).collect();
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

/// A call that waits for ids at a tag's slot, which is not taken away meanwhile. It ends with the call: by ids, an error or a
/// cancel, which unwind through it; by the end of the session, which a hook meets.
pub struct Waiter {
    /// True if the wait ends with this: not if the same call waits there already.
    ends: bool,
}

/// A slot, its generation, and the number of ids that are waited for.
type WaitedFor = (&'static Slot, u64, NonZeroU32);

/// The wait of this process.
static HERE: PerProcess<Cell<Option<WaitedFor>>> = PerProcess::new(Cell::new(None));

impl Waiter {
    /// Begins to wait for so many ids at a slot; None: it is another tag's by now.
    pub fn begin(slot: &'static Slot, slot_generation: u64, want: NonZeroU32) -> Option<Self> {
        let is_here =
            HERE.get().is_some_and(|(here, since, _)| std::ptr::eq(here, slot) && since == slot_generation);
        if is_here {
            return Some(Self { ends: false });
        }
        end_waits_with_session();
        let segments = segments()?;
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

/// To be called before a slot is given.
fn end_waits_with_session() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| worker::on_exit(end_wait));
}

/// This process does not wait any more: it took its ids, or gave up. A slot unverified goes with the last one; others, if they are
/// too many, when the hand finds them.
fn end_wait() {
    let (Some((slot, slot_generation, want)), Some(segments)) = (HERE.take(), segments()) else { return };
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
    let mut directory = segments.directory.write();
    let is_left = slot.segment.slot_generation() == slot_generation && slot.wanted.load(Relaxed) == 0;
    if is_left && slot.unverified.load(Relaxed) {
        vacate(segments, &mut directory, segments.slot_of(slot));
    }
    make_room(segments, &mut directory);
}

/// Returns whether no more tags have places than may, beside those where calls wait.
fn has_room(segments: &Segments, directory: &Directory<'_>) -> bool {
    directory.len() <= segments.slot_count + segments.awaited.load(Relaxed)
}

fn make_room(segments: &Segments, directory: &mut Directory<'_>) {
    while !has_room(segments, directory) {
        let look = |slot_index: usize| {
            let (key, slot) = directory.get(slot_index).zip(segments.slots.get(slot_index))?;
            let (awaited, moved) = (slot.wanted.load(Relaxed) > 0, slot.has_moved());
            let slots = if awaited || moved { 0 } else { directory.shares().of(key.database) };
            Some(SweptSlot { awaited, moved, slots })
        };
        let mut hand = segments.hand.load(Relaxed);
        let found = sweep(&mut hand, segments.slots.len(), directory.shares().most(), look);
        segments.hand.store(hand, Relaxed);
        let Some(slot_index) = found else { return };
        segments.evictions.fetch_add(1, Relaxed);
        vacate(segments, directory, slot_index);
    }
}

/// Does something with a tag's slot, with the directory locked for writing; nothing if it has none.
fn with_slot<T>(source: Source, tag: &Tag, action: impl FnOnce(&Slot) -> T) -> Option<T> {
    let segments = segments()?;
    let directory = segments.directory.write();
    find(segments, &directory, &key(source, tag)).map(action)
}

/// Takes a tag's buffered ids away from all sessions; gives the highest that was handed out. `reserved` is what its
/// row says, which the caller has locked, and `tag_generation` the one that it is in.
pub fn close(source: Source, tag: &Tag, reserved: i64, tag_generation: i64) -> i64 {
    let left = with_slot(source, tag, Slot::clear).unwrap_or_default();
    highest(&left, high_water_mark(source, tag), reserved, tag_generation)
}

/// Takes a tag's buffered ids away from all sessions: a gap. Reserved ids that are not in the buffers yet are dropped, too.
pub fn discard(source: Source, tag: &Tag) {
    with_slot(source, tag, Slot::clear);
}

pub fn issued(source: Source, tag: &Tag, reserved: i64, tag_generation: i64) -> i64 {
    let buffer_states = with_slot(source, tag, |slot| slot.segment.buffer_states()).unwrap_or_default();
    highest(&buffer_states, high_water_mark(source, tag), reserved, tag_generation)
}

/// Takes a tag's slot away if that `is_meant`, with all that is in it.
pub fn leave_if(source: Source, tag: &Tag, is_meant: impl FnOnce(&Slot) -> bool) {
    let Some(segments) = segments() else { return };
    let mut directory = segments.directory.write();
    if let Some(slot_index) = directory.find(&key(source, tag))
        && segments.slots.get(slot_index).is_some_and(is_meant)
    {
        vacate(segments, &mut directory, slot_index);
    }
}

/// Notes floors of a former run, before any session looks. Gives how many there is no memory for.
pub fn restore_high_water_marks(high_water_marks: impl Iterator<Item = (TagKey, HighWaterMark)>) -> usize {
    let Some(segments) = segments() else { return 0 };
    let mut recorded = segments.high_water_marks.write();
    high_water_marks.filter(|(key, high_water_mark)| !recorded.raise(key, *high_water_mark)).count()
}

/// Takes all places away that belong to a table of tags, or to a whole database, and all floors.
pub fn leave_all(database: u32, source: Option<u32>) {
    let Some(segments) = segments() else { return };
    let mut directory = segments.directory.write();
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
        // A session that waits there finds it gone, and looks again.
        segments.hand_over(slot);
        slot.answered.broadcast();
    }
}

/// Notes an id that the transaction handed out of a row that it may yet roll back; false: there is no memory for it.
pub fn raise_high_water_mark(source: Source, tag: &Tag, high_water_mark: HighWaterMark) -> bool {
    segments()
        .is_none_or(|segments| segments.high_water_marks.write().raise(&key(source, tag), high_water_mark))
}

/// Returns what rolled back transactions came to.
pub fn high_water_mark(source: Source, tag: &Tag) -> Option<HighWaterMark> {
    segments()?.high_water_marks.read().get(&key(source, tag))
}

/// All that rolled back transactions came to, of this database's tags.
pub fn high_water_marks(source: Source) -> Vec<(Tag, HighWaterMark)> {
    let Some(segments) = segments() else { return Vec::new() };
    let (database, source) = (server::database(), source.number());
    let high_water_marks = segments.high_water_marks.read();
    let ours = high_water_marks.iter().filter(|(key, _)| key.database == database && key.source == source);
    ours.map(|(key, high_water_mark)| (key.tag, high_water_mark)).collect()
}

/// The row knows of ids up to this one by now; None: none of them is in use any more.
pub fn clear_high_water_mark(source: Source, tag: &Tag, known: Option<Reached>) {
    if let Some(segments) = segments() {
        segments.high_water_marks.write().clear(&key(source, tag), known);
    }
}

/// Takes the slot away from a tag that there is not, so that misspelt ones don't use slots up. One that has had ids stays.
pub fn leave_unused(source: Source, tag: &Tag) {
    leave_if(source, tag, |slot| slot.is_unused());
}

pub fn write_format(source: Source, tag: &Tag, format: &str) {
    with_slot(source, tag, |slot| slot.format.write(format));
}
