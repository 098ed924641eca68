-- CONTEXT of errors: no names of functions that no user calls, and all lines of users' own code.
CREATE FUNCTION lines_of_ours(call text, OUT message text, OUT lines integer, OUT innermost text) LANGUAGE plpgsql AS $$
DECLARE
    context text;
BEGIN
    EXECUTE call;
EXCEPTION WHEN others THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, context = PG_EXCEPTION_CONTEXT;
    -- The last two are this function's.
    IF context NOT LIKE '%SQL statement "' || call || E'"\nPL/pgSQL function lines_of_ours(text) line 5 at EXECUTE' THEN
        RAISE 'a caller''s lines are missing: %', context;
    END IF;
    lines := cardinality(string_to_array(context, E'\n')) - 2;
    innermost := CASE WHEN lines > 0 THEN split_part(context, E'\n', 1) END;
END
$$;
CREATE ROLE keeper;
CREATE ROLE tenant;
CREATE TABLE ours (id bigint);
SELECT snowflake_ids.administration_grant('tags', 'keeper');
SELECT snowflake_ids.series_create('taken');
SELECT c.*
FROM unnest(ARRAY[
    'SELECT snowflake_ids.attach(''ours'', ''nothing'')', 'SELECT snowflake_ids.attach(''ours'', ''id'', ''other'')',
    'SELECT snowflake_ids.detach(''ours'', ''nothing'')', 'SELECT snowflake_ids.administration_grant(''everything'', ''keeper'')',
    'SELECT snowflake_ids.administration_grant(''tags'', ''nobody'')', 'SELECT snowflake_ids.administration_grant(''tags'', ''public'')',
    'SELECT snowflake_ids.series_create(''new'', owner => ''nobody'')', 'SELECT snowflake_ids.series_create(''taken'')',
    'SELECT snowflake_ids.audit(''ours'', ''nothing'')', 'SELECT * FROM snowflake_ids.audit(''ours'', ''nothing'')',
    'SELECT snowflake_ids.bind_sequence(''ours'')', 'SELECT snowflake_ids.bind_sequence(''ours'', ''other'')',
    'SELECT snowflake_ids.use_registry(''elsewhere'')']) AS call, lines_of_ours(call) AS c;
SET ROLE keeper;
SELECT * FROM lines_of_ours('SELECT snowflake_ids.attach(''ours'', ''id'')');
SET ROLE tenant;
SELECT * FROM lines_of_ours('SELECT snowflake_ids.attach(''ours'', ''id'')');
SELECT * FROM lines_of_ours('SELECT snowflake_ids.detach(''ours'', ''id'')');
RESET ROLE;
-- The lines of a user's function that is called from within stay, with all that called it.
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'refused'; END$$;
CREATE EVENT TRIGGER refuse ON ddl_command_end WHEN tag IN ('ALTER TABLE') EXECUTE FUNCTION refuse();
SELECT message, lines > 2 AS more, innermost FROM lines_of_ours('SELECT snowflake_ids.attach(''ours'', ''id'')');
CREATE OR REPLACE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN PERFORM snowflake_ids.detach('public.ours', 'nothing'); END$$;
SELECT message, lines > 2 AS more, innermost FROM lines_of_ours('SELECT snowflake_ids.attach(''ours'', ''id'')');
DROP EVENT TRIGGER refuse;
-- It is the same error but for that.
SET ROLE keeper;
SELECT snowflake_ids.attach('ours', 'id');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
SELECT snowflake_ids.series_drop('taken');
SELECT snowflake_ids.administration_revoke('tags', 'keeper');
DROP FUNCTION refuse, lines_of_ours;
DROP TABLE ours;
DROP ROLE keeper, tenant;
