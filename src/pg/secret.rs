//! Functions whose arguments contain a secret, such as a password.

use super::{report, transaction};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgBox, PgList, pg_sys};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;

// This declaration bypasses pg_sys's guard, because the function is called while an error is reported.
unsafe extern "C-unwind" {
    fn errhidecontext(hide: bool) -> c_int;
}

/// Runs the body of a function. Until the end of the user's statement, `shown` takes the statement's place in the server's
/// log, in `pg_stat_activity` and in `current_query()`. Messages of `work` have no CONTEXT in the log, because it would show the
/// statement of a PL/pgSQL function that called this one.
pub fn keep<T>(shown: &'static CStr, work: impl FnOnce() -> Result<T, ErrorReport>) -> T {
    // SAFETY: the caller is within a statement; the text lives as long as the process. The callback lies in the memory of the
    // current call, which lasts until an error of the call was reported.
    let outer = unsafe {
        pg_sys::debug_query_string = shown.as_ptr();
        pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, shown.as_ptr());
        let outer = pg_sys::error_context_stack;
        let mut callback = PgBox::<pg_sys::ErrorContextCallback>::alloc0();
        callback.previous = outer;
        callback.callback = Some(hide);
        pg_sys::error_context_stack = callback.into_pg();
        outer
    };
    // An error is raised here, while the callback is in place. The code that catches the error removes the callback.
    let done = work().unwrap_or_else(|error| report::raise(error));
    // SAFETY: removes the callback that was added above.
    unsafe { pg_sys::error_context_stack = outer };
    done
}

unsafe extern "C-unwind" fn hide(_: *mut c_void) {
    // SAFETY: the server calls this function while it reports an error.
    unsafe { errhidecontext(true) };
}

/// Runs one utility statement, which may contain a secret within [`keep`]: hooks and event triggers get the text of the user's
/// statement, or the text that `keep` shows. `statement` is in the encoding of the database.
pub fn run(statement: &CString) {
    // SAFETY: the caller is within a transaction with a snapshot; the text ends with a zero byte, and outlives the call. The parser
    // returns a list of statements.
    unsafe {
        let user = pg_sys::debug_query_string;
        let user = if user.is_null() { c"".as_ptr() } else { user };
        let parsed = pg_sys::raw_parser(statement.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
        for parsed in PgList::<pg_sys::RawStmt>::from_pg(parsed).iter_ptr() {
            let mut planned = PgBox::<pg_sys::PlannedStmt>::alloc_node(pg_sys::NodeTag::T_PlannedStmt);
            planned.commandType = pg_sys::CmdType::CMD_UTILITY;
            planned.utilityStmt = (*parsed).stmt;
            pg_sys::ProcessUtility(
                planned.into_pg(),
                user,
                false,
                pg_sys::ProcessUtilityContext::PROCESS_UTILITY_QUERY,
                ptr::null_mut(),
                ptr::null_mut(),
                pg_sys::None_Receiver,
                ptr::null_mut(),
            );
        }
    }
    transaction::see_own_changes();
}
