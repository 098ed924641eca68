/* Runs a statement for another node. Citus transmits only an error's message, so the message contains the detail and the
   hint, too. */
CREATE FUNCTION snowflake_ids_internal.citus_run(command text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    message text;
    detail  text;
    hint    text;
BEGIN
    EXECUTE command;
    RETURN '';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE EXCEPTION '%', concat_ws(' ', message || '.', nullif(detail, ''), nullif(hint, '')) USING ERRCODE = SQLSTATE;
END
$$;

/* Returns a hash of this extension's defaults in distributed tables. The hash must be the same on all nodes. The body of the
   function is not checked, because the table is there only with Citus. */
CREATE FUNCTION snowflake_ids_internal.citus_defaults() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off
SET check_function_bodies = off AS $$
    SELECT md5(coalesce(string_agg(format('%s.%s: %s', p.logicalrelid, a.attname, w.written), E'\n'
        ORDER BY p.logicalrelid::text COLLATE "C", a.attname), ''))
    FROM pg_catalog.pg_dist_partition AS p JOIN pg_attribute AS a ON a.attrelid = p.logicalrelid AND a.atthasdef,
        LATERAL (SELECT snowflake_ids_internal.default_of(p.logicalrelid, a.attname)) AS w (written)
    WHERE snowflake_ids_internal.own_default(w.written) IS NOT NULL
$$;

/* Returns the definitions that all nodes must have: named generators, rights on restricted tags, and series that give numbers
   on all nodes. Roles are listed by name. */
CREATE FUNCTION snowflake_ids_internal.citus_definitions() RETURNS jsonb
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object('generators', (SELECT coalesce(jsonb_agg(g), '[]') FROM snowflake_ids.generator AS g),
        'rights', (SELECT coalesce(jsonb_agg(jsonb_build_array(r.tag, p.grantee::text, p.privileges) ORDER BY r.tag, p.grantee::text COLLATE "C"), '[]')
            FROM snowflake_ids.segment_restricted AS r LEFT JOIN snowflake_ids.segment_privilege AS p ON p.tag = r.tag),
        'series', (SELECT coalesce(jsonb_agg(to_jsonb(s) || jsonb_build_object('privileges',
                (SELECT coalesce(jsonb_agg(jsonb_build_array(p.grantee::text, p.privileges) ORDER BY p.grantee::text COLLATE "C"), '[]')
                FROM snowflake_ids.series_privilege AS p WHERE p.series = s.id)) ORDER BY s.name), '[]')
            FROM snowflake_ids.series AS s WHERE s.kind <> 'gapless' OR s.scope = 'shard'))
$$;

/* Copies the coordinator's definitions to this node. Generators and the series of a registry are added, but not changed. No
   restricted tag or series becomes open. Roles that do not exist on this node get no rights. */
CREATE FUNCTION snowflake_ids_internal.citus_take(definitions jsonb) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO snowflake_ids.generator
    SELECT g.* FROM jsonb_populate_recordset(NULL::snowflake_ids.generator, definitions -> 'generators') AS g
    ON CONFLICT (name) DO NOTHING;

    INSERT INTO snowflake_ids.segment_restricted AS r (tag)
    SELECT DISTINCT g ->> 0 FROM jsonb_array_elements(definitions -> 'rights') AS g ON CONFLICT DO NOTHING;
    DELETE FROM snowflake_ids.segment_privilege AS p
    WHERE p.tag IN (SELECT g ->> 0 FROM jsonb_array_elements(definitions -> 'rights') AS g) AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(definitions -> 'rights') AS g WHERE g ->> 0 = p.tag AND g ->> 1 = p.grantee::text);
    INSERT INTO snowflake_ids.segment_privilege AS p (tag, grantee, privileges)
    SELECT w.tag, w.grantee, w.privileges
    FROM (SELECT g ->> 0, CASE WHEN g ->> 1 = '-' THEN 0::regrole ELSE to_regrole(g ->> 1) END, g ->> 2
          FROM jsonb_array_elements(definitions -> 'rights') AS g) AS w (tag, grantee, privileges)
    WHERE w.grantee IS NOT NULL
    ON CONFLICT (tag, grantee) DO UPDATE SET privileges = excluded.privileges WHERE p.privileges <> excluded.privileges;

    -- Of distributed series there are those of the coordinator, and no others.
    DELETE FROM snowflake_ids.series AS s
    WHERE s.scope = 'shard' AND NOT EXISTS (SELECT FROM jsonb_array_elements(definitions -> 'series') AS w WHERE (w ->> 'id')::bigint = s.id);
    UPDATE snowflake_ids.series AS s
    SET name = w.name, max_value = w.max_value, time_zone = w.time_zone, format = w.format, description = w.description
    FROM jsonb_populate_recordset(NULL::snowflake_ids.series, definitions -> 'series') AS w
    WHERE s.scope = 'shard' AND w.id = s.id AND (s.name, s.max_value, s.time_zone, s.format, s.description)
        IS DISTINCT FROM (w.name, w.max_value, w.time_zone, w.format, w.description);
    WITH made AS (
        INSERT INTO snowflake_ids.series AS s
        SELECT w.* FROM jsonb_array_elements(definitions -> 'series') AS e,
            jsonb_populate_record(NULL::snowflake_ids.series, CASE WHEN e ->> 'scope' = 'shard' THEN e
                ELSE e || jsonb_build_object('id', snowflake_ids_internal.random_number()) END) AS w
        ON CONFLICT DO NOTHING RETURNING s.name, s.kind
    )
    SELECT count(snowflake_ids_internal.series_make_sections(m.name)) FROM made AS m WHERE m.kind = 'monotonic';
    UPDATE snowflake_ids.series AS s SET restricted = true
    FROM jsonb_array_elements(definitions -> 'series') AS w WHERE w ->> 'name' = s.name AND (w ->> 'restricted')::boolean AND NOT s.restricted;
    DELETE FROM snowflake_ids.series_privilege AS p
    USING snowflake_ids.series AS s, jsonb_array_elements(definitions -> 'series') AS w
    WHERE p.series = s.id AND w ->> 'name' = s.name AND (w ->> 'restricted')::boolean
        AND NOT EXISTS (SELECT FROM jsonb_array_elements(w -> 'privileges') AS g WHERE g ->> 0 = p.grantee::text);
    INSERT INTO snowflake_ids.series_privilege AS p (series, grantee, privileges)
    SELECT w.series, w.grantee, w.privileges
    FROM (SELECT s.id, CASE WHEN g ->> 0 = '-' THEN 0::regrole ELSE to_regrole(g ->> 0) END, g ->> 1
          FROM jsonb_array_elements(definitions -> 'series') AS w JOIN snowflake_ids.series AS s ON s.name = w ->> 'name',
              jsonb_array_elements(w -> 'privileges') AS g) AS w (series, grantee, privileges)
    WHERE w.grantee IS NOT NULL
    ON CONFLICT (series, grantee) DO UPDATE SET privileges = excluded.privileges WHERE p.privileges <> excluded.privileges;
    SELECT ''
$$;

/* Returns this node's report for the other nodes of its cluster, in JSON. */
CREATE FUNCTION snowflake_ids_internal.citus_report() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT json_build_object('datacenter_id', s.datacenter_id, 'worker_id', s.worker_id, 'layout', s.layout, 'state', s.state,
        'identity', coalesce(r.identity, snowflake_ids_internal.registry_identity()),
        'timeline', coalesce(r.timeline, snowflake_ids_internal.registry_timeline()::text), 'registry', r.server,
        'leased_from', CASE WHEN s.scope = 'this server only' THEN s.leased_from END,
        'defaults', CASE WHEN to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN snowflake_ids_internal.citus_defaults() END,
        'generators', (SELECT md5(coalesce(string_agg(format('%s: %s', g.name, g.layout), E'\n' ORDER BY g.name), ''))
            FROM snowflake_ids.generator AS g),
        'rights', md5((d.defined -> 'rights')::text),
        -- Rights on a distributed series are left out, because Citus propagates them.
        'series', (SELECT md5(coalesce(string_agg((CASE WHEN w ->> 'scope' = 'shard' THEN w - '{step,max_step,privileges}'::text[]
                ELSE w - '{id,step,max_step,description}'::text[] END)::text, E'\n'), ''))
            FROM jsonb_array_elements(d.defined -> 'series') AS w),
        'failure', (SELECT json_build_object('server', h.server, 'at', h.last_failure, 'error', left(h.error, 1000))
            FROM snowflake_ids.registry_status AS h WHERE h.state = 'failing' ORDER BY h.position LIMIT 1))::text
    FROM snowflake_ids.status AS s, snowflake_ids_internal.citus_definitions() AS d (defined),
         (SELECT string_agg(identity, ',' ORDER BY position) AS identity, string_agg(timeline::text, ',' ORDER BY position) AS timeline,
                 string_agg(server, ',' ORDER BY position) AS server
          FROM snowflake_ids.registry_server) AS r
$$;

COMMENT ON FUNCTION snowflake_ids.citus_status IS 'the nodes of this Citus cluster, with worker id, layout, registry, version and problem';

/* Creates this node's user mapping for a registry. Returns errors instead of raising them, because the server would log a
   failed statement, which contains the password. */
CREATE FUNCTION snowflake_ids_internal.citus_map(server name, options text[]) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    owner name;
BEGIN
    PERFORM set_config('pg_stat_statements.track_utility', 'off', true);
    SELECT pg_get_userbyid(c.relowner) INTO owner FROM pg_class AS c WHERE c.oid = 'snowflake_ids.segment'::regclass;
    IF NOT EXISTS (SELECT FROM pg_user_mappings AS m WHERE m.srvname = server COLLATE "C" AND m.usename = owner COLLATE "C"
        AND coalesce(m.umoptions, '{}') = options COLLATE "C") THEN
        EXECUTE format('DROP USER MAPPING IF EXISTS FOR %I SERVER %I', owner, server);
        EXECUTE format('CREATE USER MAPPING FOR %I SERVER %I %s', owner, server,
            (SELECT 'OPTIONS (' || string_agg(format('%I %L', o.option_name, o.option_value), ', ') || ')'
             FROM pg_options_to_table(options) AS o));
    END IF;
    RETURN '';
EXCEPTION WHEN OTHERS OR query_canceled THEN
    RETURN format('its user mapping was not made: %s', SQLERRM);
END
$$;

/* Records leases that nodes already have from other sources, so that no other node gets the same worker id. The node takes
   over its recorded lease by the lease token. */
CREATE FUNCTION snowflake_ids_internal.citus_hold(leases jsonb) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') <> 'remote_apply';
    INSERT INTO snowflake_ids.worker_lease AS w (datacenter_id, worker_id, token, expires_at, host, port)
    -- A longer lease is cut to this server's lease duration. Two nodes without a registry may have chosen the same worker id;
    -- only one of them keeps it.
    SELECT DISTINCT ON (l.datacenter_id, l.worker_id) l.datacenter_id, l.worker_id, l.token,
        least(l.expires_at, clock_timestamp() + current_setting('snowflake_ids.lease_duration')::interval), l.host, l.port
    FROM jsonb_to_recordset(leases) AS l(datacenter_id integer, worker_id integer, token bigint, expires_at timestamptz, host text, port integer)
    WHERE l.expires_at > clock_timestamp()
    ORDER BY l.datacenter_id, l.worker_id
    ON CONFLICT (datacenter_id, worker_id) DO UPDATE
    SET token = excluded.token, expires_at = excluded.expires_at, leased_at = excluded.leased_at, host = excluded.host, port = excluded.port,
        released_at = NULL
    WHERE w.expires_at <= clock_timestamp()
$$;

CREATE PROCEDURE snowflake_ids.use_citus(server name DEFAULT NULL)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT snowflake_ids_internal.citus_unite(server::text) $$;
COMMENT ON PROCEDURE snowflake_ids.use_citus IS 'makes the nodes of this Citus cluster share a registry: this database, or the database of a foreign server';

/* Joins a new worker to its cluster, in the transaction that creates the extension on the worker. If the coordinator creates
   the extension at the same time, the worker cannot see it there, and joins only by use_citus. */
CREATE FUNCTION snowflake_ids_internal.citus_join() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_local_group') IS NULL THEN
        RETURN;
    ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_dist_local_group AS g WHERE g.groupid <> 0) THEN
        RETURN;
    ELSIF NOT snowflake_ids_internal.citus_may_join() THEN
        RAISE EXCEPTION 'another database leases the worker id of this server';
    END IF;
    PERFORM snowflake_ids.use_registry('citus_coordinator');
    -- Citus then creates tables here. Their defaults may name the coordinator's generators and series.
    BEGIN
        PERFORM snowflake_ids_internal.citus_take(r.result::jsonb)
        FROM pg_catalog.run_command_on_coordinator('SELECT snowflake_ids_internal.citus_definitions()') AS r WHERE r.success;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'generators, series and rights of the cluster are not on this worker yet' USING
            DETAIL = upper(left(SQLERRM, 1)) || substr(SQLERRM, 2) || '.',
            HINT = 'On the coordinator: CALL snowflake_ids.use_citus().';
    END;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'this worker of a Citus cluster uses no registry yet, and gives no ids' USING
        DETAIL = upper(left(SQLERRM, 1)) || substr(SQLERRM, 2) || '.',
        HINT = 'On the coordinator: CALL snowflake_ids.use_citus().';
END
$$;
