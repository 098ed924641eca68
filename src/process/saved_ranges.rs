//! The saved-range file. The file contains the ids that were reserved but not handed out when the server stopped, and the
//! high-water marks of rolled-back transactions. [`snowflake_ids_core::server::saved_range_file`] decides how the file is
//! used.

use crate::pg::{database, report};
use crate::shared::segments::SEGMENTS;
use crate::store::durable;
use crate::tag::slot;
use snowflake_ids_core::server::saved_range_file::{self, SavedRangeFile};
use snowflake_ids_core::server::saved_ranges::{InUse, Name, Unreadable, rest};
use snowflake_ids_core::tag::directory::{Tag, TagKey};
use snowflake_ids_core::tag::reservation::SavedRange;
use std::fs;
use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering::Relaxed;

/// These paths are relative to the data directory, which is the working directory of all server processes.
const FILE: &str = "snowflake_ids.saved_ranges.json";
const NEW: &str = "snowflake_ids.saved_ranges.json.new";

pub struct InDataDirectory;

impl SavedRangeFile for InDataDirectory {
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
            "snowflake_ids could not write \"{FILE}\", so the saved ranges of the last run are lost: {error}"
        );
    }
}

pub type SavedRanges = saved_range_file::SavedRanges<InDataDirectory>;

/// Saves the unused ids of all tags, and all high-water marks. Called after all other processes of the server have ended.
pub fn save() {
    match saved_range_file::save(&InDataDirectory, in_use(), database::has_files) {
        Ok(None) => {}
        Ok(Some(unknown @ Unreadable::UnknownForm(_))) => report::log(format!(
            "snowflake_ids does not overwrite \"{FILE}\", so ids that were not yet handed out are lost: {unknown}"
        )),
        Ok(Some(error)) => report::log(format!(
            "snowflake_ids could not read all of \"{FILE}\", and has replaced the file: {error}"
        )),
        Err(error) => report::log(format!(
            "snowflake_ids could not write \"{FILE}\", so ids that were not yet handed out are lost: {error}"
        )),
    }
}

fn in_use() -> Vec<InUse> {
    let Some(segments) = SEGMENTS.get() else { return Vec::new() };
    let (directory, high_water_marks) = (segments.directory.read(), segments.high_water_marks.read());
    let name =
        |key: &TagKey| Name { database: key.database, source: key.source, tag: key.tag.as_bytes().to_vec() };
    let with_slot = |(slot_index, key): (usize, &TagKey)| {
        let slot = segments.slots.get(slot_index)?;
        let version = slot.version.load(Relaxed);
        let left = rest(&slot.segment.buffer_states());
        Some(InUse {
            name: name(key),
            had_ids: !slot.is_unused(),
            left: left.map(|(range, period)| SavedRange { version, day: period.dated(), range }),
            high_water_mark: high_water_marks.get(key),
        })
    };
    let without = high_water_marks.iter().filter(|(key, _)| directory.find(key).is_none());
    let without = without.map(|(key, high_water_mark)| InUse {
        name: name(key),
        had_ids: false,
        left: None,
        high_water_mark: Some(high_water_mark),
    });
    directory.iter().filter_map(with_slot).chain(without).collect()
}

/// Restores the high-water marks of rolled-back transactions, before any session can use tags.
pub fn restore_high_water_marks() {
    let high_water_marks =
        saved_range_file::high_water_marks(&InDataDirectory).into_iter().filter_map(|record| {
            let Name { database, source, tag } = record.of;
            Some((TagKey { database, source, tag: Tag::new(&tag)? }, record.what))
        });
    let lost = slot::restore_high_water_marks(high_water_marks);
    if lost > 0 {
        report::log(format!(
            "snowflake_ids has no slots for the high-water marks of {lost} segment tags: ids of transactions that were rolled \
             back may be issued again"
        ));
    }
}

/// Returns the saved ranges of a database; none if the file cannot be read.
pub fn of_database(database: u32) -> SavedRanges {
    let (saved_ranges, error) = saved_range_file::SavedRanges::of_database(InDataDirectory, database);
    if let Some(error) = error {
        report::log(format!("snowflake_ids could not read \"{FILE}\", and ignores it: {error}"));
    }
    saved_ranges
}
