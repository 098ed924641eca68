//! The text of the saved-range file: unused ids of tags (named id ranges) from the last stop, and the highest ids that
//! rolled-back transactions handed out.
//!
//! Each record is one line: a checksum, then JSON.

use crate::error::excerpt;
use crate::guard::{Guard, holds};
use crate::server::form::{self, Head, UnknownForm};
use crate::tag::definition::Range;
use crate::tag::reservation::{self, HighWaterMark};
use crate::tag::segment::{BufferStates, Period};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// The form of the file.
pub const VERSION: u32 = 1;

/// The number of stops of the server after which an unused record is dropped, because the record's tag may no longer
/// exist.
pub const MAX_STOPS: u32 = 100;

/// The largest number of records of each kind in a file. If there are more records, the oldest records are dropped.
pub const MAX_RECORDS: usize = 1_000_000;

/// The full name of a tag on a server with several databases.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Name {
    /// The OID of the tag's database.
    pub database: u32,
    /// The OID of the table of tags.
    pub source: u32,
    /// The tag's name, in the database's encoding.
    #[serde(with = "letters")]
    pub tag: Vec<u8>,
}

/// Serialises bytes in any encoding as a text: each byte becomes the Unicode character whose code point is the byte's
/// value. The text is short and fast to read.
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

/// A record of a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRecord<T> {
    /// The tag.
    pub of: Name,
    /// The number of stops of the server since the record was made.
    pub stops: u32,
    /// The record's content.
    pub what: T,
}

/// A saved range of a tag.
pub type RecordedRange = SavedRecord<reservation::SavedRange>;

/// All records of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedRecords {
    /// The highest ids that rolled-back transactions handed out.
    pub high_water_marks: Vec<SavedRecord<HighWaterMark>>,
    /// The saved ranges that are not used yet.
    pub left: Vec<RecordedRange>,
    /// The reason why a part of the file cannot be used; `left` is then empty. None if the whole file can be used.
    pub damage: Option<Unreadable>,
}

/// A tag that is in shared memory when the server stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InUse {
    /// The tag's name.
    pub name: Name,
    /// True if the tag had ids in shared memory since the server's start. The tag's previous saved range is then
    /// outdated.
    pub had_ids: bool,
    /// The unused ids.
    pub left: Option<reservation::SavedRange>,
    /// The highest id that rolled-back transactions handed out.
    pub high_water_mark: Option<HighWaterMark>,
}

impl SavedRecords {
    /// Returns the records to write at a stop. Tags in shared memory get new records. Records of other tags are kept
    /// while their databases exist.
    #[must_use]
    pub fn at_stop(self, in_use: Vec<InUse>, mut is_there: impl FnMut(u32) -> bool) -> Self {
        let mut records = Self::default();
        let (mut in_memory, mut outdated) = (FxHashSet::default(), FxHashSet::default());
        for InUse { name, had_ids, left, high_water_mark } in in_use {
            let high_water_mark = high_water_mark.filter(|_| holds(Guard::HighWaterMarkSaved));
            records.high_water_marks.extend(high_water_mark.map(|what| SavedRecord::new(&name, what)));
            records.left.extend(left.map(|what| SavedRecord::new(&name, what)));
            if had_ids {
                outdated.insert(name.clone());
            }
            in_memory.insert(name);
        }
        let mut there: FxHashMap<u32, bool> = FxHashMap::default();
        let mut is_there =
            |name: &Name| *there.entry(name.database).or_insert_with(|| is_there(name.database));
        keep_others(&mut records.high_water_marks, self.high_water_marks, &in_memory, &mut is_there);
        keep_others(&mut records.left, self.left, &outdated, &mut is_there);
        records
    }
}

impl<T> SavedRecord<T> {
    fn new(of: &Name, what: T) -> Self {
        Self { of: of.clone(), stops: 0, what }
    }
}

/// Adds the former records of tags that are not in `tags`, each with one more stop. Drops records of missing databases,
/// records with more than [`MAX_STOPS`] stops, and the oldest records beyond [`MAX_RECORDS`].
fn keep_others<T>(
    records: &mut Vec<SavedRecord<T>>,
    former: Vec<SavedRecord<T>>,
    tags: &FxHashSet<Name>,
    mut is_there: impl FnMut(&Name) -> bool,
) {
    let kept = except(former, tags, |record| &record.of);
    records.extend(kept.map(|record| SavedRecord { stops: record.stops.saturating_add(1), ..record }));
    records.retain(|record| record.stops <= MAX_STOPS && is_there(&record.of));
    if records.len() > MAX_RECORDS {
        records.sort_by_key(|record| record.stops);
        records.truncate(MAX_RECORDS);
    }
}

/// Returns the elements whose keys are not in `keys`.
pub fn except<T, K: Eq + Hash, S: BuildHasher>(
    all: Vec<T>,
    keys: &HashSet<K, S>,
    key: impl Fn(&T) -> &K,
) -> impl Iterator<Item = T> {
    all.into_iter().filter(move |one| !keys.contains(key(one)))
}

/// The reason why a file or a part of a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The operating system returned an error, with this message.
    Io(String),
    /// The file has an unknown form. The release that wrote the file can still use it.
    UnknownForm(UnknownForm),
    /// The file is damaged, for this reason.
    Damaged(String),
}

/// Writes the sentences that follow the first sentence of the log line.
impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(error),
            Self::UnknownForm(unknown) => {
                write!(f, "{unknown} Install at least version {}.", unknown.release)
            }
            Self::Damaged(reason) => write!(f, "It is damaged: {reason}."),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedLine {
    HighWaterMark(SavedRecord<HighWaterMark>),
    Left(RecordedRange),
    Taken(TakenUp),
}

#[derive(Serialize, Deserialize)]
struct TakenUp {
    of: Name,
    version: i64,
}

/// Returns the text of a file that contains `records`.
pub fn to_text(records: SavedRecords) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(&Head::new(VERSION))?;
    text.push(b'\n');
    let high_water_marks = records.high_water_marks.into_iter().map(SavedLine::HighWaterMark);
    for line in high_water_marks.chain(records.left.into_iter().map(SavedLine::Left)) {
        line.write(&mut text)?;
    }
    Ok(text)
}

/// Returns the line that records the use of a saved range. The line contains the tag's name and the range's version.
/// The line begins with a newline, because the file's last line may be incomplete.
pub fn taken(of: Name, version: i64) -> serde_json::Result<Vec<u8>> {
    let mut text = vec![b'\n'];
    SavedLine::Taken(TakenUp { of, version }).write(&mut text)?;
    Ok(text)
}

impl SavedLine {
    /// Appends the line to a text, after the line's checksum.
    fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        let json = serde_json::to_vec(self)?;
        text.extend(format!("{:08x} ", crc32fast::hash(&json)).into_bytes());
        text.extend(json);
        text.push(b'\n');
        Ok(())
    }

    fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(checked(text)?).map_err(|error| excerpt(&error.to_string()))
    }
}

/// Returns the part of a line after the checksum, if the checksum is right.
fn checked(text: &[u8]) -> Result<&[u8], String> {
    const DIGITS: usize = 8;
    let (sum, json) = text.split_at_checked(DIGITS).ok_or("a line is too short")?;
    let sum = str::from_utf8(sum).ok().and_then(|sum| u32::from_str_radix(sum, 16).ok());
    let json = json.trim_ascii();
    if sum == Some(crc32fast::hash(json)) { Ok(json) } else { Err("a line has a wrong checksum".to_owned()) }
}

/// Returns a file's records. An incomplete last line is ignored, because its write was never confirmed. Any other damage
/// may hide the use of a saved range, so all saved ranges are dropped. Readable high-water marks are kept.
pub fn from_text(text: &[u8]) -> Result<SavedRecords, Unreadable> {
    let mut records = SavedRecords::default();
    let mut taken = FxHashSet::default();
    for line in lines_of(text)? {
        match SavedLine::read(line) {
            Ok(SavedLine::HighWaterMark(high_water_mark)) => records.high_water_marks.push(high_water_mark),
            Ok(SavedLine::Left(left)) => records.left.push(left),
            Ok(SavedLine::Taken(TakenUp { of, version })) => {
                taken.insert((version, of));
            }
            Err(damage) => {
                records.damage.get_or_insert(Unreadable::Damaged(damage));
            }
        }
    }
    if records.damage.is_some() {
        records.left.clear();
    }
    let versions: FxHashSet<i64> = taken.iter().map(|(version, _)| *version).collect();
    let is_taken = |left: &RecordedRange| {
        versions.contains(&left.what.version) && taken.contains(&(left.what.version, left.of.clone()))
    };
    records.left.retain(|left| !is_taken(left));
    Ok(records)
}

/// Returns the highest ids that rolled-back transactions handed out. The lines with these ids come first in the file,
/// so the other lines are not read.
pub fn high_water_marks_of(text: &[u8]) -> Result<Vec<SavedRecord<HighWaterMark>>, Unreadable> {
    let high_water_marks = lines_of(text)?.map_while(|line| match SavedLine::read(line) {
        Ok(SavedLine::HighWaterMark(high_water_mark)) => Some(Some(high_water_mark)),
        Ok(SavedLine::Left(_) | SavedLine::Taken(_)) => None,
        Err(_) => Some(None),
    });
    Ok(high_water_marks.flatten().collect())
}

/// Returns the complete lines after a file's head.
fn lines_of(text: &[u8]) -> Result<impl Iterator<Item = &[u8]>, Unreadable> {
    let damaged = |reason: &str| Unreadable::Damaged(excerpt(reason));
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    if let Some(unknown) = form::unknown(first, VERSION).or_else(|| form::unknown(text, VERSION)) {
        return Err(Unreadable::UnknownForm(unknown));
    }
    serde_json::from_slice::<Head>(first).map_err(|error| damaged(&error.to_string()))?;
    if !first.ends_with(b"\n") {
        return Err(damaged("its first line is broken off"));
    }
    Ok(lines.filter(|line| line.ends_with(b"\n") && line.len() > 1))
}

/// Returns the unused ids of both buffers of a tag, if they form one range of one period (the day, month or year of a
/// dated tag).
pub fn rest(buffer_states: &BufferStates) -> Option<(Range, Period)> {
    let mut buffer_states =
        [buffer_states.current, buffer_states.next].into_iter().flatten().filter(|buffer| buffer.left() > 0);
    let buffer = buffer_states.next()?;
    let range = Range { first: buffer.range.at(buffer.used), count: buffer.left(), ..buffer.range };
    let Some(next) = buffer_states.next() else { return Some((range, buffer.period)) };
    let count = range.count.checked_add(next.range.count)?;
    let one = range.is_followed_by(&next.range) && buffer.period == next.period;
    one.then_some((Range { count, ..range }, buffer.period))
}
