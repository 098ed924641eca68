//! The life of a saved-range file: at the server's start, as ids of it are taken up, and at its stop.
//!
//! The process that starts all others takes the ids out of the buffers when all others have ended, and writes them to the
//! file. A refill worker goes on with them when the server runs again, so a restart leaves no gap. The file is only a
//! note. What decides is the row: its version must still be what it was after the reservation, and taking the ids up
//! changes it. What was taken up is noted in the file, too, before it is handed out: so it is taken up once or never,
//! whichever of both is set back to an earlier state. A crash leaves a gap and nothing else.

use crate::sequence::directory::Tag;
use crate::sequence::reservation::{HighWaterMark, Reserved, SavedRange};
use crate::server::saved_ranges::{self, InUse, Name, SavedRecord, SavedRecords, Unreadable};
use crate::worker::refill;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::fmt;

/// The file. A process may end before and after each call, and the machine may fail.
pub trait SavedRangeFile {
    /// The system's errors.
    type Error: fmt::Display + From<serde_json::Error>;

    /// All that it holds; None where there is none.
    fn read(&self) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Writes a text behind all that it holds, in one piece, and durably. Nothing where there is no file. After a crash some
    /// beginning of the text is there.
    ///
    /// # Errors
    /// The system's; then, too, some beginning may be there.
    fn append(&self, text: &[u8]) -> Result<(), Self::Error>;

    /// Has it hold a text and nothing else, durably. After a crash it holds all that it did before or all of the text.
    ///
    /// # Errors
    /// The system's; then it holds the one or the other.
    fn replace(&self, text: &[u8]) -> Result<(), Self::Error>;

    /// Tells the log that left-over ids are lost, because it could not be written down that they are taken up.
    fn say_lost(&self, error: &Self::Error);
}

/// The outcome of a stop for the file.
#[derive(Debug)]
pub enum Saved {
    /// There was nothing to write down.
    Nothing,
    /// It holds what there is to note. If all of the former one was not read, this says why: it is lost.
    Written(Option<Unreadable>),
    /// A newer release wrote it, for which it is still good: it stays as it is.
    Kept(Unreadable),
}

/// Writes down what there is when nothing else runs any more: the tags `in_use`, and what was noted of others whose
/// databases are there.
///
/// # Errors
/// The system's: ids that were not handed out are lost.
pub fn save<F: SavedRangeFile>(
    file: &F,
    in_use: Vec<InUse>,
    is_there: impl FnMut(u32) -> bool,
) -> Result<Saved, F::Error> {
    let (former, lost, missing) = match records_of(file) {
        Ok(None) => (SavedRecords::default(), None, true),
        Ok(Some((records, damage))) => (records, damage, false),
        Err(newer @ Unreadable::Newer(_)) => return Ok(Saved::Kept(newer)),
        Err(error) => (SavedRecords::default(), Some(error), false),
    };
    let records = former.at_stop(in_use, is_there);
    if missing && records == SavedRecords::default() {
        return Ok(Saved::Nothing);
    }
    file.replace(&saved_ranges::to_text(records)?)?;
    Ok(Saved::Written(lost))
}

/// Returns what a file says, and what is wrong with a part of it; None where there is no file.
fn records_of(file: &impl SavedRangeFile) -> Result<Option<(SavedRecords, Option<Unreadable>)>, Unreadable> {
    let Some(text) = file.read().map_err(|error| Unreadable::Io(error.to_string()))? else { return Ok(None) };
    let records = saved_ranges::from_text(&text)?;
    let damage = records.damage.clone().map(Unreadable::Damaged);
    Ok(Some((records, damage)))
}

/// Returns how far transactions came that were rolled back, as it was noted. The search for what is left over says what
/// is wrong with the file.
pub fn high_water_marks<F: SavedRangeFile>(file: &F) -> Vec<SavedRecord<HighWaterMark>> {
    let text = file.read().ok().flatten();
    text.and_then(|text| saved_ranges::high_water_marks_of(&text).ok()).unwrap_or_default()
}

/// The ids left over of the tags of one database.
pub struct SavedRanges<F> {
    file: F,
    database: u32,
    left: RefCell<FxHashMap<(u32, Tag), SavedRange>>,
}

impl<F: SavedRangeFile> SavedRanges<F> {
    /// Reads the file. One that is missing, damaged or of a newer release says nothing; the last two come with the reason.
    pub fn of_database(file: F, database: u32) -> (Self, Option<Unreadable>) {
        let (records, error) = match records_of(&file) {
            Ok(read) => read.unwrap_or_default(),
            Err(error) => (SavedRecords::default(), Some(error)),
        };
        let of_it = records.left.into_iter().filter(|record| record.of.database == database);
        let left =
            of_it.filter_map(|record| Some(((record.of.source, Tag::new(&record.of.tag)?), record.what)));
        (Self { file, database, left: RefCell::new(left.collect()) }, error)
    }

    /// Notes in the file that what was left over of these is taken up.
    fn record_taken<'a>(
        &self,
        reserved: impl Iterator<Item = (u32, &'a Tag, &'a Reserved)>,
    ) -> Result<(), F::Error> {
        let mut all = self.left.borrow_mut();
        let mut text = Vec::new();
        for (source, tag, reserved) in reserved {
            // A range reserved by other means shows that the row has passed the note.
            let left = all.remove(&(source, *tag)).filter(|left| left.range == reserved.supply.range);
            if let Some(left) = left {
                let of = Name { database: self.database, source, tag: tag.as_bytes().to_vec() };
                text.extend(saved_ranges::taken(of, left.version)?);
            }
        }
        if text.is_empty() { Ok(()) } else { self.file.append(&text) }
    }
}

impl<F: SavedRangeFile> refill::SavedRangeSource for SavedRanges<F> {
    fn of(&self, source: u32, tag: &Tag) -> Option<SavedRange> {
        self.left.borrow().get(&(source, *tag)).cloned()
    }

    fn take_up<'a>(&self, reserved: impl Iterator<Item = (u32, &'a Tag, &'a Reserved)>) -> bool {
        self.record_taken(reserved).inspect_err(|error| self.file.say_lost(error)).is_ok()
    }
}
