/* From 0.2.1 to 0.3.0. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* There are no dense series any more: they are gapless, above all that was reserved, which is what their counters say. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_check_row() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- As 0.2 has it, whose dumps are restored. Its counters say up to where numbers were reserved.
    IF NEW.kind = 'dense' THEN
        NEW.kind := 'gapless';
        NEW.step := NULL;
        NEW.max_step := NULL;
    END IF;
    -- Numbers of the former kind, or section, are in memory.
    IF TG_OP = 'UPDATE' AND OLD.kind <> 'dense' AND (NEW.kind, NEW.sections) IS DISTINCT FROM (OLD.kind, OLD.sections) THEN
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
    PERFORM snowflake_ids_internal.series_check_scope(NEW.kind, NEW.scope);
    RETURN NEW;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.series_create(
    name        text,
    kind        text    DEFAULT 'gapless',
    key_type    regtype DEFAULT 'bigint',
    start       bigint  DEFAULT 1,
    step        integer DEFAULT NULL,
    max_step    integer DEFAULT NULL,
    reset       text    DEFAULT NULL,
    time_zone   text    DEFAULT 'UTC',
    format      text    DEFAULT NULL,
    max_value   bigint  DEFAULT 9223372036854775807,
    description text    DEFAULT NULL,
    owner       name    DEFAULT NULL,
    sections    integer DEFAULT NULL,
    scope       text    DEFAULT 'global'
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    -- The type's name as it is written with these settings.
    type_name text := coalesce(key_type::text, '');
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF kind COLLATE "C" = 'dense' THEN
        RAISE feature_not_supported USING
            MESSAGE = 'series of kind "dense" are not supported',
            DETAIL = 'Their numbers came from memory, with gaps where a transaction was rolled back or the server died.',
            HINT = 'Leave kind out for a gapless series, whose calls of one key wait for each other; create a segment tag for each key '
                'that many call at once; or give ''monotonic'' where numbers only have to grow.';
    ELSIF kind COLLATE "C" = 'monotonic' THEN
        step := coalesce(step, least(1000, max_step));
        max_step := coalesce(max_step, greatest(1000000, step));
        sections := coalesce(sections, 16);
    END IF;
    PERFORM snowflake_ids_internal.series_check(name, kind, type_name, start, max_value, reset, time_zone, format, description, step,
        max_step, sections);
    PERFORM snowflake_ids_internal.series_check_scope(kind, scope);
    IF scope COLLATE "C" = 'shard' THEN
        RAISE feature_not_supported USING
            MESSAGE = 'cannot create a series of scope "shard"',
            DETAIL = 'Its key table is made beside a distributed table.',
            HINT = 'Leave scope out, and call snowflake_ids.series_distribute.';
    END IF;
    PERFORM snowflake_ids_internal.series_check_home(kind) WHERE scope COLLATE "C" = 'global';
    INSERT INTO snowflake_ids.series (name, kind, key_type, start, max_value, reset, time_zone, format, description, step, max_step,
        sections, scope)
    VALUES (name, kind, type_name, start, max_value, lower(reset COLLATE "C"), time_zone, format, description, step, max_step, sections,
        scope)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.series_taken(name);
    END IF;
    IF kind COLLATE "C" = 'monotonic' THEN
        PERFORM snowflake_ids_internal.series_make_sections(name);
    END IF;
    IF owner IS NOT NULL THEN
        PERFORM snowflake_ids_internal.series_set_owner(name, owner);
    END IF;
END
$$;
DROP TRIGGER series_recounted ON snowflake_ids.series;
DO $$
DECLARE
    former text;
BEGIN
    SELECT string_agg(format('%L', left(s.name, 128)), ', ' ORDER BY s.name) INTO former FROM snowflake_ids.series AS s WHERE s.kind = 'dense';
    IF former IS NULL THEN
        RETURN;
    END IF;
    UPDATE snowflake_ids.series SET kind = 'gapless', step = NULL, max_step = NULL WHERE kind = 'dense';
    RAISE NOTICE 'dense series are gapless from now on: %', left(former, 1000) USING
        DETAIL = 'Their numbers go on above all that were reserved. Calls of one key wait for each other until the transaction ends, and two that '
            'take keys in opposite order can deadlock (40P01).',
        HINT = 'Create a segment tag for each key that many call at once.';
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        RAISE NOTICE 'former dense series give no numbers in this database, which draws from a registry' USING
            DETAIL = 'Each node would count for itself.',
            HINT = 'Where each key is on one node, UPDATE snowflake_ids.series SET scope = ''node'' for them, and set their keys above the numbers that '
                'all nodes gave; else number at the registry.';
    END IF;
END
$$;

CREATE OR REPLACE VIEW snowflake_ids.metric_series AS
SELECT current_database()::text AS database, k.kind, count(s.id)::double precision AS defined
FROM (VALUES ('gapless'), ('monotonic')) AS k (kind) LEFT JOIN snowflake_ids.series AS s ON s.kind = k.kind
GROUP BY k.kind;
COMMENT ON COLUMN snowflake_ids.metric_series.kind IS 'gapless or monotonic';
COMMENT ON COLUMN snowflake_ids.series_status.kind IS 'gapless or monotonic';
COMMENT ON COLUMN snowflake_ids.series_key.last_value IS
    'the last number of the key';
