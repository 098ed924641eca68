//! SQL functions that are kept out of the statements that call them. The planner puts a simple function's body in the place of
//! its call, where no hook meets it; as a call it stays, its body is planned as a statement of its own.

use super::text::bytes_of;
use super::tuple;
use pgrx::{pg_guard, pg_sys};
use std::sync::OnceLock;

/// Returns whether functions are to be kept out at the moment. Must not fail, and calls nothing of the server's.
type Wanted = fn() -> bool;

static WANTED: OnceLock<Wanted> = OnceLock::new();
static mut PREVIOUS: pg_sys::needs_fmgr_hook_type = None;

/// The language.
const SQL: u32 = 14;
/// Functions whose bodies have one of these words in them, and calls of the server's functions as the parser writes them.
const WORDS: [&[u8]; 4] = [b"nextval", b"currval", b"lastval", b"setval"];
const CALLS: [&[u8]; 5] =
    [b":funcid 1574 ", b":funcid 1575 ", b":funcid 2559 ", b":funcid 1576 ", b":funcid 1765 "];

/// Has SQL functions that call a sequence kept out while this is wanted. Only while the server loads libraries.
pub fn keep_out(wanted: Wanted) {
    WANTED.get_or_init(|| wanted);
    // SAFETY: hooks are chained in the postmaster, which is single-threaded.
    unsafe {
        PREVIOUS = pg_sys::needs_fmgr_hook;
        pg_sys::needs_fmgr_hook = Some(needs_hook);
    }
}

/// Says of functions that they are to be told of when they are called: these the planner leaves as they are.
#[pg_guard]
unsafe extern "C-unwind" fn needs_hook(function: pg_sys::Oid) -> bool {
    // SAFETY: the hook that was set before ours is called once, as the server would have.
    let previous =
        unsafe { PREVIOUS.is_some_and(|previous| pg_sys::ffi::pg_guard_ffi_boundary(|| previous(function))) };
    previous || (WANTED.get().is_some_and(|wanted| wanted()) && calls_sequences(function))
}

/// Returns whether this is a function in SQL that seems to call a sequence. Only within a transaction.
fn calls_sequences(function: pg_sys::Oid) -> bool {
    let cache = pg_sys::SysCacheIdentifier::PROCOID;
    let calls = tuple::cached(cache, function, |row| {
        // SAFETY: a row of the cache is the struct; both columns are texts.
        unsafe {
            let found: &pg_sys::FormData_pg_proc = &*pg_sys::GETSTRUCT(row).cast();
            let column = |number: u32| {
                let number = i16::try_from(number).unwrap_or_default();
                tuple::cached_column(cache, row, number).map(|text| bytes_of(text))
            };
            found.prolang.to_u32() == SQL && {
                column(pg_sys::Anum_pg_proc_prosrc).is_some_and(has_word)
                    || column(pg_sys::Anum_pg_proc_prosqlbody).is_some_and(has_call)
            }
        }
    });
    calls == Some(true)
}

/// Returns whether one of the words is there that is not the end of another name.
fn has_word(source: &[u8]) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    WORDS.iter().any(|word| {
        let mut found = source.windows(word.len()).enumerate();
        found.any(|(place, part)| {
            part.eq_ignore_ascii_case(word)
                && !place.checked_sub(1).is_some_and(|before| is_of_name(&source[before]))
        })
    })
}

/// Returns whether a body that was parsed when the function was made has one of the calls.
fn has_call(body: &[u8]) -> bool {
    CALLS.iter().any(|call| body.windows(call.len()).any(|part| part == *call))
}
