//! Functions that generate ids, except for `snowflake_nextval`, which is in [`crate::entry`].

use crate::named::{self, CachedGenerator};
use crate::pg::report::{raise, report};
use crate::pg::text::Text;
use crate::snowflake;
use crate::sql::error::{CallError, MAX_COUNT};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::generator::named::MAX_NAME_BYTES;
use std::ffi::CStr;

/// Returns several ids in ascending order.
#[pg_extern(volatile, strict, parallel_safe)]
fn snowflake_nextvals(count: i32) -> Result<SetOfIterator<'static, i64>, ErrorReport> {
    ids(checked_count(count)?, named::own())
}

/// Returns several ids of a named generator in ascending order.
#[pg_extern(name = "snowflake_nextvals", volatile, strict, parallel_safe)]
fn snowflake_nextvals_of_generator(
    count: i32,
    generator: Text<'_>,
) -> Result<SetOfIterator<'static, i64>, ErrorReport> {
    let count = checked_count(count)?;
    let name = generator.bytes(MAX_NAME_BYTES, "generator")?;
    ids(count, named::look_up(name).map_err(report)?)
}

/// Returns the next id of the generator that a literal names. Without this function, the server would read the call as
/// a cast to the type `snowflake_id`. The server prefers such a cast to a function of text, but not to a function of
/// the literal's own type.
#[pg_extern(sql = "CREATE FUNCTION snowflake_id(generator unknown) RETURNS bigint
STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_id_of_literal_wrapper';
COMMENT ON FUNCTION snowflake_id(unknown) IS 'the same as snowflake_nextval(generator)';")]
fn snowflake_id_of_literal(generator: &CStr) -> Result<i64, ErrorReport> {
    let cached = named::look_up(generator.to_bytes()).map_err(report)?;
    snowflake::next("snowflake_nextval", cached).map_err(report)
}

/// Returns the number of ids of a call; fails if the number is out of range.
pub fn checked_count(count: i32) -> Result<u32, ErrorReport> {
    if (1..=MAX_COUNT).contains(&count) {
        return Ok(count.unsigned_abs());
    }
    Err(CallError::Count { count }.into())
}

fn ids(count: u32, of: &'static CachedGenerator) -> Result<SetOfIterator<'static, i64>, ErrorReport> {
    let several = snowflake::several("snowflake_nextvals", of, count);
    let mut several = several.map_err(report)?;
    let next = move || several.next().unwrap_or_else(|error| raise(report(error)));
    Ok(SetOfIterator::new(std::iter::from_fn(next)))
}

/// Returns the id that this session generated last. RESTRICTED, because parallel workers have sessions of their own.
#[pg_extern(volatile, parallel_restricted)]
fn snowflake_lastval() -> Result<i64, ErrorReport> {
    Ok(snowflake::last().ok_or(CallError::NoLast)?)
}
