//! Functions that decode and compose ids, and find ids by time. Each function has two variants. The variant with a layout
//! argument is IMMUTABLE and can be used in indexes. The other variant uses the server's layout and is STABLE.

use super::layout;
use crate::pg::report::report;
use crate::pg::text::Text;
use crate::pg::time;
use crate::sql::error::CallError;
use pgrx::JsonB;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::{Decoded, Field, Layout, Node};

/// Defines two functions: one for the server's layout, and one with a layout argument.
macro_rules! with_and_without_layout {
    ($(#[$doc:meta])* $name:literal $own:ident $given:ident ($arg:ident: $($type:tt)+) -> ($($result:tt)+) = $body:path) => {
        $(#[$doc])*
        #[pg_extern(name = $name, stable, strict, parallel_safe)]
        fn $own($arg: $($type)+) -> Result<$($result)+, ErrorReport> {
            $body(&layout::of_server()?, $arg)
        }

        $(#[$doc])*
        #[pg_extern(name = $name, immutable, strict, parallel_safe)]
        fn $given($arg: $($type)+, layout: Text<'_>) -> Result<$($result)+, ErrorReport> {
            $body(&layout::named(&layout)?, $arg)
        }
    };
}
pub(super) use with_and_without_layout;

with_and_without_layout! {
    /// Returns the time at which an id was generated: the beginning of the id's tick.
    "snowflake_timestamp" timestamp_of timestamp_of_layout (id: i64) -> (TimestampWithTimeZone) = timestamp
}
with_and_without_layout! {
    "snowflake_datacenter_id" datacenter_id_of datacenter_id_of_layout (id: i64) -> (i32) = datacenter_id
}
with_and_without_layout! {
    "snowflake_worker_id" worker_id_of worker_id_of_layout (id: i64) -> (i32) = worker_id
}
with_and_without_layout! {
    /// Returns the number of an id within its tick.
    "snowflake_sequence" sequence_of sequence_of_layout (id: i64) -> (i32) = sequence
}
with_and_without_layout! {
    /// Returns all parts of an id as JSON.
    "snowflake_decode_json" decode_json_of decode_json_of_layout (id: i64) -> (JsonB) = json
}
with_and_without_layout! {
    /// Returns the smallest id of the tick that contains a time: `WHERE id >= snowflake_min_id(...)`.
    "snowflake_min_id" min_id_of min_id_of_layout (at: TimestampWithTimeZone) -> (i64) = min_id
}
with_and_without_layout! {
    /// Returns the largest id of the tick that contains a time: `WHERE id <= snowflake_max_id(...)`.
    "snowflake_max_id" max_id_of max_id_of_layout (at: TimestampWithTimeZone) -> (i64) = max_id
}

with_and_without_layout! {
    /// Returns the difference between the first ids of two times that are an interval apart. Tools that partition by ranges of
    /// numbers need this width.
    "snowflake_interval" interval_of interval_of_layout (span: Interval) -> (i64) = ids_in
}

with_and_without_layout! {
    /// Returns all parts of an id as a row.
    "snowflake_decode" snowflake_decode decode_of_layout (id: i64) -> (
        TableIterator<
            'static,
            (
                name!(id, i64),
                name!(timestamp, TimestampWithTimeZone),
                name!(datacenter_id, i32),
                name!(worker_id, i32),
                name!(rollback, i32),
                name!(sequence, i32),
            ),
        >
    ) = row
}

// The planner cannot know that the function returns one row, because the function is declared to return a table.
extension_sql!(
    "
ALTER FUNCTION snowflake_decode(bigint) ROWS 1;
ALTER FUNCTION snowflake_decode(bigint, text) ROWS 1;
",
    name = "decode_rows",
    requires = [snowflake_decode, decode_of_layout]
);

extension_sql_file!(
    "decode.sql",
    name = "decode",
    requires = [min_id_of, min_id_of_layout, snowflake_min_uuid]
);

/// Composes an id from its parts. The rollback field, if the layout has one, is 0. The inverse of `snowflake_decode`.
#[pg_extern(stable, strict, parallel_safe)]
fn snowflake_compose(
    at: TimestampWithTimeZone,
    datacenter_id: i32,
    worker_id: i32,
    sequence: i32,
) -> Result<i64, ErrorReport> {
    compose(&layout::of_server()?, at, [datacenter_id, worker_id, 0, sequence])
}

/// Composes an id from all its parts. The exact inverse of `snowflake_decode`.
#[pg_extern(name = "snowflake_compose", immutable, strict, parallel_safe)]
fn compose_of_layout(
    at: TimestampWithTimeZone,
    datacenter_id: i32,
    worker_id: i32,
    sequence: i32,
    layout: Text<'_>,
    rollback: default!(i32, 0),
) -> Result<i64, ErrorReport> {
    compose(&layout::named(&layout)?, at, [datacenter_id, worker_id, rollback, sequence])
}

type DecodedRow = (i64, TimestampWithTimeZone, i32, i32, i32, i32);

fn row(layout: &Layout, id: i64) -> Result<TableIterator<'static, DecodedRow>, ErrorReport> {
    let parts = decode(layout, id)?;
    Ok(TableIterator::once((
        id,
        time::to_sql(parts.timestamp)?,
        parts.datacenter_id.cast_signed(),
        parts.worker_id.cast_signed(),
        parts.rollback.cast_signed(),
        parts.sequence.cast_signed(),
    )))
}

fn decode(layout: &Layout, id: i64) -> Result<Decoded, ErrorReport> {
    layout.decode(id).map_err(report)
}

pub(super) fn timestamp(layout: &Layout, id: i64) -> Result<TimestampWithTimeZone, ErrorReport> {
    time::to_sql(decode(layout, id)?.timestamp)
}

fn datacenter_id(layout: &Layout, id: i64) -> Result<i32, ErrorReport> {
    Ok(decode(layout, id)?.datacenter_id.cast_signed())
}

fn worker_id(layout: &Layout, id: i64) -> Result<i32, ErrorReport> {
    Ok(decode(layout, id)?.worker_id.cast_signed())
}

fn sequence(layout: &Layout, id: i64) -> Result<i32, ErrorReport> {
    Ok(decode(layout, id)?.sequence.cast_signed())
}

fn json(layout: &Layout, id: i64) -> Result<JsonB, ErrorReport> {
    let parts = decode(layout, id)?;
    serde_json::to_value(parts).map(JsonB).map_err(|error| CallError::NoJson(error).into())
}

fn min_id(layout: &Layout, at: TimestampWithTimeZone) -> Result<i64, ErrorReport> {
    layout.min_id(time::from_sql(at)?).map(u64::cast_signed).map_err(report)
}

fn max_id(layout: &Layout, at: TimestampWithTimeZone) -> Result<i64, ErrorReport> {
    layout.max_id(time::from_sql(at)?).map(u64::cast_signed).map_err(report)
}

fn ids_in(layout: &Layout, span: Interval) -> Result<i64, ErrorReport> {
    const DAY: i64 = 86_400_000_000;
    if span.months() != 0 {
        return Err(CallError::Months.into());
    }
    let micros = i64::from(span.days()).checked_mul(DAY).and_then(|days| days.checked_add(span.micros()));
    let ids = layout.ids_in(micros.unwrap_or(i64::MAX)).map_err(report)?;
    Ok(ids.cast_signed())
}

fn compose(layout: &Layout, at: TimestampWithTimeZone, parts: [i32; 4]) -> Result<i64, ErrorReport> {
    let fields = [Field::Datacenter, Field::Worker, Field::Rollback, Field::Sequence];
    for (field, part) in fields.into_iter().zip(parts) {
        layout.check(field, part.into()).map_err(report)?;
    }
    let [datacenter, worker_id, rollback, sequence] = parts.map(i32::cast_unsigned);
    let node = Node { datacenter, worker_id, rollback };
    let id = layout.compose(time::from_sql(at)?, node, sequence);
    id.map(u64::cast_signed).map_err(report)
}
