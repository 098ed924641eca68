-- Checks of the arguments of attach and detach, and of the column.

DO $$
BEGIN
    IF NOT snowflake_ids_internal.is_preloaded() THEN
        RAISE WARNING USING
            MESSAGE = 'snowflake_ids issues no ids until it is loaded via shared_preload_libraries',
            DETAIL = 'This server can decode ids, but cannot issue them.',
            HINT = 'Add snowflake_ids to shared_preload_libraries and restart the server.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.check_kind(kind text, tag text, generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF kind IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'kind must not be null';
    ELSIF kind COLLATE "C" NOT IN ('snowflake', 'segment') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unrecognized kind "%s"', left(kind, 128)),
            HINT = 'Known kinds are snowflake and segment.';
    ELSIF kind COLLATE "C" = 'snowflake' AND tag IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'snowflake ids have no tag',
            DETAIL = format('The tag given is "%s".', tag),
            HINT = 'Omit the tag, or use kind => ''segment''.';
    ELSIF kind COLLATE "C" = 'segment' AND generator IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'ids of a segment tag have no generator',
            DETAIL = format('The generator given is "%s".', left(generator, 128)),
            HINT = 'Omit the generator, or use kind => ''snowflake''.';
    END IF;
    PERFORM snowflake_ids_internal.generator_keep(generator) WHERE generator IS NOT NULL;
    -- A default that gives no ids would make each insert fail.
    IF NOT snowflake_ids_internal.is_preloaded() THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'snowflake_ids must be loaded via shared_preload_libraries',
            DETAIL = 'snowflake_ids.attach() needs ids, which this server issues only if the library was loaded at server start.',
            HINT = 'Add snowflake_ids to shared_preload_libraries and restart the server.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.may_move_tag(role oid, tag text) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT has_table_privilege($1, 'snowflake_ids.segment', 'UPDATE') OR EXISTS (SELECT FROM snowflake_ids.segment_privilege p
        WHERE p.tag = $2 COLLATE "C" AND (p.grantee = 0 OR pg_has_role($1, p.grantee::oid, 'USAGE'))
            AND string_to_array(p.privileges, ',') && ARRAY['UPDATE', 'OWNER'])
$$;

CREATE FUNCTION snowflake_ids_internal.may_take_ids(role oid, tag text) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM snowflake_ids.segment_restricted r WHERE r.tag = $2 COLLATE "C")
        OR has_table_privilege($1, 'snowflake_ids.segment', 'UPDATE') OR EXISTS (SELECT FROM snowflake_ids.segment_privilege p
        WHERE p.tag = $2 COLLATE "C" AND (p.grantee = 0 OR pg_has_role($1, p.grantee::oid, 'USAGE'))
            AND string_to_array(p.privileges, ',') && ARRAY['USAGE', 'UPDATE', 'OWNER'])
$$;

CREATE FUNCTION snowflake_ids_internal.check_room_above(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF highest >= snowflake_ids_internal.column_maximum(relation, attribute) THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('no higher ids are left for column "%s" of relation "%s"', attribute, relation),
            DETAIL = format('The highest value in the column is %s, the maximum of type %s.', highest,
                (SELECT a.atttypid::regtype FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C")),
            HINT = 'First give lower ids to the rows with the highest ids.';
    END IF;
END
$$;

-- Fails if a default's next id is not above the ids of a column.
CREATE FUNCTION snowflake_ids_internal.check_snowflake_above(relation regclass, attribute name, highest bigint, expression text)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    following bigint;
BEGIN
    EXECUTE format('SELECT %s', expression) INTO following;
    IF following <= highest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" has ids above the next id', attribute, relation),
            DETAIL = format('The highest value is %s; %s returned %s.', highest, replace(expression COLLATE "C", '::text', ''), following),
            HINT = snowflake_ids_internal.other_layout_hint(relation::text, attribute, highest, expression);
    END IF;
END
$$;
