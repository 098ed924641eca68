//! `snowflake_safe_id` and `snowflake_safe_time`: bounds for a reader that repeatedly reads the rows above the last id that it has
//! read.

use crate::pg::report::report;
use crate::pg::time;
use crate::safe_position::{self, Safe, open_processes};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

/// Returns an id of the server's layout. The calling statement sees all rows of this server with lower ids: no row with a lower
/// id can become visible later. Null if no such id is known. RESTRICTED, so that all processes of a parallel query share one
/// answer.
#[pg_extern(stable, parallel_restricted)]
fn snowflake_safe_id() -> Result<Option<i64>, ErrorReport> {
    Ok(found("snowflake_safe_id", false)?.map(|safe| safe.id))
}

/// Returns a time. The calling statement sees all rows of this server whose keys are version 7 UUIDs from before that time. Null
/// if no such time is known.
#[pg_extern(stable, parallel_restricted)]
fn snowflake_safe_time() -> Result<Option<TimestampWithTimeZone>, ErrorReport> {
    found("snowflake_safe_time", true)?.map(|safe| time::to_sql(safe.time)).transpose()
}

fn found(function: &'static str, skips_tick: bool) -> Result<Option<Safe>, ErrorReport> {
    safe_position::of_statement(function, skips_tick).map_err(report)
}

/// Returns the processes whose open transactions keep [`snowflake_safe_id`] from advancing.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_restricted)]
fn safe_id_holders() -> SetOfIterator<'static, i32> {
    SetOfIterator::new(open_processes())
}
