//! Text in any encoding: as arguments, and as results.
//!
//! pgrx's `&str` panics where a database is not in UTF-8 and a user types an accent. All text that this
//! extension understands is ASCII; what isn't UTF-8 is read with a replacement character, and refused as any
//! other wrong character is.

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::nullable::Nullable;
use pgrx::pgrx_sql_entity_graph::impl_sql_translatable;
use pgrx::{IntoDatum, PgTryBuilder, pg_sys};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};

/// A text that is right in this database: where that is not in UTF-8, letters that are not ASCII become question marks.
pub fn legible(text: &str) -> String {
    // SAFETY: looks at a variable of this process.
    let utf8 = unsafe { pg_sys::GetDatabaseEncoding() } == pg_sys::pg_enc::PG_UTF8.cast_signed();
    text.chars().map(|letter| if utf8 || letter.is_ascii() { letter } else { '?' }).collect()
}

/// A text of this database, as UTF-8; None where it is none, which a database without an encoding does not know. Only
/// within a transaction.
pub fn to_utf8(bytes: &[u8]) -> Option<String> {
    if is_passed_on() {
        return String::from_utf8(bytes.to_vec()).ok();
    }
    // SAFETY: the bytes are the caller's; what comes back is a C string of the server's, or the bytes themselves.
    let converted = unsafe {
        let (text, length) = (bytes.as_ptr().cast(), c_int::try_from(bytes.len()).unwrap_or(c_int::MAX));
        let converted = pg_sys::pg_server_to_any(text, length, UTF8);
        if converted.cast_const() == text { bytes } else { CStr::from_ptr(converted).to_bytes() }
    };
    String::from_utf8(converted.to_vec()).ok()
}

/// The same, back; None where it has letters that this database's encoding does not have.
pub fn from_utf8(text: &str) -> Option<Vec<u8>> {
    if is_passed_on() {
        return Some(text.as_bytes().to_vec());
    }
    // Nothing is held where this fails, so that its error can be let go.
    PgTryBuilder::new(|| Some(converted(text))).catch_others(|_| None).execute()
}

fn converted(text: &str) -> Vec<u8> {
    let length = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
    // SAFETY: as above.
    unsafe {
        let bytes = text.as_ptr().cast();
        let converted = pg_sys::pg_any_to_server(bytes, length, UTF8);
        if converted.cast_const() == bytes {
            text.as_bytes().to_vec()
        } else {
            CStr::from_ptr(converted).to_bytes().to_vec()
        }
    }
}

/// Whether texts of this database are UTF-8, or bytes that nobody converts.
fn is_passed_on() -> bool {
    // SAFETY: looks at a variable of this process.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    encoding == UTF8 || encoding == pg_sys::pg_enc::PG_SQL_ASCII.cast_signed()
}

const UTF8: c_int = pg_sys::pg_enc::PG_UTF8.cast_signed();

/// A text argument.
pub struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    /// What it says.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl_sql_translatable!(Text<'_>, arg_only = "text");

// SAFETY: the argument is declared as text, which has the representation of the bytea that a byte slice is
// read from.
unsafe impl<'fcx> ArgAbi<'fcx> for Text<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: as above.
        let bytes: Option<&'fcx [u8]> = unsafe { arg.unbox_arg_using_from_datum() };
        // Functions are STRICT, so there is always something to read.
        Self(String::from_utf8_lossy(bytes.unwrap_or_default()))
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: as above.
        let bytes: Option<&'fcx [u8]> = unsafe { arg.unbox_arg_using_from_datum() };
        bytes.map(|bytes| Self(String::from_utf8_lossy(bytes))).into()
    }
}

/// A statement of our own, in the database's encoding.
pub struct Sql(pub CString);

impl_sql_translatable!(Sql, arg_only = "text");

// SAFETY: the argument is declared as text, which has the representation of the bytea that a byte slice is read from.
unsafe impl<'fcx> ArgAbi<'fcx> for Sql {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: as above.
        let bytes: Option<&'fcx [u8]> = unsafe { arg.unbox_arg_using_from_datum() };
        // Functions are STRICT, and no text holds a zero byte.
        Self(CString::new(bytes.unwrap_or_default()).unwrap_or_default())
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: as above.
        let bytes: Option<&'fcx [u8]> = unsafe { arg.unbox_arg_using_from_datum() };
        bytes.map(|bytes| Self(CString::new(bytes).unwrap_or_default())).into()
    }
}

/// A text argument that is handed on to SQL as it came, and not read.
pub struct TextAsIs(pg_sys::Datum);

impl_sql_translatable!(TextAsIs, arg_only = "text");

// SAFETY: declared as text, and used as one; it lives as long as the call.
unsafe impl<'fcx> ArgAbi<'fcx> for TextAsIs {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: as above.
        Self(unsafe { arg.unbox_arg_using_from_datum() }.unwrap_or(pg_sys::Datum::null()))
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: as above.
        let datum: Option<pg_sys::Datum> = unsafe { arg.unbox_arg_using_from_datum() };
        datum.map(Self).into()
    }
}

impl IntoDatum for TextAsIs {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(self.0)
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}
