//! Text arguments, in any encoding.
//!
//! pgrx's `&str` panics where a database is not in UTF-8 and a user types an accent. All text that this
//! extension understands is ASCII; what isn't UTF-8 is read with a replacement character, and refused as any
//! other wrong character is. A text's length is looked at before the text: up to 1 GB may have been compressed into a
//! few pages.

use super::encoding::from_utf8;
use crate::pg::report::{bad_argument, raise, report};
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

/// A text argument, not yet read.
pub struct Text<'a> {
    datum: pg_sys::Datum,
    call: PhantomData<&'a [u8]>,
}

impl Text<'_> {
    /// Returns the text, of at most [`MAX_TEXT_BYTES`]. The name is the argument's.
    pub fn read(&self, name: &'static str) -> Result<Cow<'_, str>, Unread> {
        self.read_up_to(MAX_TEXT_BYTES, name)
    }

    /// The same, with a limit of its own.
    pub fn read_up_to(&self, limit: usize, name: &'static str) -> Result<Cow<'_, str>, Unread> {
        self.bytes(limit, name).map(String::from_utf8_lossy)
    }

    /// The same, in whatever encoding the database has.
    pub fn bytes(&self, limit: usize, name: &'static str) -> Result<&[u8], Unread> {
        self.check_length(limit, name)?;
        // SAFETY: the argument is declared as text, and lives as long as the call.
        Ok(unsafe { bytes_of(self.datum) })
    }

    /// The statement of our own that it is, in the database's encoding.
    pub fn sql(&self) -> Result<CString, Unread> {
        // No text holds a zero byte.
        self.bytes(LONGEST_SQL, "statement").map(|sql| CString::new(sql).unwrap_or_default())
    }

    /// Fails where it is longer.
    pub fn check_length(&self, limit: usize, name: &'static str) -> Result<(), Unread> {
        // SAFETY: the argument is declared as text, and lives as long as the call.
        check_length(name, unsafe { length_of(self.datum) }, limit).map_err(Unread)
    }
}

/// A text argument that is too long to be read.
#[derive(Debug)]
pub struct Unread(TooLong);

impl From<Unread> for ErrorReport {
    #[cold]
    fn from(unread: Unread) -> Self {
        report(&unread.0)
    }
}

impl_sql_translatable!(Text<'_>, arg_only = "text");

// SAFETY: the argument is declared as text, and nothing of it is read here.
unsafe impl<'fcx> ArgAbi<'fcx> for Text<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: as above.
        let datum: Option<pg_sys::Datum> = unsafe { arg.unbox_arg_using_from_datum() };
        // One that is not STRICT takes others that may be null.
        let datum = datum.unwrap_or_else(|| {
            raise(bad_argument("an argument must not be null", "The function needs a text there."))
        });
        Self { datum, call: PhantomData }
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: as above.
        let datum: Option<pg_sys::Datum> = unsafe { arg.unbox_arg_using_from_datum() };
        datum.map(|datum| Self { datum, call: PhantomData }).into()
    }
}

/// Number of bytes a text of a row has, which are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub usize);

impl FromDatum for Length {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        // SAFETY: asked for of texts only.
        (!is_null).then(|| Self(unsafe { length_of(datum) }))
    }
}

// SAFETY: asked for of texts only.
unsafe impl UnboxDatum for Length {
    type As<'src> = Self;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> Self
    where
        Self: 'src,
    {
        // SAFETY: as above.
        Self(unsafe { length_of(datum.sans_lifetime()) })
    }
}

/// Only so that columns can be asked for it: pgrx compares their type with this one's.
impl IntoDatum for Length {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        None
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

/// Returns the number of bytes a text has, wherever it is stored and however much it was compressed. Reads nothing but
/// its head.
///
/// # Safety
/// The datum is a text.
pub unsafe fn length_of(text: pg_sys::Datum) -> usize {
    // SAFETY: as above.
    unsafe { pg_sys::toast_raw_datum_size(text) }.saturating_sub(pg_sys::VARHDRSZ)
}

/// The bytes of a text. They live as long as the call.
///
/// # Safety
/// The datum is a text, whose length was looked at.
#[inline]
pub unsafe fn bytes_of<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: as above. What is compressed or stored elsewhere is fetched, which allocates; the rest stays where
    // it is.
    unsafe {
        let mut text: *mut pg_sys::varlena = datum.cast_mut_ptr();
        if !is_plain(text) {
            text = pg_sys::pg_detoast_datum_packed(text);
        }
        std::slice::from_raw_parts(varlena::vardata_any(text).cast(), varlena::varsize_any_exhdr(text))
    }
}

/// Returns whether the bytes of a text can be read in place, without detoasting it.
///
/// # Safety
/// It is a text.
#[inline]
pub unsafe fn is_plain(text: *const pg_sys::varlena) -> bool {
    // SAFETY: as above.
    unsafe {
        varlena::varatt_is_4b_u(text) || (varlena::varatt_is_1b(text) && !varlena::varatt_is_1b_e(text))
    }
}

/// The longest statement that anything here makes has some names and a tag in it. In bytes.
const LONGEST_SQL: usize = 16 * 1024;

/// A text for SQL, in the database's encoding.
pub struct TextOut(Vec<u8>);

impl TextOut {
    /// From bytes of this database.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// From one in UTF-8; None where it has letters that the encoding does not have. Only within a transaction.
    pub fn of(text: String) -> Option<Self> {
        // ASCII is a part of every encoding of databases.
        if text.is_ascii() { Some(text.into_bytes()) } else { from_utf8(&text) }.map(Self)
    }

    /// In the encoding of the database.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FromDatum for TextOut {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        // SAFETY: asked for of texts only.
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

// SAFETY: what `into_datum` makes is a text, as which the type is declared.
unsafe impl BoxRet for TextOut {
    unsafe fn box_into<'fcx>(self, call: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: as above.
        match self.into_datum() {
            // SAFETY: as above.
            Some(text) => unsafe { call.return_raw_datum(text) },
            None => call.return_null(),
        }
    }
}

/// A text argument that a statement takes as it came, and that is not read here.
pub fn handed_on<'a>(
    text: Option<&Text<'_>>,
    name: &'static str,
    limit: usize,
) -> Result<DatumWithOid<'a>, Unread> {
    let Some(text) = text else { return Ok(DatumWithOid::null_oid(pg_sys::TEXTOID)) };
    text.check_length(limit, name)?;
    // SAFETY: it is a text.
    Ok(unsafe { DatumWithOid::new(text.datum, pg_sys::TEXTOID) })
}
