-- A type like bigint, whose JSON is a string, so that JavaScript does not round ids. The type uses the operators and operator
-- classes of bigint. With category N, UNION and COALESCE of this type and bigint give bigint. The type has no max and min of its
-- own: for such an aggregate the planner could not use the end of an index, and would read the whole table.

CREATE TYPE snowflake_id;
CREATE FUNCTION snowflake_ids_internal.snowflake_id_in(cstring) RETURNS snowflake_id
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8in';
CREATE FUNCTION snowflake_ids_internal.snowflake_id_out(snowflake_id) RETURNS cstring
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8out';
CREATE FUNCTION snowflake_ids_internal.snowflake_id_recv(internal) RETURNS snowflake_id
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8recv';
CREATE FUNCTION snowflake_ids_internal.snowflake_id_send(snowflake_id) RETURNS bytea
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8send';
CREATE TYPE snowflake_id (INPUT = snowflake_ids_internal.snowflake_id_in, OUTPUT = snowflake_ids_internal.snowflake_id_out,
    RECEIVE = snowflake_ids_internal.snowflake_id_recv, SEND = snowflake_ids_internal.snowflake_id_send, LIKE = bigint, CATEGORY = 'N');
COMMENT ON TYPE snowflake_id IS 'an id that is stored, compared and indexed as a bigint, and is a string in JSON';

CREATE CAST (snowflake_id AS bigint) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (bigint AS snowflake_id) WITHOUT FUNCTION AS ASSIGNMENT;
-- These casts are needed because an SQL literal such as 1 is an integer, and drivers send small numbers as smallint.
CREATE CAST (integer AS snowflake_id) WITH INOUT AS ASSIGNMENT;
CREATE CAST (smallint AS snowflake_id) WITH INOUT AS ASSIGNMENT;

-- Reports the users' types that unqualified names no longer mean, because pg_catalog is searched first. Temporary types are searched
-- even earlier. PostgreSQL runs install scripts with the level WARNING, or with the session's own level if that is higher.
DO $$
DECLARE
    shadowed text := (SELECT string_agg(format('%I.%I', n.nspname, t.typname), ', ' ORDER BY n.nspname)
        FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
        WHERE t.typname = 'snowflake_id' AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_temp_');
BEGIN
    IF shadowed IS NOT NULL AND current_setting('client_min_messages') = 'warning' THEN
        PERFORM set_config('client_min_messages', 'notice', true);
        RAISE NOTICE USING
            MESSAGE = format('the type name snowflake_id no longer refers to %s', shadowed),
            DETAIL = 'It refers to pg_catalog.snowflake_id, the type of this extension.',
            HINT = 'Write the name of your own type with its schema, or rename the type.';
        PERFORM set_config('client_min_messages', 'warning', true);
    END IF;
END
$$;
