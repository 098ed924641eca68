//! Entry points of trigger functions.
//!
//! pgrx panics if a trigger function is called as an ordinary function. The entry points below raise an SQL error instead.

use crate::pg::report::raise;
use crate::sql::error::CallError;
use pgrx::trigger_support::called_as_trigger;
use pgrx::{pg_guard, pg_sys};

/// Defines an entry point that calls pgrx's entry point `$behind`, and the record of the entry point's calling convention.
macro_rules! trigger {
    ($entry:ident, $info:ident, $behind:ident) => {
        unsafe extern "C-unwind" {
            fn $behind(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
        }

        info!($info);

        #[unsafe(no_mangle)]
        extern "C-unwind" fn $entry(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
            // SAFETY: the server makes this call, and pgrx's entry point has its own guard.
            unsafe { if called_as_trigger(call) { $behind(call) } else { refuse() } }
        }
    };
}

trigger!(segment_check_trigger, pg_finfo_segment_check_trigger, segment_check_wrapper);
trigger!(segment_changed_trigger, pg_finfo_segment_changed_trigger, segment_changed_wrapper);
trigger!(
    segment_privileges_changed_trigger,
    pg_finfo_segment_privileges_changed_trigger,
    segment_privileges_changed_wrapper
);
trigger!(
    sequence_binding_changed_trigger,
    pg_finfo_sequence_binding_changed_trigger,
    sequence_binding_changed_wrapper
);
trigger!(generator_changed_trigger, pg_finfo_generator_changed_trigger, generator_changed_wrapper);
trigger!(series_fill_trigger, pg_finfo_series_fill_trigger, series_fill_wrapper);
trigger!(series_changed_trigger, pg_finfo_series_changed_trigger, series_changed_wrapper);
trigger!(registry_changed_trigger, pg_finfo_registry_changed_trigger, registry_changed_wrapper);
trigger!(
    keep_from_replication_trigger,
    pg_finfo_keep_from_replication_trigger,
    keep_from_replication_wrapper
);

#[cold]
#[pg_guard]
extern "C-unwind" fn refuse() -> pg_sys::Datum {
    raise(CallError::NoTrigger)
}
