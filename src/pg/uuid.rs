//! Conversion of UUID arguments, and of UUIDs to results of SQL functions that have no pgrx guard.

use pgrx::{pg_sys, varlena};
use snowflake_ids_core::Uuid;
use std::ffi::{c_int, c_void};

// This declaration bypasses pg_sys's wrapper. With the flag below, the function returns null if there is no memory.
unsafe extern "C-unwind" {
    fn palloc_extended(size: usize, flags: c_int) -> *mut c_void;
}

/// Converts a UUID argument for the core.
pub fn of_argument(uuid: pgrx::Uuid) -> Uuid {
    Uuid(u128::from_be_bytes(*uuid))
}

/// Returns a UUID as a function result; None if there is no memory.
#[inline]
pub fn as_uuid(uuid: Uuid) -> Option<pg_sys::Datum> {
    let place = allocated(size_of::<Uuid>())?;
    // SAFETY: the allocation has room for the bytes.
    unsafe { place.cast::<[u8; 16]>().write_unaligned(uuid.bytes()) };
    Some(place.into())
}

/// Returns the digits of a UUID as a text result; None if there is no memory.
#[inline]
pub fn as_text(uuid: Uuid) -> Option<pg_sys::Datum> {
    const HEADER: usize = 4;
    const DIGITS: usize = 32;
    const SIZE: i32 = 36;
    const _: () = assert!(HEADER == pg_sys::VARHDRSZ && HEADER + DIGITS == SIZE.unsigned_abs() as usize);
    let place = allocated(HEADER + DIGITS)?;
    // SAFETY: the allocation has room for the header and the digits.
    unsafe {
        varlena::set_varsize_4b(place.cast(), SIZE);
        place.byte_add(HEADER).cast::<[u8; DIGITS]>().write_unaligned(uuid.digits());
    }
    Some(place.into())
}

/// Allocates memory for a function result in the current memory context.
#[inline]
fn allocated(size: usize) -> Option<*mut c_void> {
    // SAFETY: with this flag, the function returns null if there is no memory. Such a small size causes no other error.
    let place = unsafe { palloc_extended(size, pg_sys::MCXT_ALLOC_NO_OOM.cast_signed()) };
    (!place.is_null()).then_some(place)
}
