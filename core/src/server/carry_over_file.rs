//! The life of a carry-over file: at the server's start, as ids of it are taken up, and at its stop.
//!
//! The process that starts all others takes the ids out of the buffers when all others have ended, and writes them to the
//! file. A refill worker goes on with them when the server runs again, so a restart leaves no gap. The file is only a
//! note. What decides is the row: its version must still be what it was after the reservation, and taking the ids up
//! changes it. What was taken up is noted in the file, too, before it is handed out: so it is taken up once or never,
//! whichever of both is set back to an earlier state. A crash leaves a gap and nothing else.

use crate::sequence::directory::Tag;
use crate::sequence::reservation::{CarryOver, Floor, Reserved};
use crate::server::carry_over::{self, InUse, Name, Note, Notes, Unreadable};
use crate::worker::refill;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::fmt;

/// The file. A process may end before and after each call, and the machine may fail.
pub trait CarryOverFile {
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

    /// Tells the log that ids which were left over are lost, as that they are taken up could not be written.
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
pub fn save<F: CarryOverFile>(
    file: &F,
    in_use: Vec<InUse>,
    is_there: impl FnMut(u32) -> bool,
) -> Result<Saved, F::Error> {
    let (former, lost, missing) = match notes_of(file) {
        Ok(None) => (Notes::default(), None, true),
        Ok(Some((notes, damage))) => (notes, damage, false),
        Err(newer @ Unreadable::Newer(_)) => return Ok(Saved::Kept(newer)),
        Err(error) => (Notes::default(), Some(error), false),
    };
    let notes = former.at_stop(in_use, is_there);
    if missing && notes == Notes::default() {
        return Ok(Saved::Nothing);
    }
    file.replace(&carry_over::to_text(notes)?)?;
    Ok(Saved::Written(lost))
}

/// Returns what a file says, and what is wrong with a part of it; None where there is no file.
fn notes_of(file: &impl CarryOverFile) -> Result<Option<(Notes, Option<Unreadable>)>, Unreadable> {
    let Some(text) = file.read().map_err(|error| Unreadable::Io(error.to_string()))? else { return Ok(None) };
    let notes = carry_over::from_text(&text)?;
    let damage = notes.damage.clone().map(Unreadable::Damaged);
    Ok(Some((notes, damage)))
}

/// Returns how far transactions came that were rolled back, as it was noted. The search for what is left over says what
/// is wrong with the file.
pub fn floors<F: CarryOverFile>(file: &F) -> Vec<Note<Floor>> {
    let text = file.read().ok().flatten();
    text.and_then(|text| carry_over::floors_of(&text).ok()).unwrap_or_default()
}

/// The ids left over of the tags of one database.
pub struct CarryOvers<F> {
    file: F,
    database: u32,
    left: RefCell<FxHashMap<(u32, Tag), CarryOver>>,
}

impl<F: CarryOverFile> CarryOvers<F> {
    /// Reads the file. One that is missing, damaged or of a newer release says nothing; the last two come with the reason.
    pub fn of_database(file: F, database: u32) -> (Self, Option<Unreadable>) {
        let (notes, error) = match notes_of(&file) {
            Ok(read) => read.unwrap_or_default(),
            Err(error) => (Notes::default(), Some(error)),
        };
        let of_it = notes.left.into_iter().filter(|note| note.of.database == database);
        let left = of_it.filter_map(|note| Some(((note.of.source, Tag::new(&note.of.tag)?), note.what)));
        (Self { file, database, left: RefCell::new(left.collect()) }, error)
    }

    /// Notes in the file that what was left over of these is taken up.
    fn note_taken<'a>(
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
                text.extend(carry_over::taken(of, left.version)?);
            }
        }
        if text.is_empty() { Ok(()) } else { self.file.append(&text) }
    }
}

impl<F: CarryOverFile> refill::CarryOvers for CarryOvers<F> {
    fn of(&self, source: u32, tag: &Tag) -> Option<CarryOver> {
        self.left.borrow().get(&(source, *tag)).cloned()
    }

    fn take_up<'a>(&self, reserved: impl Iterator<Item = (u32, &'a Tag, &'a Reserved)>) -> bool {
        self.note_taken(reserved).inspect_err(|error| self.file.say_lost(error)).is_ok()
    }
}
