//! Monotonic series. The keys of a series are divided into sections, and the keys of a section share one maximum. Each
//! section has a segment tag (a named id range), and takes its numbers from the tag's buffers.

use super::cache::CachedSeries;
use super::error::NoNumberError;
use crate::pg::clock::SystemClock;
use crate::pg::encoding;
use crate::pg::per_process::PerProcess;
use crate::pg::server;
use crate::pg::transaction::{self, Hooks};
use crate::shared::registries;
use crate::shared::sections::{SECTIONS, Sections};
use crate::shared::segments::{SEGMENTS, Segments};
use crate::shared::slot::Slot;
use crate::store::series::DatedNumber;
use crate::store::tables::SEGMENT;
use crate::store::tag as store;
use crate::tag::error::SegmentError;
use crate::tag::{self, Served, slot, transaction_tags};
use rustc_hash::{FxBuildHasher, FxHashMap};
use snowflake_ids_core::error::NotReadyError;
use snowflake_ids_core::series::monotonic::{self, Hash, SectionBounds, SectionNeed, SectionRef, section_of};
use snowflake_ids_core::series::{Key, SeriesError, SeriesKind};
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::segment::Miss;
use std::cell::RefCell;
use std::num::NonZeroU32;

const FUNCTION: &str = "series_nextval()";

/// Takes the next number of a key from shared memory; None if shared memory has no number for the key. Raises no error.
#[inline]
pub fn at_once(cached: &CachedSeries, key: &Key) -> Option<DatedNumber> {
    let sections = SECTIONS.get().filter(|_| transaction_tags::is_empty())?;
    let number = section_at_once(cached, key)?;
    let (slot, section_ref) = cached.section(number)?;
    let number = take(sections, slot, section_ref, sections.hash(cached.series.id, key)).ok()?;
    Some(DatedNumber { number, day: 0 })
}

/// Takes the next number of a key.
pub fn next(cached: &CachedSeries, key: &Key) -> Result<DatedNumber, NoNumberError> {
    let sections = ready(cached)?;
    let (number, hash) = (section_of_key(cached, key), sections.hash(cached.series.id, key));
    let seen = match cached.section(number).filter(|_| transaction_tags::is_empty()) {
        Some((slot, section_ref)) => match take(sections, slot, section_ref, hash) {
            Ok(number) => return Ok(DatedNumber { number, day: 0 }),
            Err(miss) => seen_by(section_ref, miss),
        },
        None => None,
    };
    let number = supply(cached, key, sections, hash, seen)?;
    Ok(DatedNumber { number, day: 0 })
}

/// Raises the counters of all keys in the key's section to a value. `force` is refused, because a number must never be given
/// twice.
pub fn set(cached: &CachedSeries, key: &Key, value: i64, force: bool) -> Result<(), NoNumberError> {
    if force {
        return Err(SeriesError::NoForce { series: cached.shown() }.into());
    }
    raise_above(cached, key, value)
}

/// Raises a key's counter to a value, if the counter is lower.
pub fn raise_above(cached: &CachedSeries, key: &Key, value: i64) -> Result<(), NoNumberError> {
    ready(cached)?;
    let number = section_of_key(cached, key);
    let raised = (cached.series.id, number);
    // `series_attach` calls this function for every key of a column. Each call raises the key's whole section, so keys of the
    // section with lower values need no statement.
    if RAISED.borrow().get(&raised).is_some_and(|to| *to >= value) {
        return Ok(());
    }
    let tag = Tag::new(&tag_of(cached, number));
    let (source, tag) = SEGMENT.find().zip(tag).ok_or(SeriesError::NoTable)?;
    source.as_owner(|| store::raise_above(&tag, value))?;
    transaction::watch(&HOOKS);
    RAISED.borrow_mut().insert(raised, value);
    Ok(())
}

/// The values to which this transaction has raised sections, by series id and section number.
static RAISED: PerProcess<RefCell<FxHashMap<(i64, u16), i64>>> =
    PerProcess::new(RefCell::new(FxHashMap::with_hasher(FxBuildHasher)));

static HOOKS: Hooks = Hooks {
    committed: forget_raised,
    ended: forget_raised,
    subtransaction_aborted: Some(|_| forget_raised()),
    ..Hooks::none()
};

fn forget_raised() {
    if let Ok(mut raised) = RAISED.try_borrow_mut() {
        *raised = FxHashMap::default();
    }
}

/// Returns the shared memory for keys of monotonic series; fails if the server has no such memory.
fn ready(cached: &CachedSeries) -> Result<&'static Sections, NoNumberError> {
    if let Some(sections) = SECTIONS.get() {
        return Ok(sections);
    }
    SEGMENTS.get().ok_or(SegmentError::NotReady(NotReadyError::NotPreloaded(FUNCTION)))?;
    Err(SeriesError::NoMemory { kind: cached.series.kind.name() }.into())
}

fn sections_of(cached: &CachedSeries) -> u16 {
    match cached.series.kind {
        SeriesKind::Monotonic(sections) => sections,
        SeriesKind::Gapless => 1,
    }
}

/// Returns the section of a key; None if the key must be converted to UTF-8 first.
#[inline]
fn section_at_once(cached: &CachedSeries, key: &Key) -> Option<u16> {
    match key {
        Key::Text(bytes) if !encoding::is_as_utf8(bytes) => None,
        _ => Some(section_of(key, sections_of(cached))),
    }
}

/// Returns the section of a key. A key has the same section on every server, whatever the database's encoding.
fn section_of_key(cached: &CachedSeries, key: &Key) -> u16 {
    section_at_once(cached, key).unwrap_or_else(|| {
        let utf8 = if let Key::Text(bytes) = key { encoding::to_utf8(bytes) } else { None };
        let utf8 = utf8.map(|text| Key::Text(text.into_bytes().into()));
        section_of(utf8.as_ref().unwrap_or(key), sections_of(cached))
    })
}

/// Returns the tag of a section. The tag's name includes the count of the series' sections. With another count, each section
/// has other keys, and needs another tag in the registry.
fn tag_of(cached: &CachedSeries, number: u16) -> Vec<u8> {
    let rest = format!(" section {} of {}", number + 1, sections_of(cached));
    [cached.name.as_bytes(), rest.as_bytes()].concat()
}

/// Takes a key's next number from a section whose slot the session knows.
#[inline]
fn take(
    sections: &Sections,
    slot: &'static Slot,
    section_ref: SectionRef,
    hash: Hash,
) -> Result<i64, monotonic::KeyMiss> {
    let all = SEGMENTS.get();
    let section_at = |slot_index: u32| Some(&all?.slots.get(slot_index as usize)?.section);
    sections.keys.take(&slot.section, section_ref, hash, &section_at)
}

fn seen_by(section_ref: SectionRef, miss: monotonic::KeyMiss) -> Option<(u64, SectionBounds)> {
    match miss {
        monotonic::KeyMiss::Gone => None,
        monotonic::KeyMiss::Empty(bounds) => Some((section_ref.owner, bounds)),
    }
}

/// Gets ids for the key's section, and takes the key's next number.
#[cold]
fn supply(
    cached: &CachedSeries,
    key: &Key,
    sections: &'static Sections,
    hash: Hash,
    mut seen: Option<(u64, SectionBounds)>,
) -> Result<i64, NoNumberError> {
    let number = section_of_key(cached, key);
    let tag = tag_of(cached, number);
    loop {
        let find = |slot, slot_generation| open(sections, slot, slot_generation, seen);
        let (slot, section_ref, ahead) = match tag::serve(FUNCTION, &tag, find) {
            Ok(Served::Buffers(found)) => found,
            Ok(Served::Own(taken, _)) => {
                // The number is above all buffered ids. The buffered ids are discarded, because the key must not continue
                // below the number.
                if let Some((source, tag)) = SEGMENT.find().zip(Tag::new(&tag)) {
                    slot::discard(source, &tag);
                }
                return Ok(taken.range.first);
            }
            Err(error) => return Err(explained(error, cached, key)),
        };
        if ahead {
            tag::ask_ahead(slot);
        }
        cached.record_section(number, slot, section_ref);
        match take(sections, slot, section_ref, hash) {
            Ok(number) => return Ok(number),
            Err(miss) => seen = seen_by(section_ref, miss),
        }
        pgrx::check_for_interrupts!();
    }
}

/// Returns the section in its tag's slot. Opens a closed section with the next range from the buffers. An open section also
/// gets the next range if its owner and range still equal `seen`: the caller found no number in `seen`. Also returns whether
/// the caller must request more ids.
fn open(
    sections: &Sections,
    slot: &'static Slot,
    slot_generation: u64,
    seen: Option<(u64, SectionBounds)>,
) -> Result<(&'static Slot, SectionRef, bool), Miss> {
    let segments: &Segments = SEGMENTS.get().ok_or(Miss::Gone)?;
    let slot_index = u32::try_from(segments.slot_of(slot)).map_err(|_| Miss::Gone)?;
    let mut ahead = false;
    loop {
        // The lock keeps the buffers from being emptied, and other sessions from taking a range for the section.
        let directory = segments.change_directory();
        if slot.segment.slot_generation() != slot_generation {
            return Err(Miss::Gone);
        }
        match slot.section.need(seen) {
            SectionNeed::Nothing(owner) => return Ok((slot, SectionRef { slot_index, owner }, ahead)),
            SectionNeed::Range => {
                let taken = slot.segment.take(slot_generation, NonZeroU32::MAX, &SystemClock)?;
                ahead |= taken.prefetch;
                slot.section.take_up(segments.new_slot_generation(), &taken.range);
            }
            SectionNeed::Sweep => {
                drop(directory);
                while slot.section.is_left() {
                    sections.sweep(segments.slots);
                    pgrx::check_for_interrupts!();
                }
            }
        }
    }
}

/// Returns the tag's error as an error of the series.
fn explained(error: SegmentError, cached: &CachedSeries, key: &Key) -> NoNumberError {
    let series = cached.shown();
    match error {
        SegmentError::Unknown { tag, .. } => {
            let registry = registries::first(server::database());
            SeriesError::NoSection { series, tag, registry }.into()
        }
        SegmentError::Exhausted(..) => cached.exhausted(key).into(),
        error => error.into(),
    }
}
