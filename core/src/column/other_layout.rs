//! Columns with ids above the next id, which usually have another layout.

use super::default::literal;
use crate::clock::UnixMicros;
use crate::ids::layout::{Layout, PRESETS};

/// The greatest age of a column's highest id, in microseconds, at which its layout is recognised: 30 days.
const MOST_AGE: i64 = 30 * 24 * 3_600 * 1_000_000;

/// Returns the preset in whose layout an id was made lately. Returns None if there is no such preset, or if presets differ in the
/// id's time.
pub fn preset_of(id: i64, now: UnixMicros) -> Option<&'static str> {
    let time_in = |(name, text): &(&'static str, &str)| {
        let time = text.parse::<Layout>().ok()?.decode(id).ok()?.timestamp;
        (0..MOST_AGE).contains(&now.0.saturating_sub(time.0)).then_some((*name, time))
    };
    let mut fitting = PRESETS.iter().filter_map(time_in);
    let (first, time) = fitting.next()?;
    fitting.all(|(_, other)| other == time).then_some(first)
}

/// Returns the HINT for a column whose highest id is above the next id of the default `written`.
pub fn hint(table: &str, attribute: &str, highest: i64, written: &str, now: UnixMicros) -> String {
    if let Some(preset) = preset_of(highest, now) {
        return format!(
            "If the ids are of layout \"{preset}\": SELECT snowflake_ids.generator_create('{preset}_ids', '{preset}'); SELECT \
             snowflake_ids.attach({}, {}, generator => '{preset}_ids'); Or attach with kind => 'segment'.",
            literal(table),
            literal(attribute)
        );
    }
    let way = if written == "snowflake_nextval()" {
        "change to that layout with snowflake_ids.layout_change"
    } else {
        "attach with a generator of that layout"
    };
    format!("If the ids are of another layout, {way}, or attach with kind => 'segment'.")
}
