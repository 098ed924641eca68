//! Gapless series that are distributed over a Citus cluster: as [`super::gapless`], on the shard of the key.

use super::error::NoNumberError;
use super::known::KnownSeries;
use crate::store::series::Number;
use crate::store::shard::KeyTable;
use snowflake_ids_core::series::{Key, SeriesError};

/// Takes the next number of a key.
pub fn next(known: &KnownSeries, key: &Key) -> Result<Number, NoNumberError> {
    let taken = key_table(known)?.next(&known.series, key, day(known)?)?;
    Ok(taken.ok_or_else(|| known.exhausted(key))?)
}

/// Has a key go on above a value; with `force` also above a lower one than it gave last.
pub fn set(known: &KnownSeries, key: &Key, value: i64, force: bool) -> Result<(), NoNumberError> {
    let table = key_table(known)?;
    if table.set(key, day(known)?, value, force)? {
        return Ok(());
    }
    let last = table.last(key)?.map_or(value, |last| last.number);
    Err(known.below(key, value, last).into())
}

fn key_table(known: &KnownSeries) -> Result<KeyTable, SeriesError> {
    KeyTable::find(&known.series, known.table())
        .ok_or_else(|| SeriesError::NoKeyTable { series: known.shown() })
}

/// The first day of the present period, where the series is dated.
fn day(known: &KnownSeries) -> Result<Option<i32>, NoNumberError> {
    known.series.reset.map(|_| known.day()).transpose()
}
