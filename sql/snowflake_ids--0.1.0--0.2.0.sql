/* From 0.1.0 to 0.2.0. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* Series. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_check_row() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Numbers of the former kind, or section, are in memory.
    IF TG_OP = 'UPDATE' AND (NEW.kind, NEW.sections) IS DISTINCT FROM (OLD.kind, OLD.sections) THEN
        RAISE feature_not_supported USING
            MESSAGE = format('kind and sections of series "%s" cannot be changed', left(OLD.name, 128)),
            DETAIL = 'Numbers that it has given would come again.',
            HINT = 'Create another series, and set its keys above the numbers of this one with snowflake_ids.series_set.';
    END IF;
    -- Its sections would draw numbers of tags that are others', and take them along when it is deleted.
    IF TG_OP = 'INSERT' AND NEW.kind = 'monotonic' AND NOT has_table_privilege('snowflake_ids.segment', 'INSERT') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied to insert monotonic series "%s"', left(NEW.name, 128)),
            DETAIL = 'Its sections are segment tags, and you may not write to the table of those.',
            HINT = 'Create it with snowflake_ids.series_create.';
    END IF;
    PERFORM snowflake_ids_internal.series_check(NEW.name, NEW.kind, NEW.key_type, NEW.start, NEW.max_value, NEW.reset, NEW.time_zone,
        NEW.format, NEW.description, NEW.step, NEW.max_step, NEW.sections);
    RETURN NEW;
END
$$;
/* Dense series that draw from a registry. */
ALTER TABLE snowflake_ids.series_bigint ADD COLUMN version bigint;
ALTER TABLE snowflake_ids.series_text ADD COLUMN version bigint;
ALTER TABLE snowflake_ids.series_uuid ADD COLUMN version bigint;
COMMENT ON COLUMN snowflake_ids.series_bigint.version IS
    'by what a node knows what it reserved last, where several count the key; null where the last reservation was none of a node''s';
