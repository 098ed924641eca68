//! Gapless series: a number is taken by changing the row of its key, in the caller's transaction; of one that is distributed over a Citus
//! cluster, on the shard of the key.

use super::error::NoNumberError;
use super::known::KnownSeries;
use crate::store::series::{self as store, Number};
use crate::store::shard::KeyTable;
use snowflake_ids_core::series::{Key, Scope, SeriesError};

/// Takes the next number of a key.
pub fn next(known: &KnownSeries, key: &Key) -> Result<Number, NoNumberError> {
    let taken = match key_table(known)? {
        Some(table) => table.next(&known.series, key, day(known)?)?,
        None => match known.counters.as_owner_qualified(|| store::next(&known.series, key))? {
            None => first(known, key)?,
            taken => taken,
        },
    };
    Ok(taken.ok_or_else(|| known.exhausted(key))?)
}

/// Takes the next number of a key that may have no counter yet.
#[cold]
fn first(known: &KnownSeries, key: &Key) -> Result<Option<Number>, NoNumberError> {
    let taken = known.counters.as_owner_qualified(|| store::first(&known.series, key))?;
    // Its counters go with a series that is dropped. One that was waited for then must not begin anew.
    known.check_present()?;
    Ok(taken)
}

/// Has a key go on above a value; with `force` also above a lower one than it gave last.
pub fn set(known: &KnownSeries, key: &Key, value: i64, force: bool) -> Result<(), NoNumberError> {
    let below = |last: Option<Number>| known.below(key, value, last.map_or(value, |last| last.number)).into();
    if let Some(table) = key_table(known)? {
        let is_set = table.set(key, day(known)?, value, force)?;
        return if is_set { Ok(()) } else { Err(below(table.last(key)?)) };
    }
    known.counters.as_owner_qualified(|| {
        let is_set = store::set(&known.series, key, value, force)?;
        if is_set { Ok(()) } else { Err(below(store::last(&known.series, key)?)) }
    })
}

/// Sees to it that a key goes on above a value.
pub fn raise_above(known: &KnownSeries, key: &Key, value: i64) -> Result<(), NoNumberError> {
    known.counters.as_owner_qualified(|| store::set(&known.series, key, value, false))?;
    Ok(())
}

/// The table of a distributed series' counters; None where it is not distributed.
fn key_table(known: &KnownSeries) -> Result<Option<KeyTable>, SeriesError> {
    if known.series.scope != Scope::Shard {
        return Ok(None);
    }
    let table = KeyTable::find(&known.series, known.table);
    table.map(Some).ok_or_else(|| SeriesError::NoKeyTable { series: known.shown() })
}

/// The first day of the present period, where the series is dated.
fn day(known: &KnownSeries) -> Result<Option<i32>, NoNumberError> {
    known.series.reset.map(|_| known.day()).transpose()
}
