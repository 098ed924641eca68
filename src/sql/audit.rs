//! The parts of `snowflake_ids.audit`, which is written in SQL, that are not SQL's: the layout of a generator, the numbers of a tag,
//! and the rights with which a table is read.

use crate::pg::report::spi;
use crate::pg::rows;
use crate::pg::tag::TagText;
use crate::segment::error::SegmentError;
use crate::segment::{own, privilege};
use crate::store::tables::{REGISTRY_SERVER, SEGMENT};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode, function_name};
use snowflake_ids_core::directory::Tag;
use snowflake_ids_core::privilege::Action;

/// The increment of a tag's ids, the remainder that they leave, and the highest that is reserved; None where that is not known, as of
/// a tag of registries on other servers.
type Numbers = (i64, i64, Option<i64>);

/// The ids of a tag by now, of which the current role may see how far they came.
fn numbers(tag: &Tag) -> Result<Numbers, SegmentError> {
    privilege::check(tag, Action::Look)?;
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
    use crate::pg::clock::SystemClock;
    use crate::pg::relation::Relation;
    use crate::pg::statement;
    use crate::pg::tag::{self, TagArg};
    use crate::pg::text::{Sql, Text, TextOut};
    use crate::settings;
    use crate::sql::layout;
    use pgrx::prelude::*;
    use snowflake_ids_core::Clock;
    use snowflake_ids_core::layout::{Field, TickError};

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
        relation.to_read(|| statement::text(&query.0)).map_err(|error| spi(&error))
    }

    /// The layout of a generator, of the server where none is named: its largest id, the highest that there can be by now, and
    /// shifts and masks that take an id apart. Times are in microseconds since 1970.
    #[pg_extern(volatile, parallel_safe)]
    fn audit_layout(
        generator: Option<Text<'_>>,
    ) -> Result<
        TableIterator<
            'static,
            (
                name!(layout, String),
                name!(largest, i64),
                name!(highest, i64),
                name!(now, i64),
                name!(epoch, i64),
                name!(unit, i64),
                name!(tick_shift, i32),
                name!(datacenter_shift, i32),
                name!(datacenter_mask, i64),
                name!(worker_shift, i32),
                name!(worker_mask, i64),
            ),
        >,
        ErrorReport,
    > {
        let layout =
            generator.map_or_else(layout::of_server, |generator| layout::of_generator(&generator))?;
        let now = SystemClock.now();
        let largest = layout.largest_id().cast_signed();
        let highest = match layout.max_id(now.plus_micros(settings::rules().max_drift)) {
            Ok(highest) => highest.cast_signed(),
            Err(TickError::AfterLast { .. }) => largest,
            Err(TickError::BeforeEpoch { .. }) => -1,
        };
        let of = |field| (i32::from(layout.shift(field)), layout.max(field).cast_signed());
        let (tick_shift, _) = of(Field::Ticks);
        let (datacenter_shift, datacenter_mask) = of(Field::Datacenter);
        let (worker_shift, worker_mask) = of(Field::Worker);
        Ok(TableIterator::once((
            layout.to_string(),
            largest,
            highest,
            now.0,
            layout.epoch().0,
            layout.unit().cast_signed(),
            tick_shift,
            datacenter_shift,
            datacenter_mask,
            worker_shift,
            worker_mask,
        )))
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

/// What the SQL of 0.2 calls.
#[pgrx::pg_extern(sql = false)]
fn audit_run() -> Result<(), ErrorReport> {
    let detail = "The library is a later version's, and its audit is written in SQL.";
    Err(ErrorReport::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "extension \"snowflake_ids\" must be updated before it can audit",
        function_name!(),
    )
    .set_detail(detail)
    .set_hint("ALTER EXTENSION snowflake_ids UPDATE;"))
}

pgrx::extension_sql_file!(
    "audit.sql",
    name = "audit",
    requires = [
        snowflake_ids_internal::lock_to_read,
        snowflake_ids_internal::read_as_owner,
        snowflake_ids_internal::audit_layout,
        snowflake_ids_internal::audit_tag,
        "progress"
    ]
);
