//! The table of named generators, read without SQL, because a parallel query may need an id.

use super::tables::GENERATOR;
use crate::pg::catalog::Unseen;
use crate::pg::read_lock::Wait;
use crate::pg::rows::{self, Sought};
use crate::pg::tag_text::TagText;
use snowflake_ids_core::generator::named::{GeneratorRow, Named, NamedError};
use snowflake_ids_core::tag::directory::Tag;
use std::time::Duration;

/// Returns the generator with this name; None if there is no row. Waits at most `limit` for a lock on the table. Call only
/// within a transaction. The transaction's own uncommitted changes are visible.
pub fn read(name: &Tag, limit: Duration) -> Result<Option<Result<Named, NamedError>>, Unseen> {
    let mut found = None;
    let each = |row: &rows::Row<'_>| found = Some(named_of(row));
    rows::look(&GENERATOR, Wait::Yes(Some(limit)), &[(c"name", Sought::Text(&TagText(*name)))], each)?;
    Ok(found)
}

fn named_of(row: &rows::Row<'_>) -> Result<Named, NamedError> {
    let layout = row.text(c"layout").unwrap_or_default();
    let sequence_start = row.text(c"sequence_start");
    Named::new(&GeneratorRow {
        layout: &layout,
        modulus: row.int(c"modulus"),
        remainder: row.int(c"remainder"),
        sequence_start: sequence_start.as_deref(),
        cache: row.int(c"cache"),
    })
}
