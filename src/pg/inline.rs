//! Prevention of inlining for SQL functions that call a sequence function.
//!
//! The planner can replace a call of a simple SQL function with the function's body. The planner hook then does not see the
//! body. If the function is not inlined, the server plans the body as a separate statement, which the hook sees.

use super::redirect::CALLED;
use super::text::bytes_of;
use super::tuple;
use pgrx::{pg_guard, pg_sys};
use std::sync::OnceLock;

/// Returns whether a function that calls a sequence must not be inlined at present; false for functions that are known to call
/// none. Must not fail, and must not call the server.
type Wanted = fn(pg_sys::Oid) -> bool;

static WANTED: OnceLock<Wanted> = OnceLock::new();
static mut PREVIOUS: pg_sys::needs_fmgr_hook_type = None;

/// The OID of the language SQL.
const SQL: u32 = 14;

/// Keeps SQL functions that call a sequence from being inlined as long as `wanted` returns true. Call this function only
/// while the server loads libraries.
pub fn keep_out(wanted: Wanted) {
    WANTED.get_or_init(|| wanted);
    // SAFETY: hooks are chained in the postmaster, which is single-threaded.
    unsafe {
        PREVIOUS = pg_sys::needs_fmgr_hook;
        pg_sys::needs_fmgr_hook = Some(needs_hook);
    }
}

/// Marks a function as one that needs the function manager's hook. The planner does not inline such functions.
#[pg_guard]
unsafe extern "C-unwind" fn needs_hook(function: pg_sys::Oid) -> bool {
    // SAFETY: the previous hook is called once, with the server's arguments.
    let previous =
        unsafe { PREVIOUS.is_some_and(|previous| pg_sys::ffi::pg_guard_ffi_boundary(|| previous(function))) };
    previous || (WANTED.get().is_some_and(|wanted| wanted(function)) && calls_sequences(function))
}

/// Returns whether a function is written in SQL and seems to call a sequence function. Call only within a transaction.
fn calls_sequences(function: pg_sys::Oid) -> bool {
    let cache = pg_sys::SysCacheIdentifier::PROCOID;
    let calls = tuple::cached(cache, function, |row| {
        // SAFETY: the cached row begins with the struct; both columns are texts.
        unsafe {
            let found: &pg_sys::FormData_pg_proc = &*pg_sys::GETSTRUCT(row).cast();
            let column = |number: u32| {
                let number = i16::try_from(number).unwrap_or_default();
                tuple::cached_column(cache, row, number).map(|text| bytes_of(text))
            };
            found.prolang.to_u32() == SQL && {
                column(pg_sys::Anum_pg_proc_prosrc).is_some_and(has_name)
                    || column(pg_sys::Anum_pg_proc_prosqlbody).is_some_and(has_call)
            }
        }
    });
    calls == Some(true)
}

/// Returns whether the source contains the name of a sequence function. A name at the end of a longer name does not count.
fn has_name(source: &[u8]) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    CALLED.iter().any(|(_, name)| {
        let mut found = source.windows(name.len()).enumerate();
        found.any(|(place, part)| {
            part.eq_ignore_ascii_case(name.as_bytes())
                && !place.checked_sub(1).is_some_and(|before| is_of_name(&source[before]))
        })
    })
}

/// Returns whether a body that was parsed at CREATE FUNCTION contains a call of a sequence function.
fn has_call(body: &[u8]) -> bool {
    CALLED.iter().any(|(oid, _)| {
        let call = format!(":funcid {oid} ").into_bytes();
        body.windows(call.len()).any(|part| part == call)
    })
}
