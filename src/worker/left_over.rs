//! The file of what the counters of dense series had left when the server stopped, which go on with it when it starts again.
//!
//! It is written by the process that starts all others, when those have ended, and believed only by the start that follows. It is removed
//! before its numbers are in memory: so they serve once or never. A crash leaves a gap and nothing else.

use crate::pg::{cluster, database, report};
use crate::shared::series::{Counters, counters};
use crate::store::durable;
use rustc_hash::FxHashMap;
use snowflake_ids_core::series::dense::Left;
use snowflake_ids_core::series::dense::left_over::{self, Stop};
use std::fs;
use std::io::{self, ErrorKind};

/// In the data directory, which is where processes of the server are.
const FILE: &str = "snowflake_ids.series.json";
const NEW: &str = "snowflake_ids.series.json.new";

fn last_stop() -> Option<Stop> {
    cluster::last_stop().map(|(system_identifier, checkpoint)| Stop { system_identifier, checkpoint })
}

/// Writes down what counters have left when no other process runs any more.
pub fn save() {
    let (Some(counters), Some(stop)) = (counters(), last_stop()) else { return };
    let left = left(counters);
    if left.is_empty() {
        return;
    }
    let text = left_over::to_text(stop, counters.secret(), left.into_iter()).map_err(io::Error::from);
    if let Err(error) = text.and_then(|text| durable::replace(FILE, NEW, &text)) {
        report::log(format!(
            "snowflake_ids could not write \"{FILE}\", numbers of series will be missing: {error}"
        ));
    }
}

/// What is left in databases that are there.
fn left(counters: &Counters) -> Vec<Left> {
    let mut there: FxHashMap<u32, bool> = FxHashMap::default();
    let mut found = Vec::new();
    for partition in counters.partitions {
        let partition = partition.lock();
        found.extend(partition.iter().filter(|left| {
            let database = left.key.database;
            *there.entry(database).or_insert_with(|| database::has_files(database))
        }));
    }
    found
}

/// Takes up what was left when the server stopped, before any session can look.
pub fn restore() {
    let text = match fs::read(FILE) {
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        read => read,
    };
    // Before: what has not stopped in good order tells nothing of where it stopped.
    let stop = last_stop();
    let removed = durable::remove(FILE);
    let lost = |why: &dyn std::fmt::Display| {
        report::log(format!(
            "snowflake_ids does without \"{FILE}\", numbers of series will be missing: {why}"
        ));
    };
    let text = match (text, removed) {
        (Ok(text), Ok(_)) => text,
        (Err(error), _) | (_, Err(error)) => return lost(&error),
    };
    let Some(counters) = counters() else { return lost(&"snowflake_ids.series_memory is 0") };
    let Some(stop) = stop else { return lost(&"the server did not stop with what it says") };
    let left = match left_over::from_text(&text, stop) {
        Ok(left) => left,
        Err(unbelievable) => return lost(&unbelievable),
    };
    let (all, restored) = (left.counters.len(), counters.restore(&left));
    if restored < all {
        lost(&format_args!("there is room for {restored} keys of {all}"));
    }
}
