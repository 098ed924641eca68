//! Entry points that the server calls by name: functions that run for every row, triggers, and main functions of workers.
//!
//! The functions that run for every row bypass pgrx's wrapper. The wrapper sets up an error handler and switches the memory
//! context twice. These two steps take a fifth of the time that creating an id takes. The fast path of these functions needs
//! no wrapper, because the fast path allocates nothing and calls no server function that can fail. All other cases go to a
//! function with pgrx's guard.

#![allow(unsafe_code, reason = "entries written by hand")]

/// Defines the record that tells the server the calling convention of a function.
macro_rules! info {
    ($info:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $info() -> &'static pg_sys::Pg_finfo_record {
            static VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
            &VERSION_1
        }
    };
}

/// Defines an entry point with a fast path. If the fast path returns None or panics, the function with pgrx's guard starts
/// the call over. If that function panics too, the guard reports the panic as an error.
macro_rules! entry {
    ($entry:ident, $info:ident, $guarded:ident, |$call:pat_param| $at_once:expr, |$again:pat_param| $given:expr) => {
        info!($info);

        #[unsafe(no_mangle)]
        pub(super) extern "C-unwind" fn $entry(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
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

mod bound;
mod copy;
mod process;
mod series;
mod series_nextval;
mod snowflake;
mod tag;
mod trigger;
mod uuid;
