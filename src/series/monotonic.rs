//! Monotonic series: numbers of many keys that share one maximum.

use super::Known;
use super::error::NoNumberError;
use crate::store::series::Number;
use snowflake_ids_core::series::{Key, SeriesError};

/// Takes the next number of a key.
pub fn next(known: &Known, _key: &Key) -> Result<Number, NoNumberError> {
    Err(to_come(known))
}

/// Takes the next number of a key out of memory, if it has one. Throws nothing.
#[inline]
pub fn at_once(_known: &Known, _key: &Key) -> Option<Number> {
    None
}

/// Has a key go on above a value; with `force` also above a lower one than it gave last.
pub fn set(known: &Known, _key: &Key, _value: i64, _force: bool) -> Result<(), NoNumberError> {
    Err(to_come(known))
}

/// Sees to it that a key goes on above a value.
pub fn raise_above(known: &Known, _key: &Key, _value: i64) -> Result<(), NoNumberError> {
    Err(to_come(known))
}

fn to_come(known: &Known) -> NoNumberError {
    SeriesError::KindToCome { kind: known.series.kind.name() }.into()
}
