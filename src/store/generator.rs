//! The table of named generators, looked at without SQL: a call for an id may be within a parallel query.

use crate::pg::catalog::{self, Source};
use crate::pg::rows::{self, Unseen};
use crate::pg::tag::TagText;
use snowflake_ids_core::directory::Tag;
use snowflake_ids_core::named::{Named, NamedError, Row};
use std::ffi::CStr;

const EXTENSION: &CStr = c"snowflake_ids";

/// The table of named generators of this database; None where the extension is not. Only within a transaction.
pub fn table() -> Option<Source> {
    Source::look_up(c"generator").filter(|table| catalog::is_table_of(EXTENSION, table.oid()))
}

/// What the row of this name says; None where there is none. Waits where the table is locked. Only within a transaction, of
/// which it sees what that has changed.
pub fn read(table: Source, name: &Tag) -> Option<Result<Named, NamedError>> {
    let mut found = None;
    let each = |row: &rows::Row<'_>| found = Some(named_of(row));
    match rows::of_key(table, c"name", &TagText(*name), each) {
        Ok(()) | Err(Unseen::NoTable | Unseen::Locked) => found,
    }
}

fn named_of(row: &rows::Row<'_>) -> Result<Named, NamedError> {
    let layout = row.text(c"layout").unwrap_or_default();
    let sequence_start = row.text(c"sequence_start");
    Named::new(&Row {
        layout: &layout,
        modulus: row.int(c"modulus"),
        remainder: row.int(c"remainder"),
        sequence_start: sequence_start.as_deref(),
        cache: row.int(c"cache"),
    })
}
