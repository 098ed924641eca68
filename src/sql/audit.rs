//! The parts of `snowflake_ids.audit`, which is written in SQL, that are not SQL's: the numbers of a tag, and the rights
//!  with which a table is read.

use crate::pg::read_lock::Wait;
use crate::pg::report::spi;
use crate::pg::role;
use crate::pg::rows::{self, Sought, View};
use crate::pg::tag::TagText;
use crate::segment::error::SegmentError;
use crate::segment::{privilege, transaction_tags};
use crate::store::tables::{REGISTRY_SERVER, SEGMENT};
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::sequence::directory::Tag;
use snowflake_ids_core::sequence::privilege::Action;

/// The increment of a tag's ids, their remainder, and the highest that is reserved; None where that is kept by registries elsewhere.
type Numbers = (i64, i64, Option<i64>);

/// The ids of a tag by now, of which the current role may see how far they came.
fn numbers(tag: &Tag) -> Result<Numbers, SegmentError> {
    privilege::check(tag, Action::Look, role::current(), None)?;
    if registries_are_in_use() {
        return Ok((1, 0, None));
    }
    let (increment, remainder, highest) = row(tag).ok_or_else(|| SegmentError::unknown(tag))?;
    // An id that a transaction hands out of a tag that it has changed is in the row when it commits.
    Ok((increment, remainder, highest.max(transaction_tags::issued(tag))))
}

fn row(tag: &Tag) -> Option<Numbers> {
    let mut found = None;
    let read = |row: &rows::Row<'_>| {
        let [increment, remainder] = [c"increment", c"remainder"].map(|column| row.number(column));
        // One that starts over each day has no highest.
        let highest = row.number(c"max_id").filter(|_| row.has_no_text(c"reset"));
        found = Some((increment.unwrap_or(1).max(1), remainder.unwrap_or(0), highest));
    };
    let of_tag = [(c"tag", Sought::Text(&TagText(*tag)))];
    rows::look(&SEGMENT, Wait::Yes(None), &of_tag, read).ok().and(found)
}

fn registries_are_in_use() -> bool {
    // Locked by who changes it: then it is not known.
    rows::has(&REGISTRY_SERVER, Wait::No, View::Committed, &[]).unwrap_or(true)
}

#[pgrx::pg_schema]
mod snowflake_ids_internal {
    use super::{ErrorReport, SegmentError, numbers, spi};
    use crate::pg::relation::Relation;
    use crate::pg::statement;
    use crate::pg::tag::{self, TagArg};
    use crate::pg::text::{Text, TextOut};
    use pgrx::prelude::*;

    /// Locks a table, of which the caller may read something, against changes of its definition until the transaction ends.
    #[pg_extern(volatile, parallel_unsafe, strict)]
    fn lock_to_read(relation: pg_sys::Oid) {
        if let Some(relation) = Relation::find(relation) {
            relation.lock_to_read();
        }
    }

    /// The text in the first row of a statement that reads a table, or null. Code that comes with the table is its owner's, and a superuser may
    /// be calling: it runs with the owner's rights where the caller may become that role, else with the caller's own.
    #[pg_extern(volatile, parallel_unsafe, strict)]
    fn read_as_owner(relation: pg_sys::Oid, query: Text<'_>) -> Result<Option<TextOut>, ErrorReport> {
        let Some(relation) = Relation::find(relation) else { return Ok(None) };
        let query = query.sql()?;
        relation.as_reader(|| statement::text(&query)).map_err(|error| spi(&error))
    }

    /// The numbers of a tag, of which the caller may see how far it came.
    #[pg_extern(volatile, parallel_unsafe, strict)]
    fn audit_tag(
        tag: TagArg<'_>,
    ) -> Result<
        TableIterator<'static, (name!(increment, i64), name!(remainder, i64), name!(highest, Option<i64>))>,
        ErrorReport,
    > {
        let tag = tag::checked(tag.0).map_err(SegmentError::BadTag)?;
        Ok(TableIterator::once(numbers(&tag)?))
    }
}

pgrx::extension_sql_file!("audit.sql", name = "audit", requires = ["report"]);
