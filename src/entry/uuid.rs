//! `snowflake_uuid` and `snowflake_uuid_text`.

use crate::pg::report::{raise, report};
use crate::pg::uuid::{as_text, as_uuid};
use crate::snowflake;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode, extension_sql, function_name, pg_guard, pg_sys};
use snowflake_ids_core::Uuid;
use std::panic::catch_unwind;

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
    let uuid = snowflake::uuid(function).unwrap_or_else(|error| raise(report(&error)));
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

/* No SQL can call these: it has no value of type internal. */
CREATE FUNCTION snowflake_uuid_in_copy(internal) RETURNS uuid
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_wrapper';
COMMENT ON FUNCTION snowflake_uuid_in_copy(internal) IS 'what COPY FROM calls in place of snowflake_uuid()';
CREATE FUNCTION snowflake_uuid_text_in_copy(internal) RETURNS text
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_text_wrapper';
COMMENT ON FUNCTION snowflake_uuid_text_in_copy(internal) IS 'what COPY FROM calls in place of snowflake_uuid_text()';
",
    name = "snowflake_uuid",
    requires = ["nextval_support"]
);
