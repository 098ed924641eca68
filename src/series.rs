//! Series: one sequence of numbers for each key. Takes them, and remembers those that the session took.
//!
//! | module | holds |
//! | --- | --- |
//! | [`known`] | what this session knows of each series |
//! | [`gapless`] | numbers that are counted in the caller's transaction; also on the shards of a Citus cluster |
//! | [`monotonic`] | numbers of many keys that share one maximum |
//! | [`error`] | why one gave no number |

pub mod error;
mod gapless;
mod known;
mod monotonic;

pub use known::{KnownSeries, checked, look_up};

use crate::pg::process::PerProcess;
use crate::pg::{role, server};
use crate::store::series::Number;
use error::NoNumberError;
use known::{USED, shown_key};
use pgrx::pg_sys::Oid;
use snowflake_ids_core::sequence::privilege::Action;
use snowflake_ids_core::series::{Key, Recent, SeriesError, SeriesKind};
use std::cell::RefCell;
use std::ffi::CStr;
use std::rc::Rc;

static LAST: PerProcess<RefCell<Option<Recent>>> = PerProcess::new(RefCell::new(None));

/// Takes the next number of a key. The command is what a message names.
pub fn next(
    command: &'static CStr,
    name: &[u8],
    key: &Key,
) -> Result<(Rc<KnownSeries>, Number), NoNumberError> {
    next_for(command, name, key, role::current())
}

/// The same with the rights of a role.
pub fn next_for(
    command: &'static CStr,
    name: &[u8],
    key: &Key,
    role: Oid,
) -> Result<(Rc<KnownSeries>, Number), NoNumberError> {
    if let Some(taken) = next_at_once(name, key, role, |known, number| (known.clone(), number)) {
        return Ok(taken);
    }
    if server::in_recovery() || !server::is_writable() {
        server::refuse_unless_writable(command);
    }
    let known = look_up(name)?;
    known.check_take(role)?;
    known.refuse_elsewhere()?;
    let key = &*known.key_of(key)?;
    let number = match known.series.kind {
        SeriesKind::Gapless => gapless::next(&known, key)?,
        SeriesKind::Monotonic(_) => monotonic::next(&known, key)?,
    };
    note(&known, key, number.number);
    Ok((known, number))
}

/// Takes the next number of a key, where the session used the series last, and memory has a number of it; None: see [`next_for`]. Like
/// ids of a tag, without a look at what others have changed since the statement began. Throws nothing.
#[inline]
pub fn next_at_once<T>(
    name: &[u8],
    key: &Key,
    role: Oid,
    then: impl FnOnce(&Rc<KnownSeries>, Number) -> T,
) -> Option<T> {
    let used = USED.borrow();
    let known = used.as_ref().filter(|known| known.is(name))?;
    let number = match known.series.kind {
        SeriesKind::Monotonic(_) if known.may_take(key, role) => monotonic::at_once(known, key),
        _ => None,
    }?;
    note(known, key, number.number);
    Some(then(known, number))
}

#[inline]
fn note(known: &KnownSeries, key: &Key, number: i64) {
    LAST.borrow_mut().get_or_insert_default().note(known.series.id, key, number);
}

/// The last number of a key that this session got.
pub fn last(name: &[u8], key: &Key) -> Result<i64, NoNumberError> {
    let known = look_up(name)?;
    known.check(Action::Look, role::current())?;
    let key = &*known.key_of(key)?;
    let last = LAST.borrow().as_ref().and_then(|last| last.last(known.series.id, key.clone()));
    Ok(last.ok_or_else(|| SeriesError::NoLast { series: known.shown(), key: shown_key(key) })?)
}

/// Has a key go on above a value; with `force` also above a lower one than it gave last.
pub fn set(name: &[u8], key: &Key, value: i64, force: bool) -> Result<(), NoNumberError> {
    server::refuse_unless_writable(c"series_set()");
    let known = look_up(name)?;
    known.check(Action::Move, role::current())?;
    let key = &*known.key_of(key)?;
    known.series.check_value(value)?;
    match known.series.kind {
        SeriesKind::Gapless => gapless::set(&known, key, value, force),
        SeriesKind::Monotonic(_) => monotonic::set(&known, key, value, force),
    }
}

/// Sees to it that a key goes on above a value.
pub fn raise_above(name: &[u8], key: &Key, value: i64) -> Result<(), NoNumberError> {
    server::refuse_unless_writable(c"series_attach()");
    let known = look_up(name)?;
    known.check(Action::Move, role::current())?;
    let key = &*known.key_of(key)?;
    let value = value.max(known.series.start - 1);
    known.series.check_value(value)?;
    match known.series.kind {
        SeriesKind::Gapless => gapless::raise_above(&known, key, value),
        SeriesKind::Monotonic(_) => monotonic::raise_above(&known, key, value),
    }
}

/// Forgets the numbers that the session got last.
pub fn forget_last() {
    LAST.borrow_mut().take();
}
