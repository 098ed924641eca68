//! The saved-range file, which keeps the unused ids of tags (named id ranges) over a restart of the server.
//!
//! At a stop, the postmaster waits until all other processes have ended. The postmaster then takes the unused ids out
//! of the tags' buffers and writes the ids to the file. After the next start, a refill worker continues with these ids,
//! so a restart leaves no gap.
//!
//! A saved range is valid only while the tag's row has the version that the row got when the range was reserved. A
//! worker that uses the range changes the row's version, and then records the use in the file before any of the range's
//! ids is handed out. So a saved range is used at most once, even if the table or the file is restored from an older
//! state. A crash between these two steps only leaves a gap.

use crate::server::saved_ranges::{self, InUse, Name, SavedRecord, SavedRecords, Unreadable};
use crate::tag::directory::Tag;
use crate::tag::reservation::{HighWaterMark, Reserved, SavedRange};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::fmt;

/// The saved-range file of the server, or of a simulated server. A process may end before and after each call, and the
/// machine may crash.
pub trait SavedRangeFile {
    /// The error of the file, usually an I/O error.
    type Error: fmt::Display + From<serde_json::Error>;

    /// Returns the file's content; None if there is no file.
    fn read(&self) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Appends a text to the file durably, in one write. Does nothing if there is no file. After a crash or an error,
    /// the file may end with a part of the text.
    fn append(&self, text: &[u8]) -> Result<(), Self::Error>;

    /// Replaces the file's content durably. After a crash or an error, the file contains the old content or the new text.
    fn replace(&self, text: &[u8]) -> Result<(), Self::Error>;

    /// Logs that saved ranges are lost, because the file could not record their use.
    fn say_lost(&self, error: &Self::Error);
}

/// Saves the unused ids after all other processes have ended. Writes the unused ids of the tags `in_use` to the file,
/// and keeps the saved ranges of other tags while the tags' databases exist. If the file's previous content could not
/// be read, returns the reason. After [`Unreadable::UnknownForm`] the file is unchanged. After any other reason the
/// unreadable part of the file is lost.
///
/// # Errors
/// The file's error. The unused ids are then lost.
pub fn save<F: SavedRangeFile>(
    file: &F,
    in_use: Vec<InUse>,
    is_there: impl FnMut(u32) -> bool,
) -> Result<Option<Unreadable>, F::Error> {
    let former = records_of(file);
    let is_missing = former.is_none();
    let former = former.unwrap_or_default();
    let lost = former.damage.clone();
    if let Some(Unreadable::UnknownForm(_)) = lost {
        return Ok(lost);
    }
    let records = former.at_stop(in_use, is_there);
    if !is_missing || records != SavedRecords::default() {
        file.replace(&saved_ranges::to_text(records)?)?;
    }
    Ok(lost)
}

/// Returns the file's records; None if there is no file.
fn records_of(file: &impl SavedRangeFile) -> Option<SavedRecords> {
    let read = match file.read() {
        Ok(text) => saved_ranges::from_text(&text?),
        Err(error) => Err(Unreadable::Io(error.to_string())),
    };
    Some(read.unwrap_or_else(|error| SavedRecords { damage: Some(error), ..SavedRecords::default() }))
}

/// Reads the highest ids that rolled-back transactions handed out. Errors are ignored here, because [`SavedRanges`]
/// reports them.
pub fn high_water_marks<F: SavedRangeFile>(file: &F) -> Vec<SavedRecord<HighWaterMark>> {
    let text = file.read().ok().flatten();
    text.and_then(|text| saved_ranges::high_water_marks_of(&text).ok()).unwrap_or_default()
}

/// The saved ranges of one database's tags.
pub struct SavedRanges<F> {
    file: F,
    database: u32,
    left: RefCell<FxHashMap<(u32, Tag), SavedRange>>,
}

impl<F: SavedRangeFile> SavedRanges<F> {
    /// Reads the saved ranges from the file. The result has no saved ranges if the file is missing or cannot be used.
    /// Also returns the reason why the file cannot be used.
    pub fn of_database(file: F, database: u32) -> (Self, Option<Unreadable>) {
        let SavedRecords { left, damage, .. } = records_of(&file).unwrap_or_default();
        let of_it = left.into_iter().filter(|record| record.of.database == database);
        let left =
            of_it.filter_map(|record| Some(((record.of.source, Tag::new(&record.of.tag)?), record.what)));
        (Self { file, database, left: RefCell::new(left.collect()) }, damage)
    }

    /// Returns the saved range of a tag.
    pub fn of(&self, source: u32, tag: &Tag) -> Option<SavedRange> {
        self.left.borrow().get(&(source, *tag)).cloned()
    }

    /// Marks parts of saved ranges as consumed, independently of the transaction on the rows. Returns true once the marks
    /// are durable. The caller must not hand out any of these ids if the result is false.
    pub fn take_up<'a>(&self, reserved: impl Iterator<Item = (u32, &'a Tag, &'a Reserved)>) -> bool {
        self.record_taken(reserved).inspect_err(|error| self.file.say_lost(error)).is_ok()
    }

    fn record_taken<'a>(
        &self,
        reserved: impl Iterator<Item = (u32, &'a Tag, &'a Reserved)>,
    ) -> Result<(), F::Error> {
        let mut all = self.left.borrow_mut();
        let mut text = Vec::new();
        for (source, tag, reserved) in reserved {
            // If the worker reserved another range instead, the tag's row is above the saved range, so the saved range
            // can never be used.
            let left = all.remove(&(source, *tag)).filter(|left| left.range == reserved.supply.range);
            if let Some(left) = left {
                let of = Name { database: self.database, source, tag: tag.as_bytes().to_vec() };
                text.extend(saved_ranges::taken(of, left.version)?);
            }
        }
        if text.is_empty() { Ok(()) } else { self.file.append(&text) }
    }
}
