//! Gapless series: a number is taken by changing the row of its key, in the caller's transaction.

use super::error::NoNumberError;
use super::known::KnownSeries;
use crate::store::series::{self as store, Number};
use snowflake_ids_core::series::Key;

/// Takes the next number of a key.
pub fn next(known: &KnownSeries, key: &Key) -> Result<Number, NoNumberError> {
    let taken = known.counters.as_owner_qualified(|| store::next(&known.series, key))?;
    match taken {
        Some(number) => Ok(number),
        None => first(known, key),
    }
}

/// Takes the next number of a key that may have no counter yet.
#[cold]
fn first(known: &KnownSeries, key: &Key) -> Result<Number, NoNumberError> {
    let taken = known.counters.as_owner_qualified(|| store::first(&known.series, key))?;
    // Its counters go with a series that is dropped. One that was waited for then must not begin anew.
    known.check_present()?;
    Ok(taken.ok_or_else(|| known.exhausted(key))?)
}

/// Has a key go on above a value; with `force` also above a lower one than it gave last.
pub fn set(known: &KnownSeries, key: &Key, value: i64, force: bool) -> Result<(), NoNumberError> {
    known.counters.as_owner_qualified(|| {
        if store::set(&known.series, key, value, force)? {
            return Ok(());
        }
        let last = store::last(&known.series, key)?.map_or(value, |last| last.number);
        Err(known.below(key, value, last).into())
    })
}

/// Sees to it that a key goes on above a value.
pub fn raise_above(known: &KnownSeries, key: &Key, value: i64) -> Result<(), NoNumberError> {
    known.counters.as_owner_qualified(|| store::set(&known.series, key, value, false))?;
    Ok(())
}
