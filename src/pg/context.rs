//! CONTEXT lines of errors. PL/pgSQL adds two for each function, and internal functions call each other: users would read names that they
//! never call. Each of these functions has a SET clause, so the server tells a hook of errors that leave it.

use pgrx::pg_sys;
use std::ffi::CStr;

unsafe extern "C-unwind" {
    // The raw symbols: pg_sys's have guards around them.
    fn CopyErrorData() -> *mut pg_sys::ErrorData;
    fn FreeErrorData(error: *mut pg_sys::ErrorData);
    fn FlushErrorState();
    fn ThrowErrorData(error: *mut pg_sys::ErrorData);
}

/// The schema of the functions that no user calls, as lines in every language have it.
const INTERNAL: &[u8] = b"snowflake_ids_internal.";

static mut PREVIOUS: pg_sys::fmgr_hook_type = None;

/// Leaves these lines out from now on. Only while the server loads libraries.
pub fn leave_out_internal() {
    // SAFETY: hooks are chained in the postmaster, which is single-threaded.
    unsafe {
        PREVIOUS = pg_sys::fmgr_hook;
        pg_sys::fmgr_hook = Some(event_of_function);
    }
}

/// Raises an error anew that comes from an internal function, or from a statement that calls one: the server adds the lines of callers
/// only. An error of users' code that runs within keeps all of its lines. Has no guard around it, and no destructor in it: errors pass
/// through it as through a function in C.
unsafe extern "C-unwind" fn event_of_function(
    event: pg_sys::FmgrHookEventType::Type,
    function: *mut pg_sys::FmgrInfo,
    state: *mut pg_sys::Datum,
) {
    // SAFETY: the previous hook is called as by the server. The copy may not lie in the memory of errors, but in the function's.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(event, function, state);
        }
        if event != pg_sys::FmgrHookEventType::FHET_ABORT {
            return;
        }
        let memory = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = (*function).fn_mcxt;
        let error = CopyErrorData();
        if !(*error).context.is_null() && is_internal(CStr::from_ptr((*error).context)) {
            FlushErrorState();
            (*error).context = std::ptr::null_mut();
            ThrowErrorData(error);
        }
        FreeErrorData(error);
        pg_sys::CurrentMemoryContext = memory;
    }
}

/// Returns whether the innermost line names an internal function.
fn is_internal(context: &CStr) -> bool {
    let innermost = context.to_bytes().split(|byte| *byte == b'\n').next();
    innermost.is_some_and(|line| line.windows(INTERNAL.len()).any(|part| part == INTERNAL))
}
