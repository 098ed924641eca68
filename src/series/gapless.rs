//! Gapless series. The caller's transaction takes a number by an update of the key's row. The rows of a distributed series
//! are on the shards of a Citus cluster.

use super::cache::{CachedSeries, shown_key};
use super::error::NoNumberError;
use crate::pg::server;
use crate::store::series::{self as store, DatedNumber};
use crate::store::shard::KeyTable;
use pgrx::pg_sys::Oid;
use snowflake_ids_core::series::{Key, Scope, SeriesError};
use snowflake_ids_core::tag::privilege::Access;

/// Takes the next number of a key.
pub fn next(cached: &CachedSeries, key: &Key) -> Result<DatedNumber, NoNumberError> {
    let (series, table) = (&cached.series, key_table(cached)?);
    let day = cached.day()?;
    let taken = match table {
        Some(table) => table.next(series, key, day)?,
        None => match cached.counters.as_owner_qualified(|| store::next(series, key, day))? {
            None => first(cached, key, day)?,
            taken => taken,
        },
    };
    Ok(taken.ok_or_else(|| cached.exhausted(key))?)
}

/// Takes the next number of a key that may have no counter yet.
#[cold]
fn first(cached: &CachedSeries, key: &Key, day: Option<i32>) -> Result<Option<DatedNumber>, NoNumberError> {
    let taken = cached.counters.as_owner_qualified(|| store::first(&cached.series, key, day))?;
    // Dropping a series removes its counters. A call that waited for the drop must not create a counter again.
    cached.check_present()?;
    Ok(taken)
}

/// Sets a key's counter to a value. With `force`, the value may be lower than the key's last number.
pub fn set(cached: &CachedSeries, key: &Key, value: i64, force: bool) -> Result<(), NoNumberError> {
    let table = key_table(cached)?;
    let day = cached.day()?;
    let below = |last: Option<DatedNumber>| {
        let last = last.map_or(value, |last| last.number);
        SeriesError::Below { series: cached.shown(), key: shown_key(key), value, last }.into()
    };
    if let Some(table) = table {
        let is_set = table.set(key, day, value, force)?;
        return if is_set { Ok(()) } else { Err(below(table.last(key)?)) };
    }
    cached.counters.as_owner_qualified(|| {
        let is_set = store::set(&cached.series, key, day, value, force)?;
        if is_set { Ok(()) } else { Err(below(store::last(&cached.series, key)?)) }
    })
}

/// Raises a key's counter to a value, if the counter is lower.
pub fn raise_above(cached: &CachedSeries, key: &Key, value: i64) -> Result<(), NoNumberError> {
    let day = cached.day()?;
    cached.counters.as_owner_qualified(|| store::set(&cached.series, key, day, value, false))?;
    Ok(())
}

/// Raises a key's counter to the number in a table's row, if the key has a counter. `owner` owns the table, and must have
/// the right to call `series_set`. Without this check, a role with only USAGE could exhaust a key by one row in its own
/// table.
pub fn raise_to(cached: &CachedSeries, key: &Key, number: i64, owner: Oid) -> Result<(), NoNumberError> {
    let series = &cached.series;
    let is_counted_here =
        series.reset.is_none() && series.scope != Scope::Shard && number <= series.max_value;
    if !is_counted_here || !server::is_writable() || !cached.allows(Access::Move, owner) {
        return Ok(());
    }
    Ok(cached.counters.as_owner_qualified(|| store::raise(series, key, number))?)
}

/// Returns the table of a distributed series' counters; None if the series is not distributed.
fn key_table(cached: &CachedSeries) -> Result<Option<KeyTable>, SeriesError> {
    if cached.series.scope != Scope::Shard {
        return Ok(None);
    }
    let table = KeyTable::find(&cached.series, cached.table);
    table.map(Some).ok_or_else(|| SeriesError::NoKeyTable { series: cached.shown() })
}
