//! The state that outlasts a stop of the server beside the tables, as the text of a file: ids that were reserved and are in
//! no buffers, and how far transactions came that were rolled back.
//!
//! One line each, in JSON, after a checksum of it. When ids are taken up, a line that says so comes behind the others. It is
//! durable before the first of them is handed out. So they serve once, whatever state the tables are set back to.

use crate::error::excerpt;
use crate::guard::{Guard, holds};
use crate::sequence::definition::Range;
use crate::sequence::reservation::{self, Floor};
use crate::sequence::segment::{Period, Shelves};
use crate::server::form::{self, Head, Newer};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// The form of the file that this version writes. It reads all that came before.
pub const VERSION: u32 = 2;

/// The first form, whose lines have no checksums.
const UNCHECKED: u32 = 1;

/// After so many stops without a use of the tag a note is dropped: its tag may be no more.
pub const MOST_STOPS: u32 = 100;

/// Number of notes a file holds at most; the latest ones.
pub const MOST_NOTES: usize = 1_000_000;

/// A tag of a server with many databases.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Name {
    /// The tag's database,
    pub database: u32,
    /// the table of tags that it is in,
    pub source: u32,
    /// and what it is called.
    #[serde(with = "letters")]
    pub tag: Vec<u8>,
}

/// Bytes in whatever encoding as a text, short and fast to read: each is the letter of its number.
mod letters {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::borrow::Cow;

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&bytes.iter().map(|byte| char::from(*byte)).collect::<String>())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.chars().map(u8::try_from).collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// A note of a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note<T> {
    /// The tag.
    pub of: Name,
    /// Number of stops since it was made.
    pub stops: u32,
    /// The content.
    pub what: T,
}

/// Ids of one tag.
pub type CarryOver = Note<reservation::CarryOver>;

/// All that a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The highest ids of transactions that were rolled back,
    pub floors: Vec<Note<Floor>>,
    /// and what is left over and was not taken up.
    pub left: Vec<CarryOver>,
    /// The damage that hides what is left over, if there is any.
    pub damage: Option<String>,
}

/// A tag that has a place when the server stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InUse {
    /// Its name.
    pub name: Name,
    /// True if it had ids since the start, so that former notes of them hold no more.
    pub had_ids: bool,
    /// The ids that are left.
    pub left: Option<reservation::CarryOver>,
    /// The highest id of transactions that were rolled back.
    pub floor: Option<Floor>,
}

impl Notes {
    /// Returns the notes of a stop. Of tags in use that is what is left of them; of all others what was noted at former
    /// stops, as long as their databases are there.
    #[must_use]
    pub fn at_stop(self, in_use: Vec<InUse>, mut is_there: impl FnMut(u32) -> bool) -> Self {
        let mut passed = FxHashSet::default();
        let (mut floors, mut left) = (Vec::new(), Vec::new());
        let mut floor_known = FxHashSet::default();
        for tag in in_use {
            let InUse { name, had_ids, left: rest, floor } = tag;
            if had_ids {
                passed.insert(name.clone());
            }
            let floor = floor.filter(|_| holds(Guard::FloorNoted));
            floors.extend(floor.map(|what| Note { of: name.clone(), stops: 0, what }));
            left.extend(rest.map(|what| Note { of: name.clone(), stops: 0, what }));
            floor_known.insert(name);
        }
        floors.extend(unless(self.floors, &floor_known));
        left.extend(unless(self.left, &passed));
        let mut there: FxHashMap<u32, bool> = FxHashMap::default();
        let mut is_there =
            |name: &Name| *there.entry(name.database).or_insert_with(|| is_there(name.database));
        floors.retain(|note| is_there(&note.of));
        left.retain(|note| is_there(&note.of));
        bound(&mut floors);
        bound(&mut left);
        Self { floors, left, damage: None }
    }
}

/// Those of former stops that are not of these tags.
fn unless<T>(former: Vec<Note<T>>, tags: &FxHashSet<Name>) -> impl Iterator<Item = Note<T>> {
    let kept = except(former, tags, |note| &note.of);
    kept.map(|note| Note { stops: note.stops.saturating_add(1), ..note })
        .filter(|note| note.stops <= MOST_STOPS)
}

/// Returns what has none of these keys, each looked up once.
pub fn except<T, K: Eq + Hash, S: BuildHasher>(
    all: Vec<T>,
    keys: &HashSet<K, S>,
    key: impl Fn(&T) -> &K,
) -> impl Iterator<Item = T> {
    all.into_iter().filter(move |one| !keys.contains(key(one)))
}

/// The latest ones.
fn bound<T>(notes: &mut Vec<Note<T>>) {
    if notes.len() > MOST_NOTES {
        notes.sort_by_key(|note| note.stops);
        notes.truncate(MOST_NOTES);
    }
}

/// Reason why a file says nothing, or not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The system does not give it; with the reason.
    Io(String),
    /// A newer release wrote it: it is still good there.
    Newer(Newer),
    /// It is no such file; with the reason.
    Damaged(String),
}

/// As the rest of a line of the log.
impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(error),
            Self::Newer(newer) => write!(f, "{newer} Install at least version {}.", newer.release),
            Self::Damaged(reason) => write!(f, "It is damaged: {reason}."),
        }
    }
}

/// A line after the first.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NoteLine {
    Floor(Note<Floor>),
    Left(CarryOver),
    Taken(TakenUp),
}

/// A line that says that the ids of a note were taken up.
#[derive(Serialize, Deserialize)]
struct TakenUp {
    of: Name,
    version: i64,
}

/// The file that says these.
pub fn to_text(notes: Notes) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(&Head::new(VERSION))?;
    text.push(b'\n');
    let floors = notes.floors.into_iter().map(NoteLine::Floor);
    for line in floors.chain(notes.left.into_iter().map(NoteLine::Left)) {
        line.write(&mut text)?;
    }
    Ok(text)
}

/// Returns what is written behind the others when the ids of a note are taken up: these are the tag and the note's
/// version. Begins a line anew, as the last one may be broken off.
pub fn taken(of: Name, version: i64) -> serde_json::Result<Vec<u8>> {
    let mut text = vec![b'\n'];
    NoteLine::Taken(TakenUp { of, version }).write(&mut text)?;
    Ok(text)
}

impl NoteLine {
    /// Writes it behind a text, with its checksum.
    fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        let json = serde_json::to_vec(self)?;
        text.extend(format!("{:08x} ", crc32fast::hash(&json)).into_bytes());
        text.extend(json);
        text.push(b'\n');
        Ok(())
    }

    /// Reads it, of a file of this form. What this version writes behind a file of the first form has its checksum all the
    /// same.
    fn read(text: &[u8], form: u32) -> Result<Self, String> {
        let json = if form == UNCHECKED && text.starts_with(b"{") { text } else { checked(text)? };
        serde_json::from_slice(json).map_err(|error| excerpt(&error.to_string()))
    }
}

/// Returns what follows a checksum, if that is right.
fn checked(text: &[u8]) -> Result<&[u8], String> {
    const DIGITS: usize = 8;
    let (sum, json) = text.split_at_checked(DIGITS).ok_or("a line is too short")?;
    let sum = str::from_utf8(sum).ok().and_then(|sum| u32::from_str_radix(sum, 16).ok());
    let json = json.trim_ascii();
    if sum == Some(crc32fast::hash(json)) { Ok(json) } else { Err("a line has a wrong checksum".to_owned()) }
}

/// Returns what a file holds. Its end may be broken off: that was not durable, and nothing relies on it. Any other
/// damage may hide what was taken up, so that nothing is left over; floors count as far as they can be read.
pub fn from_text(text: &[u8]) -> Result<Notes, Unreadable> {
    let mut notes = Notes::default();
    let mut taken = FxHashSet::default();
    let (form, lines) = lines_of(text)?;
    for line in lines {
        match NoteLine::read(line, form) {
            Ok(NoteLine::Floor(floor)) => notes.floors.push(floor),
            Ok(NoteLine::Left(left)) => notes.left.push(left),
            Ok(NoteLine::Taken(TakenUp { of, version })) => {
                taken.insert((version, of));
            }
            Err(damage) => {
                notes.damage.get_or_insert(damage);
            }
        }
    }
    if notes.damage.is_some() {
        notes.left.clear();
    }
    let versions: FxHashSet<i64> = taken.iter().map(|(version, _)| *version).collect();
    let is_taken = |left: &CarryOver| {
        versions.contains(&left.what.version) && taken.contains(&(left.what.version, left.of.clone()))
    };
    notes.left.retain(|left| !is_taken(left));
    Ok(notes)
}

/// Returns what a file says of transactions that were rolled back, which comes first: the rest of it is not read.
pub fn floors_of(text: &[u8]) -> Result<Vec<Note<Floor>>, Unreadable> {
    let (form, lines) = lines_of(text)?;
    let lines = lines.map(|line| NoteLine::read(line, form));
    let floors = lines.take_while(|line| matches!(line, Ok(NoteLine::Floor(_)) | Err(_)));
    Ok(floors
        .filter_map(|line| if let Ok(NoteLine::Floor(floor)) = line { Some(floor) } else { None })
        .collect())
}

/// The form of a file, and the whole lines behind the first one, which says that this is such a file.
fn lines_of(text: &[u8]) -> Result<(u32, impl Iterator<Item = &[u8]>), Unreadable> {
    let damaged = |reason: &str| Unreadable::Damaged(excerpt(reason));
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    if let Some(newer) = form::newer(first, VERSION).or_else(|| form::newer(text, VERSION)) {
        return Err(Unreadable::Newer(newer));
    }
    let head: Head = serde_json::from_slice(first).map_err(|error| damaged(&error.to_string()))?;
    if !(UNCHECKED..=VERSION).contains(&head.version) {
        return Err(damaged(&format!("form {} was never written", head.version)));
    }
    if !first.ends_with(b"\n") {
        return Err(damaged("its first line is broken off"));
    }
    Ok((head.version, lines.filter(|line| line.ends_with(b"\n") && line.len() > 1)))
}

/// Returns what both buffers of a tag have left, if that is one range of one period.
pub fn rest(shelves: &Shelves) -> Option<(Range, Period)> {
    let mut shelves = [shelves.current, shelves.next].into_iter().flatten().filter(|shelf| shelf.left() > 0);
    let shelf = shelves.next()?;
    let range = Range { first: shelf.range.at(shelf.used), count: shelf.left(), ..shelf.range };
    let Some(next) = shelves.next() else { return Some((range, shelf.period)) };
    let count = range.count.checked_add(next.range.count)?;
    let one = range.is_followed_by(&next.range) && shelf.period == next.period;
    one.then_some((Range { count, ..range }, shelf.period))
}
