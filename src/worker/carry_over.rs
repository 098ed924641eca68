//! The carry-over file: ids that were reserved and not handed out when the server stopped, and how far transactions came
//! that were rolled back. What is done with it is in [`snowflake_ids_core::server::carry_over_file`].

use crate::pg::{database, report};
use crate::segment::place;
use crate::shared::segments::segments;
use crate::store::durable;
use snowflake_ids_core::sequence::directory::{Key, Tag};
use snowflake_ids_core::sequence::reservation::CarryOver;
use snowflake_ids_core::server::carry_over::{InUse, Name, rest};
use snowflake_ids_core::server::carry_over_file::{self, CarryOverFile, Saved};
use std::fs;
use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering::Relaxed;

/// In the data directory, which is where processes of the server are.
const FILE: &str = "snowflake_ids.carry_over.json";
const NEW: &str = "snowflake_ids.carry_over.json.new";

pub struct InDataDirectory;

impl CarryOverFile for InDataDirectory {
    type Error = io::Error;

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(FILE) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn append(&self, text: &[u8]) -> io::Result<()> {
        durable::append(FILE, text)
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        durable::replace(FILE, NEW, text)
    }

    fn say_lost(&self, error: &io::Error) {
        pgrx::warning!(
            "snowflake_ids could not write \"{FILE}\", ids left over from the last run will be missing: {error}"
        );
    }
}

pub type CarryOvers = carry_over_file::CarryOvers<InDataDirectory>;

/// Writes down what there is when no other process runs any more.
pub fn save() {
    match carry_over_file::save(&InDataDirectory, in_use(), database::has_files) {
        Ok(Saved::Nothing | Saved::Written(None)) => {}
        Ok(Saved::Written(Some(error))) => {
            report::log(format!(
                "snowflake_ids could not read all of \"{FILE}\", which it has replaced: {error}"
            ));
        }
        Ok(Saved::Kept(error)) => report::log(format!(
            "snowflake_ids leaves \"{FILE}\" as it is, ids not yet handed out will be missing: {error}"
        )),
        Err(error) => report::log(format!(
            "snowflake_ids could not write \"{FILE}\", ids not yet handed out will be missing: {error}"
        )),
    }
}

fn in_use() -> Vec<InUse> {
    let Some(segments) = segments() else { return Vec::new() };
    let (directory, floors) = (segments.directory.read(), segments.floors.read());
    let name =
        |key: &Key| Name { database: key.database, source: key.source, tag: key.tag.as_bytes().to_vec() };
    let with_place = |(place, key): (usize, &Key)| {
        let slot = segments.slots.get(place)?;
        let version = slot.version.load(Relaxed);
        let left = rest(&slot.segment.shelves());
        Some(InUse {
            name: name(key),
            had_ids: !slot.is_unused(),
            left: left.map(|(range, period)| CarryOver { version, day: period.dated(), range }),
            floor: floors.get(key),
        })
    };
    let without = floors.iter().filter(|(key, _)| directory.find(key).is_none());
    let without =
        without.map(|(key, floor)| InUse { name: name(key), had_ids: false, left: None, floor: Some(floor) });
    directory.iter().filter_map(with_place).chain(without).collect()
}

/// Brings back how far transactions came that were rolled back, before any session can look.
pub fn restore_floors() {
    let floors = carry_over_file::floors(&InDataDirectory).into_iter().filter_map(|note| {
        let Name { database, source, tag } = note.of;
        Some((Key { database, source, tag: Tag::new(&tag)? }, note.what))
    });
    let lost = place::restore_floors(floors);
    if lost > 0 {
        report::log(format!(
            "snowflake_ids has no place for what it noted of {lost} segment tags: ids of transactions that were rolled \
             back may come again"
        ));
    }
}

/// Returns the saved ranges of a database; none if the file cannot be read.
pub fn of_database(database: u32) -> CarryOvers {
    let (carry_overs, error) = carry_over_file::CarryOvers::of_database(InDataDirectory, database);
    if let Some(error) = error {
        report::log(format!("snowflake_ids could not read \"{FILE}\", and does without: {error}"));
    }
    carry_overs
}
