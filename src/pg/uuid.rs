//! UUIDs between the server and the core, and the results of functions that have no guard around them.

use pgrx::{pg_sys, varlena};
use snowflake_ids_core::Uuid;
use std::ffi::{c_int, c_void};

// The raw symbol: pg_sys's is wrapped for calls that can fail. This one gives null where there is no memory.
unsafe extern "C-unwind" {
    fn palloc_extended(size: usize, flags: c_int) -> *mut c_void;
}

/// A UUID argument as the core has it.
pub fn of_argument(uuid: pgrx::Uuid) -> Uuid {
    Uuid(u128::from_be_bytes(*uuid))
}

/// A UUID as the result of a function; None where there is no memory for it.
#[inline]
pub fn as_uuid(uuid: Uuid) -> Option<pg_sys::Datum> {
    let place = allocated(size_of::<Uuid>())?;
    // SAFETY: the place has room for its bytes.
    unsafe { place.cast::<[u8; 16]>().write_unaligned(uuid.bytes()) };
    Some(place.into())
}

/// Its digits as the result of a function that gives a text; None where there is no memory for it.
#[inline]
pub fn as_text(uuid: Uuid) -> Option<pg_sys::Datum> {
    const HEADER: usize = 4;
    const DIGITS: usize = 32;
    const SIZE: i32 = 36;
    const _: () = assert!(HEADER == pg_sys::VARHDRSZ && HEADER + DIGITS == SIZE.unsigned_abs() as usize);
    let place = allocated(HEADER + DIGITS)?;
    // SAFETY: the place has room for a header and the digits after it.
    unsafe {
        varlena::set_varsize_4b(place.cast(), SIZE);
        place.byte_add(HEADER).cast::<[u8; DIGITS]>().write_unaligned(uuid.digits());
    }
    Some(place.into())
}

/// Memory that lives as long as a result has to.
#[inline]
fn allocated(size: usize) -> Option<*mut c_void> {
    // SAFETY: a few bytes of the current memory context; with this flag it raises no error for want of memory, and it has no
    // other for so few.
    let place = unsafe { palloc_extended(size, pg_sys::MCXT_ALLOC_NO_OOM.cast_signed()) };
    (!place.is_null()).then_some(place)
}
