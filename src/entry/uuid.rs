//! `snowflake_uuid` and `snowflake_uuid_text`.

use super::snowflake::{known, looked_up};
use crate::pg::report::{raise, report};
use crate::pg::uuid::{as_text, as_uuid};
use crate::snowflake;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode, extension_sql, function_name, pg_guard, pg_sys};
use snowflake_ids_core::Uuid;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A UUID as the result of a function.
type AsResult = fn(Uuid) -> Option<pg_sys::Datum>;

/// Tells the server how to call the function below.
#[unsafe(no_mangle)]
extern "C" fn pg_finfo_snowflake_uuid_wrapper() -> &'static pg_sys::Pg_finfo_record {
    static VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

#[unsafe(no_mangle)]
extern "C-unwind" fn snowflake_uuid_wrapper(_: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // Not at once, or not at all; a panic would come again, and be reported.
    let uuid = catch_unwind(|| as_uuid(snowflake::uuid_at_once()?)).ok().flatten();
    uuid.unwrap_or_else(|| guarded())
}

/// Tells the server how to call the function below.
#[unsafe(no_mangle)]
extern "C" fn pg_finfo_snowflake_uuid_of_generator_wrapper() -> &'static pg_sys::Pg_finfo_record {
    static VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

#[unsafe(no_mangle)]
extern "C-unwind" fn snowflake_uuid_of_generator_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: called by the server, with what it passes.
    let uuid = catch_unwind(AssertUnwindSafe(|| unsafe { at_once_of(call, as_uuid) })).ok().flatten();
    uuid.unwrap_or_else(|| guarded_of_generator(call))
}

/// Tells the server how to call the function below.
#[unsafe(no_mangle)]
extern "C" fn pg_finfo_snowflake_uuid_text_of_generator_wrapper() -> &'static pg_sys::Pg_finfo_record {
    static VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

#[unsafe(no_mangle)]
extern "C-unwind" fn snowflake_uuid_text_of_generator_wrapper(
    call: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: the same.
    let text = catch_unwind(AssertUnwindSafe(|| unsafe { at_once_of(call, as_text) })).ok().flatten();
    text.unwrap_or_else(|| guarded_text_of_generator(call))
}

/// The next UUID of the generator that a call names, where the session knows it.
///
/// # Safety
/// Called with what the server passes to a strict function with a text argument.
#[inline]
unsafe fn at_once_of(call: pg_sys::FunctionCallInfo, as_result: AsResult) -> Option<pg_sys::Datum> {
    // SAFETY: as above.
    as_result(snowflake::uuid_of_at_once(unsafe { known(call)? })?)
}

/// Tells the server how to call the function below.
#[unsafe(no_mangle)]
extern "C" fn pg_finfo_snowflake_uuid_text_wrapper() -> &'static pg_sys::Pg_finfo_record {
    static VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

#[unsafe(no_mangle)]
extern "C-unwind" fn snowflake_uuid_text_wrapper(_: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // The same.
    let text = catch_unwind(|| as_text(snowflake::uuid_at_once()?)).ok().flatten();
    text.unwrap_or_else(|| guarded_text())
}

#[cold]
#[pg_guard]
extern "C-unwind" fn guarded() -> pg_sys::Datum {
    next("snowflake_uuid", as_uuid)
}

#[cold]
#[pg_guard]
extern "C-unwind" fn guarded_text() -> pg_sys::Datum {
    next("snowflake_uuid_text", as_text)
}

fn next(function: &'static str, as_result: AsResult) -> pg_sys::Datum {
    as_datum(snowflake::uuid(function).unwrap_or_else(|error| raise(report(&error))), as_result)
}

#[cold]
#[pg_guard]
extern "C-unwind" fn guarded_of_generator(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: called with what the server passes to a strict function with a text argument.
    unsafe { next_of("snowflake_uuid", call, as_uuid) }
}

#[cold]
#[pg_guard]
extern "C-unwind" fn guarded_text_of_generator(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the same.
    unsafe { next_of("snowflake_uuid_text", call, as_text) }
}

/// # Safety
/// Called with what the server passes to a strict function with a text argument.
unsafe fn next_of(
    function: &'static str,
    call: pg_sys::FunctionCallInfo,
    as_result: AsResult,
) -> pg_sys::Datum {
    // SAFETY: as above.
    let known = unsafe { looked_up(call) };
    as_datum(snowflake::uuid_of(function, known).unwrap_or_else(|error| raise(error)), as_result)
}

fn as_datum(uuid: Uuid, as_result: AsResult) -> pg_sys::Datum {
    as_result(uuid).unwrap_or_else(|| {
        raise(ErrorReport::new(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, "out of memory", function_name!()))
    })
}

extension_sql!(
    "
/* The next UUID of version 7: unique across all servers of a layout, and growing from call to call of a session. */
CREATE FUNCTION snowflake_uuid() RETURNS uuid
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_wrapper';

/* The same as 32 digits, without dashes. */
CREATE FUNCTION snowflake_uuid_text() RETURNS text
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_text_wrapper';
COMMENT ON FUNCTION snowflake_uuid_text() IS 'the same as snowflake_uuid(), as text without dashes';

/* The next UUID of a named generator: unique in its layout, across all servers. */
CREATE FUNCTION snowflake_uuid(generator text) RETURNS uuid
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_of_generator_wrapper';
CREATE FUNCTION snowflake_uuid_text(generator text) RETURNS text
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_text_of_generator_wrapper';
COMMENT ON FUNCTION snowflake_uuid_text(text) IS 'the same as snowflake_uuid(generator), as text without dashes';

/* No SQL can call these: it has no value of type internal. */
CREATE FUNCTION snowflake_uuid_in_copy(internal) RETURNS uuid
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_wrapper';
COMMENT ON FUNCTION snowflake_uuid_in_copy(internal) IS 'what COPY FROM calls in place of snowflake_uuid()';
CREATE FUNCTION snowflake_uuid_text_in_copy(internal) RETURNS text
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_text_wrapper';
COMMENT ON FUNCTION snowflake_uuid_text_in_copy(internal) IS 'what COPY FROM calls in place of snowflake_uuid_text()';
CREATE FUNCTION snowflake_uuid_in_copy(generator text, internal) RETURNS uuid
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_of_generator_wrapper';
COMMENT ON FUNCTION snowflake_uuid_in_copy(text, internal) IS 'what COPY FROM calls in place of snowflake_uuid(generator)';
CREATE FUNCTION snowflake_uuid_text_in_copy(generator text, internal) RETURNS text
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_text_of_generator_wrapper';
COMMENT ON FUNCTION snowflake_uuid_text_in_copy(text, internal) IS 'what COPY FROM calls in place of snowflake_uuid_text(generator)';
",
    name = "snowflake_uuid",
    requires = ["nextval_support"]
);
