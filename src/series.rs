//! Series, which have a separate sequence of numbers for each key. This module takes numbers, and remembers the session's
//! last numbers.

mod cache;
pub mod error;
mod gapless;
mod monotonic;

pub use cache::{CachedSeries, checked, look_up};

use crate::pg::per_process::PerProcess;
use crate::pg::{role, server};
use crate::store::series::DatedNumber;
use cache::{USED, shown_key};
use error::NoNumberError;
use pgrx::pg_sys::Oid;
use snowflake_ids_core::series::{Key, Recent, SeriesError, SeriesKind};
use snowflake_ids_core::tag::privilege::Access;
use std::cell::RefCell;
use std::ffi::CStr;
use std::rc::Rc;

static LAST: PerProcess<RefCell<Option<Recent>>> = PerProcess::new(RefCell::new(None));

/// Takes the next number of a key, with the rights of a role. Error messages name `command`.
pub fn next(
    command: &'static CStr,
    name: &[u8],
    key: &Key,
    role: Oid,
) -> Result<(Rc<CachedSeries>, DatedNumber), NoNumberError> {
    if let Some(taken) = next_at_once(name, key, role, |cached, number| (cached.clone(), number)) {
        return Ok(taken);
    }
    if !server::is_writable() {
        server::refuse_unless_writable(command);
    }
    let cached = look_up(name)?;
    cached.check_take(role)?;
    cached.refuse_elsewhere()?;
    let key = &*cached.key_of(key)?;
    let number = match cached.series.kind {
        SeriesKind::Gapless => gapless::next(&cached, key)?,
        SeriesKind::Monotonic(_) => monotonic::next(&cached, key)?,
    };
    record(&cached, key, number.number);
    Ok((cached, number))
}

/// Takes the next number of a key on the fast path. Works only if the session used this series last, and shared memory has a
/// number for the key. Otherwise returns None, and the caller must use [`next`]. Does not process invalidation messages, so
/// this function does not see changes that other sessions have committed since the statement began. Raises no error.
#[inline]
pub fn next_at_once<T>(
    name: &[u8],
    key: &Key,
    role: Oid,
    then: impl FnOnce(&Rc<CachedSeries>, DatedNumber) -> T,
) -> Option<T> {
    let used = USED.borrow();
    let cached = used.as_ref().filter(|cached| cached.is(name))?;
    let number = match cached.series.kind {
        SeriesKind::Monotonic(_) if cached.may_take(key, role) => monotonic::at_once(cached, key),
        _ => None,
    }?;
    record(cached, key, number.number);
    Some(then(cached, number))
}

#[inline]
fn record(cached: &CachedSeries, key: &Key, number: i64) {
    LAST.borrow_mut().get_or_insert_default().record(cached.series.id, key, number);
}

/// Returns the last number that this session got for a key.
pub fn last(name: &[u8], key: &Key) -> Result<i64, NoNumberError> {
    let cached = look_up(name)?;
    cached.check(Access::Look, role::current())?;
    let key = &*cached.key_of(key)?;
    let last = LAST.borrow().as_ref().and_then(|last| last.last(cached.series.id, key.clone()));
    Ok(last.ok_or_else(|| SeriesError::NoLast { series: cached.shown(), key: shown_key(key) })?)
}

/// Sets a key's counter to a value. With `force`, the value may be lower than the key's last number.
pub fn set(name: &[u8], key: &Key, value: i64, force: bool) -> Result<(), NoNumberError> {
    server::refuse_unless_writable(c"series_set()");
    let cached = look_up(name)?;
    cached.check(Access::Move, role::current())?;
    let key = &*cached.key_of(key)?;
    cached.series.check_value(value)?;
    match cached.series.kind {
        SeriesKind::Gapless => gapless::set(&cached, key, value, force),
        SeriesKind::Monotonic(_) => monotonic::set(&cached, key, value, force),
    }
}

/// Raises a key's counter to a value, if the counter is lower.
pub fn raise_above(name: &[u8], key: &Key, value: i64) -> Result<(), NoNumberError> {
    server::refuse_unless_writable(c"series_attach()");
    let cached = look_up(name)?;
    cached.check(Access::Move, role::current())?;
    let key = &*cached.key_of(key)?;
    let value = value.max(cached.series.start - 1);
    cached.series.check_value(value)?;
    match cached.series.kind {
        SeriesKind::Gapless => gapless::raise_above(&cached, key, value),
        SeriesKind::Monotonic(_) => monotonic::raise_above(&cached, key, value),
    }
}

/// Raises a key's counter in a gapless series to the number in a table's row, if the key has a counter. `owner` owns the
/// table. Ignores rows that do not fit the series, and rows that a restore loads before the series.
pub fn raise_to(name: &[u8], key: &Key, number: i64, owner: Oid) -> Result<(), NoNumberError> {
    let cached = match look_up(name) {
        Err(NoNumberError::Series(_)) => return Ok(()),
        cached => cached?,
    };
    match (cached.series.kind, cached.key_of(key)) {
        (SeriesKind::Gapless, Ok(key)) => gapless::raise_to(&cached, &key, number, owner),
        // Many keys of a monotonic series share one maximum. A row would raise the maximum for all these keys, and a rollback
        // would not lower the maximum again.
        _ => Ok(()),
    }
}

pub fn forget_last() {
    LAST.borrow_mut().take();
}
