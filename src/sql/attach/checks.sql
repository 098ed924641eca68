-- The warning of a server that has not loaded the library, and rights on tags.

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
