//! The functions `snowflake_uuid` and `snowflake_uuid_text`.

use super::snowflake::{cached, looked_up};
use crate::named::{self, CachedGenerator};
use crate::pg::report::{raise, report};
use crate::pg::uuid::{as_text, as_uuid};
use crate::snowflake;
use crate::sql::error::CallError;
use pgrx::{extension_sql, pg_guard, pg_sys};
use snowflake_ids_core::Uuid;

entry!(
    snowflake_uuid_wrapper,
    pg_finfo_snowflake_uuid_wrapper,
    guarded,
    |_| as_uuid(snowflake::uuid_at_once()?),
    |_| next("snowflake_uuid", named::own(), as_uuid)
);
entry!(
    snowflake_uuid_text_wrapper,
    pg_finfo_snowflake_uuid_text_wrapper,
    guarded_text,
    |_| as_text(snowflake::uuid_at_once()?),
    |_| next("snowflake_uuid_text", named::own(), as_text)
);
entry!(
    snowflake_uuid_of_generator_wrapper,
    pg_finfo_snowflake_uuid_of_generator_wrapper,
    guarded_of_generator,
    // SAFETY: the server calls this function with its argument.
    |call| as_uuid(snowflake::uuid_of_at_once(unsafe { cached(call)? })?),
    // SAFETY: the server calls this function with its argument.
    |call| next("snowflake_uuid", unsafe { looked_up(call) }, as_uuid)
);
entry!(
    snowflake_uuid_text_of_generator_wrapper,
    pg_finfo_snowflake_uuid_text_of_generator_wrapper,
    guarded_text_of_generator,
    // SAFETY: the server calls this function with its argument.
    |call| as_text(snowflake::uuid_of_at_once(unsafe { cached(call)? })?),
    // SAFETY: the server calls this function with its argument.
    |call| next("snowflake_uuid_text", unsafe { looked_up(call) }, as_text)
);

fn next(
    function: &'static str,
    of: &CachedGenerator,
    as_result: fn(Uuid) -> Option<pg_sys::Datum>,
) -> pg_sys::Datum {
    let uuid = snowflake::uuid(function, of).unwrap_or_else(|error| raise(report(error)));
    as_result(uuid).unwrap_or_else(|| raise(CallError::NoMemory))
}

extension_sql!(
    "
/* Returns the next UUID of version 7. It is unique across all servers of a layout, and increases within a session. */
CREATE FUNCTION snowflake_uuid() RETURNS uuid
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_wrapper';

/* Returns the next UUID as 32 hexadecimal digits without dashes. */
CREATE FUNCTION snowflake_uuid_text() RETURNS text
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_text_wrapper';
COMMENT ON FUNCTION snowflake_uuid_text() IS 'the same as snowflake_uuid(), as text without dashes';

/* Returns the next UUID of a named generator. It is unique across all servers within the generator's layout. */
CREATE FUNCTION snowflake_uuid(generator text) RETURNS uuid
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_of_generator_wrapper';
CREATE FUNCTION snowflake_uuid_text(generator text) RETURNS text
STRICT VOLATILE PARALLEL SAFE SUPPORT nextval_support
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_text_of_generator_wrapper';
COMMENT ON FUNCTION snowflake_uuid_text(text) IS 'the same as snowflake_uuid(generator), as text without dashes';

/* SQL cannot call these functions, because it has no value of type internal. */
CREATE FUNCTION snowflake_uuid_in_copy(internal) RETURNS uuid
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_wrapper';
COMMENT ON FUNCTION snowflake_uuid_in_copy(internal) IS 'called by COPY FROM in place of snowflake_uuid()';
CREATE FUNCTION snowflake_uuid_text_in_copy(internal) RETURNS text
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_text_wrapper';
COMMENT ON FUNCTION snowflake_uuid_text_in_copy(internal) IS 'called by COPY FROM in place of snowflake_uuid_text()';
CREATE FUNCTION snowflake_uuid_in_copy(generator text, internal) RETURNS uuid
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_of_generator_wrapper';
COMMENT ON FUNCTION snowflake_uuid_in_copy(text, internal) IS 'called by COPY FROM in place of snowflake_uuid(generator)';
CREATE FUNCTION snowflake_uuid_text_in_copy(generator text, internal) RETURNS text
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_uuid_text_of_generator_wrapper';
COMMENT ON FUNCTION snowflake_uuid_text_in_copy(text, internal) IS 'called by COPY FROM in place of snowflake_uuid_text(generator)';
",
    name = "snowflake_uuid",
    requires = ["nextval_support"]
);
