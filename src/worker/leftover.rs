//! Ids that were reserved and not handed out when the server stopped.
//!
//! The supervisor takes them out of the buffers when the server stops, and writes them to a file; a refiller goes
//! on with them when the server runs again, so that a restart leaves no gap. The file is only a note. What decides
//! is the row: its version must still be what it was after the reservation, and taking the ids up changes it.
//! So they are taken up once or never, however old the file is, whoever has a copy of it, and whether it was
//! written at all: a crash leaves a gap and nothing else.

use crate::pg::shmem::segments::Segments;
use snowflake_ids_core::directory::{Key, Tag};
use snowflake_ids_core::leftover::{self, Leftover, Unreadable};
use snowflake_ids_core::reservation;
use snowflake_ids_core::segment::{Period, Shelves};
use snowflake_ids_core::terms::Range;
use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;
use std::{fmt, fs, io};

/// In the data directory, which is where processes of the server are.
const FILE: &str = "snowflake_ids.leftover.json";

/// Takes all ids out of the buffers and writes them down. Until the server runs again, nobody gets any.
pub fn save(segments: &Segments) {
    let mut all = take_out(segments);
    // Of tags that nobody used since the last start, the notes of the last stop still hold.
    let old = match read() {
        // They are still good for the release that wrote them.
        Err(error) if error.is_newer() => {
            pgrx::log!(
                "snowflake_ids leaves \"{FILE}\" as it is, ids not yet handed out will be missing: {error}"
            );
            return;
        }
        read => read.unwrap_or_default(),
    };
    let kept: Vec<_> =
        old.into_iter().filter(|old| !all.iter().any(|new| new.is_of_the_tag_of(old))).collect();
    all.extend(kept);
    if let Err(error) = write(all) {
        pgrx::log!(
            "snowflake_ids could not write \"{FILE}\", ids not yet handed out will be missing: {error}"
        );
    }
}

fn take_out(segments: &Segments) -> Vec<Leftover> {
    let directory = segments.directory.write();
    let one = |(place, key): (usize, &Key)| {
        let slot = segments.slots.get(place)?;
        let (range, period) = rest(&slot.clear())?;
        Some(Leftover {
            database: key.database,
            source: key.source,
            tag: key.tag.as_bytes().to_vec(),
            left: reservation::Leftover {
                version: slot.supplies.version.load(Relaxed),
                day: period.dated(),
                range,
            },
        })
    };
    directory.iter().filter_map(one).collect()
}

/// What both buffers have left, if that is one range of one period.
fn rest(shelves: &Shelves) -> Option<(Range, Period)> {
    let mut shelves = [shelves.current, shelves.next].into_iter().flatten().filter(|shelf| shelf.left() > 0);
    let shelf = shelves.next()?;
    let range = Range { first: shelf.range.at(shelf.used), count: shelf.left(), ..shelf.range };
    let Some(next) = shelves.next() else { return Some((range, shelf.period)) };
    let count = range.count.checked_add(next.range.count)?;
    let one = range.is_followed_by(&next.range) && shelf.period == next.period;
    one.then_some((Range { count, ..range }, shelf.period))
}

/// What is left of the tags of a database.
pub struct Leftovers(Vec<Leftover>);

impl Leftovers {
    /// Reads the file. One that is missing, damaged or of a newer release says nothing.
    pub fn of_database(database: u32) -> Self {
        let all = read().unwrap_or_else(|error| {
            pgrx::log!("snowflake_ids could not read \"{FILE}\", and does without: {error}");
            Vec::new()
        });
        Self(all.into_iter().filter(|leftover| leftover.database == database).collect())
    }

    /// Those of a tag.
    pub fn of(&self, source: u32, tag: &Tag) -> Option<reservation::Leftover> {
        let found =
            self.0.iter().find(|leftover| leftover.source == source && leftover.tag == tag.as_bytes());
        found.map(|leftover| leftover.left.clone())
    }
}

/// Why the file is not read.
enum Unread {
    Io(io::Error),
    Not(Unreadable),
}

impl Unread {
    fn is_newer(&self) -> bool {
        matches!(self, Self::Not(Unreadable::Newer(_)))
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Not(unreadable) => unreadable.fmt(f),
        }
    }
}

fn read() -> Result<Vec<Leftover>, Unread> {
    match fs::read(FILE) {
        Ok(text) => leftover::from_text(&text).map_err(Unread::Not),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Unread::Io(error)),
    }
}

/// Under another name first, so that nobody ever reads half of it.
fn write(all: Vec<Leftover>) -> io::Result<()> {
    let new = format!("{FILE}.new");
    fs::write(&new, leftover::to_text(all)?)?;
    fs::rename(new, FILE)
}
