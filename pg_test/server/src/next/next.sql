CREATE TABLE snowflake_ids.trial (id bigint PRIMARY KEY, number integer NOT NULL, note text NOT NULL DEFAULT 'none');
COMMENT ON TABLE snowflake_ids.trial IS 'rows that stay';
SELECT pg_extension_config_dump('snowflake_ids.trial', '');

CREATE FUNCTION snowflake_ids.trial_body(number integer) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT 'next ' || number $$;
COMMENT ON FUNCTION snowflake_ids.trial_body IS 'the next comment';
CREATE FUNCTION snowflake_ids.trial_renamed(value integer) RETURNS integer
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT value $$;
CREATE FUNCTION snowflake_ids.trial_default(number integer) RETURNS integer
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT number $$;
CREATE FUNCTION snowflake_ids.trial_new() RETURNS integer
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT 8 $$;
CREATE FUNCTION snowflake_ids_internal.trial_tag() RETURNS integer
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT 9 $$;

CREATE VIEW snowflake_ids.trial_grown AS SELECT t.id, t.number, t.note FROM snowflake_ids.trial AS t;
CREATE VIEW snowflake_ids.trial_retyped AS SELECT t.id, t.number::bigint AS number FROM snowflake_ids.trial AS t;
CREATE VIEW snowflake_ids.trial_added AS SELECT t.note FROM snowflake_ids.trial AS t;
