//! A row of a table of tags, in JSON.

use crate::clock::UnixMicros;
use crate::sequence::reservation::Reached;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The tag of a row.
pub fn tag_of(row: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct TagField {
        tag: String,
    }
    serde_json::from_str(row.get()).ok().map(|TagField { tag }| tag)
}

/// A row that raises a tag this far.
pub fn row_of(tag: &str, (day, max_id): Reached) -> Option<Box<RawValue>> {
    let first = UnixMicros::of_day(day);
    let period =
        (day != 0).then(|| first.to_string().chars().take_while(|letter| *letter != 'T').collect::<String>());
    let row = serde_json::json!({ "tag": tag, "period": period, "max_id": max_id });
    RawValue::from_string(row.to_string()).ok()
}
