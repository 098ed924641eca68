//! The function `series_nextval`, for each type of key.

use crate::pg::report::{raise, report};
use crate::pg::role;
use crate::pg::text::{bytes_of, is_plain, length_of};
use crate::series;
use pgrx::{FromDatum, extension_sql, pg_guard, pg_sys};
use snowflake_ids_core::error::check_length;
use snowflake_ids_core::series::{Key, MAX_KEY_BYTES, MAX_NAME_BYTES, SeriesError};

entry!(
    series_nextval_of_bigint_wrapper,
    pg_finfo_series_nextval_of_bigint_wrapper,
    guarded_of_bigint,
    // SAFETY: the server passes a text and a key of this type.
    |call| unsafe { at_once(call, |key| Some(bigint(key))) },
    // SAFETY: the server passes a text and a key of this type.
    |call| unsafe { next(call, bigint) }
);
entry!(
    series_nextval_of_text_wrapper,
    pg_finfo_series_nextval_of_text_wrapper,
    guarded_of_text,
    // SAFETY: the server passes a text and a key of this type.
    |call| unsafe { at_once(call, plain_text) },
    // SAFETY: the server passes a text and a key of this type.
    |call| unsafe { next(call, text) }
);
entry!(
    series_nextval_of_uuid_wrapper,
    pg_finfo_series_nextval_of_uuid_wrapper,
    guarded_of_uuid,
    // SAFETY: the server passes a text and a key of this type.
    |call| unsafe { at_once(call, |key| Some(uuid(key))) },
    // SAFETY: the server passes a text and a key of this type.
    |call| unsafe { next(call, uuid) }
);

/// Returns the next number of a key from shared memory. Returns None if shared memory holds no number for the key, or if the
/// session's previous call used another series.
///
/// # Safety
/// `call` is the server's call of a function with a text and a key, and `key` reads keys of this type.
#[inline]
unsafe fn at_once(
    call: pg_sys::FunctionCallInfo,
    key: impl FnOnce(pg_sys::Datum) -> Option<Key>,
) -> Option<i64> {
    // SAFETY: the function has two arguments, and the first is a text.
    let (name, of) = unsafe {
        let arguments = (*call).args.as_ptr();
        let (name, of) = (arguments.read(), arguments.add(1).read());
        if name.isnull || of.isnull || !is_plain(name.value.cast_mut_ptr()) {
            return None;
        }
        (bytes_of(name.value), of.value)
    };
    series::next_at_once(name, &key(of)?, role::current(), |_, taken| taken.number)
}

/// Returns the next number of a key. May wait, and may run SQL.
///
/// # Safety
/// `call` is the server's call of a function with a text and a key, and `key` reads keys of this type.
unsafe fn next(call: pg_sys::FunctionCallInfo, key: impl FnOnce(pg_sys::Datum) -> Key) -> i64 {
    // SAFETY: the function has two arguments. The length of the name is checked before it is read.
    let (name, of) = unsafe {
        let arguments = (*call).args.as_ptr();
        let (name, of) = (arguments.read(), arguments.add(1).read());
        if name.isnull {
            raise(report(SeriesError::NullName));
        }
        let checked = check_length("series", length_of(name.value), MAX_NAME_BYTES);
        checked.unwrap_or_else(|long| raise(report(long)));
        (bytes_of(name.value), of)
    };
    if of.isnull {
        // An error in the lookup of the series takes precedence over the null key.
        let cached = series::look_up(name).unwrap_or_else(|error| raise(error));
        raise(report(SeriesError::NullKey { series: cached.shown() }));
    }
    match series::next(c"series_nextval()", name, &key(of.value), role::current()) {
        Ok((_, taken)) => taken.number,
        Err(error) => raise(error),
    }
}

fn bigint(key: pg_sys::Datum) -> Key {
    // SAFETY: the argument is a bigint and not null.
    Key::Bigint(unsafe { i64::from_datum(key, false) }.unwrap_or_default())
}

fn uuid(key: pg_sys::Datum) -> Key {
    // SAFETY: the argument is a pointer to the bytes of a uuid.
    let bytes = unsafe { key.cast_mut_ptr::<[u8; 16]>().read_unaligned() };
    Key::Uuid(u128::from_be_bytes(bytes))
}

fn plain_text(key: pg_sys::Datum) -> Option<Key> {
    // SAFETY: the argument is a text.
    unsafe { is_plain(key.cast_mut_ptr()).then(|| Key::text(bytes_of(key)).ok()).flatten() }
}

fn text(key: pg_sys::Datum) -> Key {
    // SAFETY: the argument is a text, and its length is checked before it is read.
    let checked = unsafe { check_length("key", length_of(key), MAX_KEY_BYTES).map(|()| bytes_of(key)) };
    checked.and_then(Key::text).unwrap_or_else(|long| raise(report(long)))
}

extension_sql!(
    "
/* Returns the next number of a key of a series. */
CREATE FUNCTION series_nextval(series text, key bigint) RETURNS bigint
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'series_nextval_of_bigint_wrapper';
CREATE FUNCTION series_nextval(series text, key text) RETURNS bigint
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'series_nextval_of_text_wrapper';
CREATE FUNCTION series_nextval(series text, key uuid) RETURNS bigint
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'series_nextval_of_uuid_wrapper';
",
    name = "series_nextval"
);
