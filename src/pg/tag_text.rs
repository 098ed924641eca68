//! Conversion of segment tags between SQL and the core. A tag is the name of a counter of dense ids, as bytes in the
//! encoding of its database.

use super::encoding;
use super::text::{Text, bytes_of, length_of};
use crate::pg::report::{raise, report};
use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::nullable::Nullable;
use pgrx::pgrx_sql_entity_graph::impl_sql_translatable;
use pgrx::{FromDatum, IntoDatum, pg_sys};
use snowflake_ids_core::error::excerpt;
use snowflake_ids_core::tag::definition::{MAX_TAG_BYTES, TagError, check_tag};
use snowflake_ids_core::tag::directory::Tag;
use std::ffi::c_int;

/// A tag that SQL sees as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagText(pub Tag);

/// Converts bytes to a tag. Returns an error if the bytes are not a valid tag.
pub fn checked(bytes: &[u8]) -> Result<Tag, TagError> {
    let tag = Tag::new(bytes).ok_or(TagError::TooManyBytes { bytes: bytes.len() })?;
    check_tag(chars(bytes)).map(|()| tag)
}

/// Returns the number of characters of a text in the encoding of the database.
pub fn chars(bytes: &[u8]) -> usize {
    // SAFETY: the slice is valid for its length.
    let chars = unsafe { pg_sys::pg_mbstrlen_with_len(bytes.as_ptr().cast(), length(bytes)) };
    usize::try_from(chars).unwrap_or(0)
}

fn length(bytes: &[u8]) -> c_int {
    c_int::try_from(bytes.len()).unwrap_or(c_int::MAX)
}

impl TagText {
    /// Returns the tag as messages show it: shortened if it is long.
    pub fn shown(&self) -> String {
        excerpt(&self.to_text())
    }

    /// Returns the tag as UTF-8. If the database has another encoding, bytes outside ASCII become question marks.
    pub fn to_text(self) -> String {
        let tag = if encoding::is_utf8() { self } else { self.ascii() };
        String::from_utf8_lossy(tag.0.as_bytes()).into_owned()
    }

    fn ascii(&self) -> Self {
        let ascii = self.0.as_bytes().iter().map(|byte| if byte.is_ascii() { *byte } else { b'?' });
        Tag::new(&ascii.collect::<Vec<u8>>()).map_or(*self, Self)
    }

    /// Returns the tag unchanged if its bytes are valid in the encoding of this database. Otherwise, bytes outside ASCII
    /// become question marks. Tags of other databases may have another encoding.
    pub fn legible(self) -> Self {
        let bytes = self.0.as_bytes();
        // SAFETY: the slice is valid for its length.
        if unsafe { pg_sys::pg_verifymbstr(bytes.as_ptr().cast(), length(bytes), true) } {
            return self;
        }
        self.ascii()
    }
}

/// Returns the bytes of a text that should be a tag. The bytes live as long as the call.
///
/// # Errors
/// Returns [`TagError`] if the text is too long. The bytes of such a text are not read.
///
/// # Safety
/// The datum is a text.
pub unsafe fn tag_of<'a>(datum: pg_sys::Datum) -> Result<&'a [u8], TagError> {
    // SAFETY: the caller passes a text.
    unsafe {
        match length_of(datum) {
            0..=MAX_TAG_BYTES => Ok(bytes_of(datum)),
            bytes => Err(TagError::TooManyBytes { bytes }),
        }
    }
}

impl Text<'_> {
    /// Returns the bytes of a text that should be a tag.
    ///
    /// # Errors
    /// Returns [`TagError`] if the text is too long. The bytes of such a text are not read.
    pub fn tag_bytes(&self) -> Result<&[u8], TagError> {
        // SAFETY: a `Text` is a text, which lives as long as `self`.
        unsafe { tag_of(self.datum) }
    }
}

impl FromDatum for TagText {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        // SAFETY: only texts are converted to this type.
        (!is_null).then(|| unsafe { tag_of(datum) })?.ok().and_then(Tag::new).map(Self)
    }
}

impl IntoDatum for TagText {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        let bytes = self.0.as_bytes();
        // SAFETY: the bytes are copied.
        let text = unsafe { pg_sys::cstring_to_text_with_len(bytes.as_ptr().cast(), length(bytes)) };
        Some(text.into())
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

impl_sql_translatable!(TagText, "text");

// SAFETY: `into_datum` creates a text, and the type is declared as text.
unsafe impl BoxRet for TagText {
    unsafe fn box_into<'fcx>(self, call: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: `into_datum` creates a text.
        unsafe { call.return_optional_datum(self.into_datum()) }
    }
}

/// A tag argument from a user. Only its length has been checked.
pub struct TagArg<'a>(pub &'a [u8]);

impl_sql_translatable!(TagArg<'_>, arg_only = "text");

impl<'a> From<Text<'a>> for TagArg<'a> {
    fn from(text: Text<'a>) -> Self {
        // SAFETY: a `Text` is a text, which lives as long as the call.
        Self(unsafe { tag_of(text.datum) }.unwrap_or_else(|error| raise(report(error))))
    }
}

// SAFETY: the argument is declared as text.
unsafe impl<'fcx> ArgAbi<'fcx> for TagArg<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the argument is declared as text.
        unsafe { Text::unbox_arg_unchecked(arg) }.into()
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: the argument is declared as text.
        unsafe { Text::unbox_nullable_arg(arg) }.into_option().map(Self::from).into()
    }
}
