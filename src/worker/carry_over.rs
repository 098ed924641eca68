//! Ids that were reserved and not handed out when the server stopped, and how far transactions came that were rolled back.
//!
//! The process that starts all others takes the ids out of the buffers when all others have ended, and writes them to a
//! file; a refill worker goes on with them when the server runs again, so that a restart leaves no gap. The file is only a note.
//! What decides is the row: its version must still be what it was after the reservation, and taking the ids up changes it.
//! What was taken up is noted in the file, too, before it is handed out: so it is taken up once or never, whichever of both
//! is set back to an earlier state. A crash leaves a gap and nothing else.

use crate::pg::{cluster, database, server};
use crate::segment::place;
use crate::shared::segments::segments;
use rustc_hash::FxHashMap;
use snowflake_ids_core::carry_over::{self, InUse, Name, Notes, Unreadable};
use snowflake_ids_core::definition::Range;
use snowflake_ids_core::directory::{Key, Tag};
use snowflake_ids_core::reservation::{CarryOver, Reserved};
use snowflake_ids_core::segment::{Period, Shelves};
use std::cell::RefCell;
use std::ffi::CStr;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::Ordering::Relaxed;

/// In the data directory, which is where processes of the server are.
const FILE: &str = "snowflake_ids.carry_over.json";
const NEW: &str = "snowflake_ids.carry_over.json.new";
const FILE_C: &CStr = c"snowflake_ids.carry_over.json";
const NEW_C: &CStr = c"snowflake_ids.carry_over.json.new";

/// Writes down what there is when nobody runs any more.
pub fn save() {
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
    let notes = old.at_stop(in_use(), database::has_files);
    if notes == Notes::default() && !fs::exists(FILE).unwrap_or(true) {
        return;
    }
    if let Err(error) = write(notes) {
        pgrx::log!(
            "snowflake_ids could not write \"{FILE}\", ids not yet handed out will be missing: {error}"
        );
    }
}

/// All that is known of tags in memory.
fn in_use() -> Vec<InUse> {
    let Some(segments) = segments() else { return Vec::new() };
    let directory = segments.directory.read();
    let one = |(place, key): (usize, &Key)| {
        let slot = segments.slots.get(place)?;
        let version = slot.supplies.version.load(Relaxed);
        let left = rest(&slot.segment.shelves());
        Some(InUse {
            name: name(key),
            had_ids: slot.supplies.refills.load(Relaxed) > 0,
            left: left.map(|(range, period)| CarryOver { version, day: period.dated(), range }),
            floor: slot.floor.get(),
        })
    };
    directory.iter().filter_map(one).collect()
}

fn name(key: &Key) -> Name {
    Name { database: key.database, source: key.source, tag: key.tag.as_bytes().to_vec() }
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

/// Brings back how far transactions came that were rolled back, before anybody can look.
pub fn restore_floors() {
    let text = fs::read(FILE).unwrap_or_default();
    // Whoever looks for what is left over says what is wrong with the file.
    let noted = carry_over::floors_of(&text).unwrap_or_default();
    drop(text);
    let floors = noted.into_iter().filter_map(|note| {
        let Name { database, source, tag } = note.of;
        Some((Key { database, source, tag: Tag::new(&tag)? }, note.what))
    });
    let lost = place::restore_floors(floors);
    if lost > 0 {
        pgrx::log!(
            "snowflake_ids has no place for what it noted of {lost} segment tags: ids of transactions that were rolled \
             back may come again"
        );
    }
}

/// What is left of the tags of a database.
pub struct CarryOvers(RefCell<FxHashMap<(u32, Tag), CarryOver>>);

impl CarryOvers {
    /// Reads the file. One that is missing, damaged or of a newer release says nothing.
    pub fn of_database(database: u32) -> Self {
        let of_it = read_or_say().left.into_iter().filter(|note| note.of.database == database);
        Self(RefCell::new(
            of_it.filter_map(|note| Some(((note.of.source, Tag::new(&note.of.tag)?), note.what))).collect(),
        ))
    }

    /// Those of a tag.
    pub fn of(&self, source: u32, tag: &Tag) -> Option<CarryOver> {
        self.0.borrow().get(&(source, *tag)).cloned()
    }

    /// What was reserved and was left over is not left over any more, whatever becomes of the rows: that is durable when this
    /// returns. If it can't be written, nothing of it may be handed out.
    pub fn take_up<'a>(&self, reserved: impl Iterator<Item = (u32, &'a Tag, &'a Reserved)>) -> bool {
        let mut all = self.0.borrow_mut();
        let mut text = Vec::new();
        for (source, tag, reserved) in reserved {
            let key = (source, *tag);
            // What was reserved by other means shows that the row has passed the note.
            let Some(left) = all.remove(&key).filter(|left| left.range == reserved.supply.range) else {
                continue;
            };
            let name = name(&Key { database: server::database(), source: key.0, tag: key.1 });
            match carry_over::taken(name, left.version) {
                Ok(line) => text.extend(line),
                Err(error) => return refuse(&error.into()),
            }
        }
        text.is_empty() || append(&text).map_or_else(|error| refuse(&error), |()| true)
    }
}

fn refuse(error: &io::Error) -> bool {
    pgrx::warning!(
        "snowflake_ids could not write \"{FILE}\", ids left over from the last run will be missing: {error}"
    );
    false
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

fn read() -> Result<Notes, Unread> {
    match fs::read(FILE) {
        Ok(text) => carry_over::from_text(&text).map_err(Unread::Not),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Notes::default()),
        Err(error) => Err(Unread::Io(error)),
    }
}

fn read_or_say() -> Notes {
    let said = |why: &dyn fmt::Display| {
        pgrx::log!("snowflake_ids could not read \"{FILE}\", and does without: {why}");
    };
    match read() {
        Ok(notes) => {
            if let Some(damage) = &notes.damage {
                said(&Unreadable::Damaged(damage.clone()));
            }
            notes
        }
        Err(error) => {
            said(&error);
            Notes::default()
        }
    }
}

/// Under another name first, so that nobody ever reads half of it.
fn write(notes: Notes) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(cluster::file_mode()).open(NEW)?;
    file.write_all(&carry_over::to_text(notes)?)?;
    drop(file);
    if cluster::rename_durably(NEW_C, FILE_C) { Ok(()) } else { Err(io::Error::other("it was not renamed")) }
}

/// Behind all that is there: whoever does so at the same time writes before or after it.
fn append(text: &[u8]) -> io::Result<()> {
    let file = match OpenOptions::new().append(true).open(FILE) {
        // Nobody will find there what was left over.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    // In one piece.
    let written = (&file).write(text)?;
    if written < text.len() {
        return Err(io::Error::from(ErrorKind::WriteZero));
    }
    file.sync_data()
}
