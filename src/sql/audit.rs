//! The parts of `snowflake_ids.audit` that are not written in SQL: the numbers of a tag, and the rights with which a table
//! is read.

use crate::pg::read_lock::Wait;
use crate::pg::relation::Relation;
use crate::pg::report::spi;
use crate::pg::rows::{self, Sought, View};
use crate::pg::tag_text::{self, TagArg, TagText};
use crate::pg::text::{Text, TextOut};
use crate::pg::{role, statement};
use crate::store::tables::{REGISTRY_SERVER, SEGMENT};
use crate::tag::error::SegmentError;
use crate::tag::{privilege, transaction_tags};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::privilege::Access;

/// The increment and the remainder of a tag's ids, and the highest reserved id. The highest id is None if registries on other
/// servers reserve the ids, or if the tag restarts each period.
type Numbers = (i64, i64, Option<i64>);

/// Returns the [`Numbers`] of a tag. The current role needs SELECT on the tag.
fn numbers(tag: &Tag) -> Result<Numbers, SegmentError> {
    privilege::check(tag, Access::Look, role::current(), None)?;
    if registries_are_in_use() {
        return Ok((1, 0, None));
    }
    let (increment, remainder, highest) = row(tag).ok_or_else(|| SegmentError::unknown(tag))?;
    // If this transaction has changed the tag, the ids that this transaction took are written to the row only at commit.
    Ok((increment, remainder, highest.max(transaction_tags::issued(tag))))
}

fn row(tag: &Tag) -> Option<Numbers> {
    let mut found = None;
    let read = |row: &rows::Row<'_>| {
        let [increment, remainder] = [c"increment", c"remainder"].map(|column| row.number(column));
        // A tag that restarts each period has no highest id.
        let highest = row.number(c"max_id").filter(|_| row.has_no_text(c"reset"));
        found = Some((increment.unwrap_or(1).max(1), remainder.unwrap_or(0), highest));
    };
    let of_tag = [(c"tag", Sought::Text(&TagText(*tag)))];
    rows::look(&SEGMENT, Wait::Yes(None), &of_tag, read).ok().and(found)
}

fn registries_are_in_use() -> bool {
    // A locked table may be about to change, so registries then count as in use.
    rows::has(&REGISTRY_SERVER, Wait::No, View::Committed, &[]).unwrap_or(true)
}

/// Locks a table against changes of its definition until the transaction ends. The caller must have a right to read a
/// part of the table.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn lock_to_read(relation: pg_sys::Oid) {
    if let Some(relation) = Relation::find(relation) {
        relation.lock_to_read();
    }
}

/// Returns the text in the first row of a query on a table, or null. The query may run code of the table's owner, and
/// the caller may be a superuser. Therefore the query runs with the owner's rights if the caller may become the owner.
/// If not, the query runs with the caller's rights.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn read_as_owner(relation: pg_sys::Oid, query: Text<'_>) -> Result<Option<TextOut>, ErrorReport> {
    let Some(relation) = Relation::find(relation) else { return Ok(None) };
    let query = query.sql()?;
    relation.as_reader(|| statement::text(&query)).map_err(spi)
}

/// Returns the number in the first row of a statement that reads a table and writes rows elsewhere, or null. The statement runs
/// with the same rights as that of [`read_as_owner`].
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn run_as_owner(relation: pg_sys::Oid, query: Text<'_>) -> Result<Option<i64>, ErrorReport> {
    let Some(relation) = Relation::find(relation) else { return Ok(None) };
    let query = query.sql()?;
    relation.as_reader(|| statement::number(&query)).map_err(spi)
}

/// Returns the increment, the remainder and the highest id of a tag. The caller needs SELECT on the tag.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn audit_tag(
    tag: TagArg<'_>,
) -> Result<
    TableIterator<'static, (name!(increment, i64), name!(remainder, i64), name!(highest, Option<i64>))>,
    ErrorReport,
> {
    let tag = tag_text::checked(tag.0).map_err(SegmentError::BadTag)?;
    Ok(TableIterator::once(numbers(&tag)?))
}

pgrx::extension_sql_file!("audit.sql", name = "audit", requires = ["report"]);
