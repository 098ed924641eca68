//! `snowflake_nextval`.

use crate::pg::report::{raise, report};
use crate::snowflake;
use pgrx::{extension_sql, pg_guard, pg_sys};
use std::panic::catch_unwind;

/// Tells the server how to call the function below.
#[unsafe(no_mangle)]
extern "C" fn pg_finfo_snowflake_nextval_wrapper() -> &'static pg_sys::Pg_finfo_record {
    static VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

#[unsafe(no_mangle)]
extern "C-unwind" fn snowflake_nextval_wrapper(_: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // Not at once, or not at all; a panic would come again, and be reported.
    let id = catch_unwind(snowflake::next_at_once).ok().flatten();
    id.map_or_else(|| guarded(), Into::into)
}

#[cold]
#[pg_guard]
extern "C-unwind" fn guarded() -> pg_sys::Datum {
    snowflake::next("snowflake_nextval").unwrap_or_else(|error| raise(report(&error))).into()
}

extension_sql!(
    "
/* The next id: unique across all servers, and growing from call to call of a snowflake. */
CREATE FUNCTION snowflake_nextval() RETURNS bigint
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_wrapper';

/* The same for tools that take a default with \"nextval\" in it for a sequence's. */
CREATE FUNCTION snowflake_id() RETURNS bigint
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_wrapper';
COMMENT ON FUNCTION snowflake_id IS 'the same as snowflake_nextval()';
",
    name = "snowflake_nextval",
    requires = ["nextval_support"]
);
