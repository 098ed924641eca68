/* What the made-up next version changes. */
CREATE TABLE snowflake_ids.trial (id bigint PRIMARY KEY, number integer NOT NULL);
COMMENT ON TABLE snowflake_ids.trial IS 'rows that stay';
SELECT pg_extension_config_dump('snowflake_ids.trial', '');

CREATE FUNCTION snowflake_ids.trial_body(number integer) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT 'former ' || number $$;
COMMENT ON FUNCTION snowflake_ids.trial_body IS 'the former comment';
CREATE FUNCTION snowflake_ids.trial_dropped() RETURNS integer
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT 7 $$;
CREATE FUNCTION snowflake_ids.trial_renamed(number integer) RETURNS integer
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT number $$;
CREATE FUNCTION snowflake_ids.trial_default(number integer DEFAULT 7) RETURNS integer
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT number $$;
CREATE FUNCTION snowflake_ids.trial_symbol() RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_nextval_wrapper';

CREATE VIEW snowflake_ids.trial_grown AS SELECT t.id, t.number FROM snowflake_ids.trial AS t;
CREATE VIEW snowflake_ids.trial_retyped AS SELECT t.id, t.number::integer AS number FROM snowflake_ids.trial AS t;
