//! `snowflake_safe_id` and `snowflake_safe_time`: a bound for readers who go on after the last id.

use crate::pg::report::report;
use crate::pg::time;
use crate::safe_position::{self, Safe};
use crate::shared::generator;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::Layout;

/// An id of the server's layout below which this statement misses no row that this server makes; null if that is not known
/// for now. RESTRICTED: all processes of a parallel query share one answer.
#[pg_extern(stable, parallel_restricted)]
fn snowflake_safe_id() -> Result<Option<i64>, ErrorReport> {
    let found = found("snowflake_safe_id", false)?;
    Ok(found.map(|(layout, Safe { position, next })| next.least_id(&layout, position).cast_signed()))
}

/// The same for UUIDs of version 7: a time before which this statement misses no row.
#[pg_extern(stable, parallel_restricted)]
fn snowflake_safe_time() -> Result<Option<TimestampWithTimeZone>, ErrorReport> {
    let found = found("snowflake_safe_time", true)?;
    found.map(|(layout, Safe { position, .. })| time::to_sql(layout.instant_of(position))).transpose()
}

fn found(function: &'static str, skips: bool) -> Result<Option<(Layout, Safe)>, ErrorReport> {
    let safe = safe_position::of_statement(function, skips).map_err(|error| report(&error))?;
    Ok(safe.zip(generator::shared()).map(|(safe, shared)| (shared.layout, safe)))
}

#[pg_schema]
mod snowflake_ids_internal {
    use crate::safe_position::open_processes;
    use pgrx::prelude::*;

    /// The processes whose open transactions hold [`super::snowflake_safe_id`] back.
    #[pg_extern(volatile, parallel_restricted)]
    fn safe_id_holders() -> SetOfIterator<'static, i32> {
        SetOfIterator::new(open_processes())
    }
}
