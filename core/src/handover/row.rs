//! A row of a table of tags, in JSON.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The tag of a row.
pub fn tag_of(row: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Name {
        tag: String,
    }
    serde_json::from_str(row.get()).ok().map(|Name { tag }| tag)
}
