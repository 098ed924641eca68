//! The parts of `snowflake_ids.audit`, which is written in SQL, that are not SQL's: the numbers of a tag, and the rights
//!  with which a table is read.

use crate::pg::report::spi;
use crate::pg::tag::TagText;
use crate::pg::{role, rows};
use crate::segment::error::SegmentError;
use crate::segment::{own, privilege};
use crate::store::tables::{REGISTRY_SERVER, SEGMENT};
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::sequence::directory::Tag;
use snowflake_ids_core::sequence::privilege::Action;

/// The increment of a tag's ids, the remainder that they leave, and the highest that is reserved; None where that is not known, as of
/// a tag of registries on other servers.
type Numbers = (i64, i64, Option<i64>);

/// The ids of a tag by now, of which the current role may see how far they came.
fn numbers(tag: &Tag) -> Result<Numbers, SegmentError> {
    privilege::check(tag, Action::Look, role::current(), None)?;
    if registries_are_in_use() {
        return Ok((1, 0, None));
    }
    let (increment, remainder, highest) = row(tag).ok_or_else(|| SegmentError::unknown(tag))?;
    // What a transaction hands out of a tag that it has changed is in the row when it commits.
    Ok((increment, remainder, highest.max(own::issued(tag))))
}

fn row(tag: &Tag) -> Option<Numbers> {
    let mut found = None;
    let read = |row: &rows::Row<'_>| {
        let [increment, remainder] = [c"increment", c"remainder"].map(|column| row.number(column));
        // One that starts over each day has no highest.
        let highest = row.number(c"max_id").filter(|_| row.has_no_text(c"reset"));
        found = Some((increment.unwrap_or(1).max(1), remainder.unwrap_or(0), highest));
    };
    rows::of_tag(&SEGMENT, &TagText(*tag), None, read).ok().and(found)
}

fn registries_are_in_use() -> bool {
    let mut in_use = false;
    // Locked by who changes it: then it is not known.
    rows::each(&REGISTRY_SERVER, false, |_| in_use = true).is_err() || in_use
}

#[pgrx::pg_schema]
mod snowflake_ids_internal {
    use super::{ErrorReport, SegmentError, numbers, spi};
    use crate::pg::relation::Relation;
    use crate::pg::statement;
    use crate::pg::tag::{self, TagArg};
    use crate::pg::text::{Sql, TextOut};
    use pgrx::prelude::*;

    /// Locks a table, of which the caller may read something, against changes of its definition until the transaction ends.
    #[pg_extern(volatile, parallel_unsafe, strict)]
    fn lock_to_read(relation: pg_sys::Oid) {
        if let Some(relation) = Relation::find(relation) {
            relation.lock_to_read();
        }
    }

    /// The text in the first column of the first row of a statement that reads a table, null where there is none. Code that comes
    /// with the table (what an index computes, say) is its owner's, and a superuser may be calling: so the statement runs with the
    /// rights of the table's owner where the caller may become that role, and with the caller's own where not.
    #[pg_extern(volatile, parallel_unsafe, strict)]
    fn read_as_owner(relation: pg_sys::Oid, query: Sql) -> Result<Option<TextOut>, ErrorReport> {
        let Some(relation) = Relation::find(relation) else { return Ok(None) };
        relation.as_reader(|| statement::text(&query.0)).map_err(|error| spi(&error))
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

pgrx::extension_sql_file!(
    "audit.sql",
    name = "audit",
    requires = [
        snowflake_ids_internal::lock_to_read,
        snowflake_ids_internal::read_as_owner,
        snowflake_ids_internal::audit_tag,
        "report",
        "progress"
    ]
);
