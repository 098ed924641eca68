/* From 0.2.0 to 0.2.1. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* A server has places for 256 layouts unless it is set. */
CREATE OR REPLACE FUNCTION snowflake_ids.generator_create(
    name           text,
    layout         text    DEFAULT NULL,
    modulus        integer DEFAULT NULL,
    remainder      integer DEFAULT NULL,
    sequence_start text    DEFAULT NULL,
    cache          integer DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    -- Written out: in another server's dump it means the same.
    own_layout text := snowflake_ids_internal.server_layout();
    most integer := coalesce(current_setting('snowflake_ids.max_generators', true), '256');
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    PERFORM snowflake_ids_internal.generator_check(name, coalesce(layout, own_layout), modulus, remainder, sequence_start, cache);
    -- Two at a time could each find the last place free.
    LOCK TABLE snowflake_ids.generator IN SHARE ROW EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C") THEN
        PERFORM snowflake_ids_internal.generator_taken(name);
    ELSIF (SELECT count(*) >= most FROM snowflake_ids.generator) THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = 'too many generators',
            DETAIL = format('This database has as many as snowflake_ids.max_generators allows, which is %s.', most),
            HINT = 'Drop one with snowflake_ids.generator_drop, or raise snowflake_ids.max_generators, which takes a restart.';
    END IF;
    INSERT INTO snowflake_ids.generator (name, layout, modulus, remainder, sequence_start, cache)
    VALUES (name, coalesce(layout, own_layout), modulus, remainder, sequence_start, cache);
END
$$;

/* Forced back, a tag leaves a period that has not begun. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_move(
    tag text, max_id bigint, exact boolean DEFAULT true, force boolean DEFAULT false
) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE snowflake_ids.segment AS s
    SET max_id = segment_move.max_id,
        period = greatest(CASE WHEN NOT force THEN s.period END, snowflake_ids_internal.segment_period(s.reset, s.time_zone)),
        version = snowflake_ids_internal.random_number(), update_time = clock_timestamp(),
        life = CASE WHEN force THEN snowflake_ids_internal.random_number() ELSE s.life END,
        timeline = CASE WHEN exact THEN snowflake_ids_internal.timeline() ELSE s.timeline END,
        system_identifier = CASE WHEN exact THEN snowflake_ids_internal.system_identifier() ELSE s.system_identifier END
    WHERE s.tag = segment_move.tag COLLATE "C"
$$;
