//! The functions that replace the server's `nextval`, `currval`, `lastval` and `setval`.

use crate::pg::redirect::{Called, is_of_identity, may_call};
use crate::pg::report::{raise, report};
use crate::sequence::{self, error::SequenceError};
use pgrx::{FromDatum, pg_guard, pg_sys};

info!(pg_finfo_sequence_nextval_wrapper);
info!(pg_finfo_sequence_currval_wrapper);
info!(pg_finfo_sequence_lastval_wrapper);
info!(pg_finfo_sequence_setval_wrapper);
info!(pg_finfo_sequence_setval3_wrapper);
info!(pg_finfo_sequence_noted_wrapper);

#[unsafe(no_mangle)]
#[pg_guard]
extern "C-unwind" fn sequence_nextval_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the server passes the arguments that src/sql/sequence.sql declares.
    let (sequence, is_identity) = unsafe { (argument(call, 0), is_of_identity(call)) };
    if !is_identity {
        // SAFETY: the server calls this function.
        unsafe { check(call, Called::Nextval) };
    }
    given(sequence::nextval(sequence, is_identity))
}

#[unsafe(no_mangle)]
#[pg_guard]
extern "C-unwind" fn sequence_currval_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the server calls this function.
    unsafe { check(call, Called::Currval) };
    // SAFETY: the server passes the declared arguments.
    given(sequence::currval(unsafe { argument(call, 0) }))
}

#[unsafe(no_mangle)]
#[pg_guard]
extern "C-unwind" fn sequence_lastval_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the server calls this function.
    unsafe { check(call, Called::Lastval) };
    given(sequence::lastval())
}

#[unsafe(no_mangle)]
#[pg_guard]
extern "C-unwind" fn sequence_setval_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the server passes the declared arguments.
    let (sequence, value) = unsafe { (argument(call, 0), argument(call, 1)) };
    // SAFETY: the server calls this function.
    unsafe { check(call, Called::Setval) };
    given(sequence::setval(sequence, value, true))
}

#[unsafe(no_mangle)]
#[pg_guard]
extern "C-unwind" fn sequence_setval3_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the server passes the declared arguments.
    let (sequence, value, is_called) = unsafe { (argument(call, 0), argument(call, 1), argument(call, 2)) };
    // SAFETY: the server calls this function.
    unsafe { check(call, Called::Setval3) };
    given(sequence::setval(sequence, value, is_called))
}

#[unsafe(no_mangle)]
#[pg_guard]
extern "C-unwind" fn sequence_noted_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the server passes the declared arguments.
    let (sequence, id) = unsafe { (argument(call, 0), argument(call, 1)) };
    sequence::recorded_of_column(sequence, id).into()
}

/// Fails unless the current role may call the server's function.
///
/// # Safety
/// The server made this call.
unsafe fn check(call: pg_sys::FunctionCallInfo, called: Called) {
    // SAFETY: the caller passes the server's call.
    if !unsafe { may_call(call, called) } {
        raise(report(&SequenceError::NotExecutable(called.name())));
    }
}

fn given(number: Result<i64, SequenceError>) -> pg_sys::Datum {
    number.unwrap_or_else(|error| raise(report(&error))).into()
}

/// Returns an argument of a strict function.
///
/// # Safety
/// The function has an argument of this type at `index`.
unsafe fn argument<T: FromDatum>(call: pg_sys::FunctionCallInfo, index: usize) -> T {
    // SAFETY: the caller names an existing argument, which is not null because the function is strict.
    unsafe {
        let argument = (*call).args.as_ptr().add(index).read();
        T::from_datum(argument.value, false).unwrap_or_else(|| {
            raise(crate::pg::report::bad_argument("an argument must not be null", "The function is strict."))
        })
    }
}
