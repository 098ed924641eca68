//! Which place in shared memory a tag has, and taking places and their ids away. Everything here locks the
//! directory, and does nothing meanwhile that could fail.

use super::error::SegmentError;
use super::known::{self, Known};
use crate::pg::catalog::Source;
use crate::pg::tag::TagText;
use crate::pg::wait::Event;
use crate::pg::{database, server};
use crate::shared::segments::{Segments, segments};
use crate::shared::slot::Slot;
use snowflake_ids_core::directory::{Directory, Key, Tag};
use snowflake_ids_core::places::{Claim, Occupancy, PlaceError, Use, admit, highest, most_on_trial};
use snowflake_ids_core::reservation::{Floor, Reached};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

fn key(source: Source, tag: &Tag) -> Key {
    Key { database: server::database(), source: source.number(), tag: *tag }
}

/// The tag's place, and the incarnation in which it is the tag's. If it has none, it is given one; a tag that may not
/// exist, on trial, for which it may have to wait so long. `creates`: it is made where there is none.
pub fn look_up(
    segments: &'static Segments,
    source: Source,
    tag: &Tag,
    creates: bool,
    limit: Duration,
) -> Result<(&'static Slot, u64), SegmentError> {
    let key = key(source, tag);
    if let Some(slot) = find(segments, &segments.directory.read(), &key) {
        return Ok((slot, slot.segment.incarnation()));
    }
    let claim = match known::look(tag).ok_or(SegmentError::NoTable)? {
        Known::Yes => Claim::Known,
        Known::No if !creates => return Err(SegmentError::unknown(tag)),
        Known::No | Known::Unsure => Claim::Trial,
    };
    let full = || SegmentError::NoPlace(segments.slots.len());
    match find_or_move_in(segments, &key, claim) {
        Ok(place) => Ok(place),
        Err(PlaceError::Full) => {
            forget_dropped_databases(segments, database::exists);
            find_or_move_in(segments, &key, claim).map_err(|_| full())
        }
        Err(PlaceError::Trials) => {
            let most = most_on_trial(segments.slots.len());
            let again = || {
                let found = find(segments, &segments.directory.read(), &key).is_some();
                // Many may wait, and be woken together.
                if !found && segments.on_trial.load(Relaxed) >= most {
                    return None;
                }
                match find_or_move_in(segments, &key, claim) {
                    Err(PlaceError::Trials) => None,
                    Err(PlaceError::Full) => Some(Err(full())),
                    Ok(place) => Some(Ok(place)),
                }
            };
            let place = segments.trial_over.wait(Event::Refill, limit, again);
            place.unwrap_or_else(|| Err(SegmentError::NoTrial { tag: TagText(*tag).shown(), most }))
        }
    }
}

fn find_or_move_in(
    segments: &'static Segments,
    key: &Key,
    claim: Claim,
) -> Result<(&'static Slot, u64), PlaceError> {
    let mut directory = segments.directory.write();
    let slot = match find(segments, &directory, key) {
        Some(slot) => slot,
        None => move_in(segments, &mut directory, key, claim)?,
    };
    Ok((slot, slot.segment.incarnation()))
}

/// Their tags are free, however lately they were used.
pub fn forget_dropped_databases(segments: &Segments, exists: fn(u32) -> bool) {
    let known: BTreeSet<u32> = segments.directory.read().iter().map(|(_, key)| key.database).collect();
    for database in known.into_iter().filter(|database| !exists(*database)) {
        leave_all(database, None);
    }
}

fn find(segments: &'static Segments, directory: &Directory<'_>, key: &Key) -> Option<&'static Slot> {
    segments.slots.get(directory.find(key)?)
}

fn move_in(
    segments: &'static Segments,
    directory: &mut Directory<'_>,
    key: &Key,
    claim: Claim,
) -> Result<&'static Slot, PlaceError> {
    let occupancy = Occupancy {
        places: segments.slots.len(),
        has_free: !directory.is_full(),
        on_trial: segments.on_trial.load(Relaxed),
    };
    let used = directory.iter().filter_map(|(place, _)| Some((place, segments.slots.get(place)?.look())));
    if let Some(place) = admit(claim, occupancy, used)? {
        vacate(segments, directory, place);
    }
    let place = directory.insert(*key).ok_or(PlaceError::Full)?;
    let slot = segments.slots.get(place).ok_or(PlaceError::Full)?;
    segments.hand_over(slot);
    if claim == Claim::Trial {
        slot.on_trial.store(true, Relaxed);
        segments.on_trial.fetch_add(1, Relaxed);
    }
    Ok(slot)
}

/// Counts this process among those that wait at a place on trial; whether it is one, and still in this incarnation.
pub fn enter(slot: &Slot, incarnation: u64) -> bool {
    let Some(segments) = segments() else { return false };
    let _directory = segments.directory.read();
    let enters = slot.on_trial.load(Relaxed) && slot.segment.incarnation() == incarnation;
    if enters {
        slot.waiting.fetch_add(1, Relaxed);
    }
    enters
}

/// This process does not wait there any more. Of a place on trial, the last one to go lets go.
pub fn go(slot: &'static Slot, incarnation: u64) {
    let Some(segments) = segments() else { return };
    let mut directory = segments.directory.write();
    if !slot.on_trial.load(Relaxed) || slot.segment.incarnation() != incarnation {
        return;
    }
    if slot.waiting.fetch_sub(1, Relaxed) == 1 {
        vacate(segments, &mut directory, segments.place_of(slot));
    }
}

/// Its tag was found. With the directory locked for writing.
pub fn end_trial(segments: &Segments, slot: &Slot) {
    if slot.on_trial.swap(false, Relaxed) {
        segments.on_trial.fetch_sub(1, Relaxed);
        segments.trial_over.broadcast();
    }
}

/// Looks at what all places are used for, and lets those on trial go where no session waits: that may be so if the call for
/// which one was given failed at once.
pub fn look_around(segments: &Segments) {
    let is_left = |place: &usize| {
        segments.slots.get(*place).is_some_and(|slot| slot.look() == Use::Trial { awaited: false })
    };
    let left: Vec<usize> = (0..segments.slots.len()).filter(is_left).collect();
    for place in left {
        let mut directory = segments.directory.write();
        if is_left(&place) {
            vacate(segments, &mut directory, place);
        }
    }
}

/// Does something with a tag's place, with the directory locked for writing; nothing if it has none.
fn with_place<T>(source: Source, tag: &Tag, action: impl FnOnce(&Slot) -> T) -> Option<T> {
    let segments = segments()?;
    let directory = segments.directory.write();
    find(segments, &directory, &key(source, tag)).map(action)
}

/// Takes a tag's buffered ids away from all sessions; gives the highest that was handed out. `reserved` is what its
/// row says, which the caller has locked, and `life` the one that it is in.
pub fn close(source: Source, tag: &Tag, reserved: i64, life: i64) -> i64 {
    let closed = with_place(source, tag, |slot| highest(&slot.clear(), slot.floor.get(), reserved, life));
    closed.unwrap_or(reserved)
}

/// Takes a tag's buffered ids away from all sessions: a gap. What was reserved and is not in the buffers yet is dropped, too.
pub fn discard(source: Source, tag: &Tag) {
    with_place(source, tag, Slot::clear);
}

/// The highest id of a tag that was handed out so far.
pub fn issued(source: Source, tag: &Tag, reserved: i64, life: i64) -> i64 {
    let issued =
        with_place(source, tag, |slot| highest(&slot.segment.shelves(), slot.floor.get(), reserved, life));
    issued.unwrap_or(reserved)
}

/// Takes a tag's place away, with all that is in it, but for its floor: what the caller does may yet be rolled back.
pub fn leave(source: Source, tag: &Tag) {
    let Some(segments) = segments() else { return };
    let mut directory = segments.directory.write();
    let key = key(source, tag);
    let Some(place) = directory.find(&key) else { return };
    let floor = segments.slots.get(place).and_then(|slot| slot.floor.get());
    vacate(segments, &mut directory, place);
    if let Some(floor) = floor {
        put_floor(segments, &mut directory, &key, floor);
    }
}

/// Gives a tag that has none a place for its floor; nothing where all are taken.
fn put_floor(segments: &Segments, directory: &mut Directory<'_>, key: &Key, floor: Floor) -> bool {
    let slot = directory.insert(*key).and_then(|place| segments.slots.get(place));
    if let Some(slot) = slot {
        segments.hand_over(slot);
        slot.floor.raise(floor);
    }
    slot.is_some()
}

/// Gives floors places, before any session looks; and lets them go first of all floors. Gives how many there are none for.
pub fn restore_floors(floors: impl Iterator<Item = (Key, Floor)>) -> usize {
    let Some(segments) = segments() else { return 0 };
    let mut directory = segments.directory.write();
    let mut put = |(key, floor): (Key, Floor)| {
        directory.find(&key).is_none() && put_floor(segments, &mut directory, &key, floor)
    };
    let lost = floors.filter(|floor| !put(*floor)).count();
    segments.slots.iter().filter(|slot| slot.floor.get().is_some()).for_each(Slot::age);
    lost
}

/// Takes all places away that belong to a table of tags, or to a whole database.
pub fn leave_all(database: u32, source: Option<u32>) {
    let Some(segments) = segments() else { return };
    let mut directory = segments.directory.write();
    for place in 0..segments.slots.len() {
        let theirs = directory
            .get(place)
            .is_some_and(|key| key.database == database && source.is_none_or(|source| key.source == source));
        if theirs {
            vacate(segments, &mut directory, place);
        }
    }
}

fn vacate(segments: &Segments, directory: &mut Directory<'_>, place: usize) {
    if let Some(slot) = segments.slots.get(place) {
        directory.remove(place);
        end_trial(segments, slot);
        // A session that waits there finds it gone, and looks again.
        segments.hand_over(slot);
        slot.answered.broadcast();
    }
}

/// Notes an id that the transaction handed out of a row that it may yet roll back.
pub fn raise_floor(source: Source, tag: &Tag, floor: Floor) {
    let Some(segments) = segments() else { return };
    let note = || {
        with_place(source, tag, |slot| {
            slot.floor.raise(floor);
            end_trial(segments, slot);
        })
    };
    // Where there is no place for it, the note is lost, and with it no more than ids of a rollback.
    if note().is_none() && find_or_move_in(segments, &key(source, tag), Claim::Known).is_ok() {
        note();
    }
}

/// What rolled back transactions came to.
pub fn floor(source: Source, tag: &Tag) -> Option<Floor> {
    with_place(source, tag, |slot| slot.floor.get()).flatten()
}

/// All that rolled back transactions came to, of this database's tags.
pub fn floors(source: Source) -> Vec<(Tag, Floor)> {
    let Some(segments) = segments() else { return Vec::new() };
    let (database, source) = (server::database(), source.number());
    // Let go before anything is made of it that could fail.
    let places: Vec<(usize, Key)> =
        segments.directory.read().iter().map(|(place, key)| (place, *key)).collect();
    let ours = places.into_iter().filter(|(_, key)| key.database == database && key.source == source);
    ours.filter_map(|(place, key)| Some((key.tag, segments.slots.get(place)?.floor.get()?))).collect()
}

/// The row knows of ids up to this one by now; None: none of them is in use any more.
pub fn clear_floor(source: Source, tag: &Tag, known: Option<Reached>) {
    with_place(source, tag, |slot| match known {
        Some((day, id)) => slot.floor.pass(day, id),
        None => slot.floor.clear(),
    });
}

/// Takes the place away from a tag that there is not, so that misspelt ones don't use places up. What has ids is
/// left as it is.
pub fn leave_unused(source: Source, tag: &Tag) {
    let Some(segments) = segments() else { return };
    let mut directory = segments.directory.write();
    let place = directory.find(&key(source, tag));
    if let Some(place) = place.filter(|place| segments.slots.get(*place).is_some_and(Slot::is_unused)) {
        vacate(segments, &mut directory, place);
    }
}

/// Has the numbers of a tag written in another format.
pub fn write_format(source: Source, tag: &Tag, format: &str) {
    with_place(source, tag, |slot| slot.format.write(format));
}
