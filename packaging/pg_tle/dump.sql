
-- A dump of the database has the worker id, the last id and the tags.
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.plain', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.plain_last', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.plain_segment', '');

-- A dump has the one row of the table plain. During a restore, CREATE EXTENSION has already inserted a row, which is deleted first.
CREATE FUNCTION snowflake_ids.plain_replace() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM snowflake_ids.plain;
    RETURN NULL;
END
$$;
CREATE TRIGGER plain_replace BEFORE INSERT ON snowflake_ids.plain FOR EACH STATEMENT
    EXECUTE FUNCTION snowflake_ids.plain_replace();
