//! Text arguments in the encoding of the database.
//!
//! pgrx's `&str` panics if the database is not in UTF-8 and a user types an accented letter. This extension interprets
//! only ASCII text. Bytes that are not UTF-8 become a replacement character, which is refused like any other wrong
//! character. The length of a text is checked before its bytes are read, because a few pages may hold compressed text of
//! up to 1 GB.

use super::encoding::{from_utf8, to_utf8};
use crate::pg::error::ServerError;
use crate::pg::report::{raise, report};
use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::datum::{Datum, DatumWithOid, UnboxDatum};
use pgrx::nullable::Nullable;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::pgrx_sql_entity_graph::impl_sql_translatable;
use pgrx::{FromDatum, IntoDatum, pg_sys, varlena};
use snowflake_ids_core::error::{MAX_TEXT_BYTES, TooLong, check_length};
use std::borrow::Cow;
use std::ffi::{CString, c_int};
use std::marker::PhantomData;

/// A text argument, or a text column of a trigger's row, whose bytes have not been read.
pub struct Text<'a> {
    pub(super) datum: pg_sys::Datum,
    call: PhantomData<&'a [u8]>,
}

impl Text<'_> {
    /// Returns the text, of at most [`MAX_TEXT_BYTES`] bytes. Errors name the argument `name`.
    pub fn read(&self, name: &'static str) -> Result<Cow<'_, str>, Unread> {
        self.read_up_to(MAX_TEXT_BYTES, name)
    }

    /// Returns the text, of at most `limit` bytes.
    pub fn read_up_to(&self, limit: usize, name: &'static str) -> Result<Cow<'_, str>, Unread> {
        self.bytes(limit, name).map(String::from_utf8_lossy)
    }

    /// Returns the bytes of the text, in the encoding of the database.
    pub fn bytes(&self, limit: usize, name: &'static str) -> Result<&[u8], Unread> {
        self.check_length(limit, name)?;
        // SAFETY: the argument is declared as text, and lives as long as the call.
        Ok(unsafe { bytes_of(self.datum) })
    }

    /// Returns the text as an SQL statement of this extension, in the encoding of the database.
    pub fn sql(&self) -> Result<CString, Unread> {
        // Texts of the server never contain a zero byte.
        self.bytes(LONGEST_SQL, "statement").map(|sql| CString::new(sql).unwrap_or_default())
    }

    /// Fails if the text is longer than `limit` bytes.
    pub fn check_length(&self, limit: usize, name: &'static str) -> Result<(), Unread> {
        // SAFETY: the argument is declared as text, and lives as long as the call.
        check_length(name, unsafe { length_of(self.datum) }, limit).map_err(Unread)
    }
}

/// The error for a text argument that is too long.
#[derive(Debug)]
pub struct Unread(TooLong);

impl From<Unread> for ErrorReport {
    #[cold]
    fn from(unread: Unread) -> Self {
        report(unread.0)
    }
}

impl_sql_translatable!(Text<'_>, arg_only = "text");

// SAFETY: the argument is declared as text, and its bytes are not read here.
unsafe impl<'fcx> ArgAbi<'fcx> for Text<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the argument is declared as text.
        let datum: Option<pg_sys::Datum> = unsafe { arg.unbox_arg_using_from_datum() };
        // A function that is not STRICT may receive null for this argument.
        let datum = datum.unwrap_or_else(|| raise(ServerError::NullText));
        Self { datum, call: PhantomData }
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: the argument is declared as text.
        let datum: Option<pg_sys::Datum> = unsafe { arg.unbox_arg_using_from_datum() };
        datum.map(|datum| Self { datum, call: PhantomData }).into()
    }
}

impl FromDatum for Text<'_> {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        (!is_null).then_some(Self { datum, call: PhantomData })
    }
}

// SAFETY: only texts are converted to this type, and their bytes are not read here.
unsafe impl UnboxDatum for Text<'_> {
    type As<'src>
        = Text<'src>
    where
        Self: 'src;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> Text<'src>
    where
        Self: 'src,
    {
        Text { datum: datum.sans_lifetime(), call: PhantomData }
    }
}

/// pgrx needs `type_oid` to compare the type with a column's type.
impl IntoDatum for Text<'_> {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(self.datum)
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

/// Returns the number of bytes of a text after decompression. Reads only the text's header.
///
/// # Safety
/// The datum is a text.
pub unsafe fn length_of(text: pg_sys::Datum) -> usize {
    // SAFETY: the caller passes a text.
    unsafe { pg_sys::toast_raw_datum_size(text) }.saturating_sub(pg_sys::VARHDRSZ)
}

/// Returns the bytes of a text. The bytes live as long as the call.
///
/// # Safety
/// The datum is a text; its length was checked.
#[inline]
pub unsafe fn bytes_of<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: the datum is a text. Compressed or external text is fetched into new memory; other text stays in place.
    unsafe {
        let mut text: *mut pg_sys::varlena = datum.cast_mut_ptr();
        if !is_plain(text) {
            text = pg_sys::pg_detoast_datum_packed(text);
        }
        std::slice::from_raw_parts(varlena::vardata_any(text).cast(), varlena::varsize_any_exhdr(text))
    }
}

/// Returns whether the bytes of a text can be read in place, without detoasting.
///
/// # Safety
/// The pointer is a text.
#[inline]
pub unsafe fn is_plain(text: *const pg_sys::varlena) -> bool {
    // SAFETY: the caller passes a text.
    unsafe {
        varlena::varatt_is_4b_u(text) || (varlena::varatt_is_1b(text) && !varlena::varatt_is_1b_e(text))
    }
}

/// The longest statement that this extension generates, in bytes. Such a statement contains some names and a tag.
const LONGEST_SQL: usize = 16 * 1024;

/// A text for SQL, in the encoding of the database.
#[derive(Clone)]
pub struct TextOut(Vec<u8>);

impl TextOut {
    /// Creates a text from bytes in the encoding of the database.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// Converts UTF-8; None if the database's encoding lacks a character. Call only within a transaction.
    pub fn of(text: String) -> Option<Self> {
        // Every server encoding contains ASCII.
        if text.is_ascii() { Some(text.into_bytes()) } else { from_utf8(&text) }.map(Self)
    }

    /// Returns the bytes, in the encoding of the database.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Converts the text for the core. A name in an `SQL_ASCII` database may be no text at all. Call only within a transaction.
    pub fn to_utf8_lossy(&self) -> String {
        to_utf8(&self.0).unwrap_or_else(|| String::from_utf8_lossy(&self.0).into_owned())
    }
}

impl FromDatum for TextOut {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        // SAFETY: only texts are converted to this type.
        (!is_null).then(|| Self::of_bytes(unsafe { bytes_of(datum) }))
    }
}

impl IntoDatum for TextOut {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        let length = c_int::try_from(self.0.len()).unwrap_or(c_int::MAX);
        // SAFETY: the bytes are copied.
        let text = unsafe { pg_sys::cstring_to_text_with_len(self.0.as_ptr().cast(), length) };
        Some(text.into())
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

impl_sql_translatable!(TextOut, "text");

// SAFETY: `into_datum` creates a text, and the type is declared as text.
unsafe impl BoxRet for TextOut {
    unsafe fn box_into<'fcx>(self, call: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: `into_datum` creates a text.
        unsafe { call.return_optional_datum(self.into_datum()) }
    }
}

/// Returns a text argument as a statement's argument, without reading its bytes.
pub fn handed_on<'a>(
    text: Option<&Text<'_>>,
    name: &'static str,
    limit: usize,
) -> Result<DatumWithOid<'a>, Unread> {
    let Some(text) = text else { return Ok(DatumWithOid::null_oid(pg_sys::TEXTOID)) };
    text.check_length(limit, name)?;
    // SAFETY: the argument is declared as text.
    Ok(unsafe { DatumWithOid::new(text.datum, pg_sys::TEXTOID) })
}
