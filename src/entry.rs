//! Entry points that the server calls by name: functions that are called for every row, triggers, and the beginnings of
//! workers.
//!
//! The former have entries written by hand. What pgrx wraps around a function, a guard with room for an error report and two switches of the memory
//! context, costs a fifth of an id. The common case needs neither: it calls nothing of the server's that could
//! fail, and allocates nothing. Everything else is left to a guarded function.

#![allow(unsafe_code, reason = "entries written by hand")]

/// The record by which the server knows how to call a function.
macro_rules! info {
    ($info:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $info() -> &'static pg_sys::Pg_finfo_record {
            static VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
            &VERSION_1
        }
    };
}

/// A function that gives what it can at once, and what tells the server how to call it. What it does not give at once is left to a guarded
/// function: a panic would come again there, and be reported.
macro_rules! entry {
    ($entry:ident, $info:ident, $guarded:ident, |$call:pat_param| $at_once:expr, |$again:pat_param| $given:expr) => {
        info!($info);

        #[unsafe(no_mangle)]
        extern "C-unwind" fn $entry(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
            let given = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let $call = call;
                $at_once
            }));
            given.ok().flatten().map_or_else(|| $guarded(call), Into::into)
        }

        #[cold]
        #[pg_guard]
        extern "C-unwind" fn $guarded(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
            let $again = call;
            $given.into()
        }
    };
}

mod copy;
mod segment;
mod sequence;
mod series;
mod series_nextval;
mod snowflake;
mod trigger;
mod uuid;
mod worker;
