//! Conversion of text between UTF-8 and the encoding of this database.

use pgrx::{PgTryBuilder, pg_sys};
use std::ffi::{CStr, c_char, c_int};

/// Returns whether the encoding of this database is UTF-8.
pub(super) fn is_utf8() -> bool {
    encoding() == UTF8
}

fn encoding() -> c_int {
    // SAFETY: reads a variable of this process.
    unsafe { pg_sys::GetDatabaseEncoding() }
}

/// Returns the text unchanged in a UTF-8 database. In other databases characters outside ASCII become question marks.
pub fn legible(text: &str) -> String {
    let utf8 = is_utf8();
    text.chars().map(|letter| if utf8 || letter.is_ascii() { letter } else { '?' }).collect()
}

/// Converts text of this database to UTF-8; None if the text cannot be converted. Call only within a transaction.
pub fn to_utf8(bytes: &[u8]) -> Option<String> {
    let converted = if is_passed_on() { bytes.to_vec() } else { converted(bytes, pg_sys::pg_server_to_any) };
    String::from_utf8(converted).ok()
}

/// Converts UTF-8 to the encoding of this database; None if that encoding lacks a character.
pub fn from_utf8(text: &str) -> Option<Vec<u8>> {
    if is_passed_on() {
        return Some(text.as_bytes().to_vec());
    }
    // The conversion acquires no resources, so its error can be discarded without a rollback.
    PgTryBuilder::new(|| Some(converted(text.as_bytes(), pg_sys::pg_any_to_server)))
        .catch_others(|_| None)
        .execute()
}

/// Calls one of the server's two conversions between UTF-8 and the encoding of this database.
pub(super) fn converted(
    bytes: &[u8],
    conversion: unsafe fn(*const c_char, c_int, c_int) -> *mut c_char,
) -> Vec<u8> {
    let length = c_int::try_from(bytes.len()).unwrap_or(c_int::MAX);
    // SAFETY: the slice is valid for its length. The server returns a C string, or the same pointer if it converts nothing.
    unsafe {
        let text = bytes.as_ptr().cast();
        let converted = conversion(text, length, UTF8);
        if converted.cast_const() == text { bytes } else { CStr::from_ptr(converted).to_bytes() }.to_vec()
    }
}

/// Returns true if a conversion to UTF-8 would keep the bytes of the text, or if this database converts no text.
pub fn is_as_utf8(bytes: &[u8]) -> bool {
    is_passed_on() || bytes.is_ascii()
}

/// Returns whether the encoding of this database is UTF-8 or `SQL_ASCII`, so that text is not converted.
fn is_passed_on() -> bool {
    is_utf8() || encoding() == pg_sys::pg_enc::PG_SQL_ASCII.cast_signed()
}

/// Returns the name of this database's encoding.
pub fn name() -> String {
    // SAFETY: the name is a constant of the server.
    unsafe { CStr::from_ptr(pg_sys::GetDatabaseEncodingName()) }.to_string_lossy().into_owned()
}

const UTF8: c_int = pg_sys::pg_enc::PG_UTF8.cast_signed();
