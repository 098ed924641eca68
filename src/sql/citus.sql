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

/* Runs a statement on each active worker of a Citus cluster. Each worker runs the statement over a connection of Citus, as
   the current user, in a transaction of its own. If the statement fails on some nodes, the other nodes keep their changes. */
CREATE FUNCTION snowflake_ids_internal.citus_run_on_workers(command text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    failed text;
    failures bigint;
BEGIN
    SELECT count(*), string_agg(format('node %s (%s:%s): %s', n.nodeid, r.nodename, r.nodeport, left(coalesce(r.result, 'no answer'), 1000)), E'\n'
                                ORDER BY n.nodeid)
    INTO failures, failed
    FROM pg_catalog.run_command_on_workers(format('SELECT snowflake_ids_internal.citus_run(%L)', command)) AS r
        LEFT JOIN pg_catalog.pg_dist_node AS n USING (nodename, nodeport)
    WHERE r.success IS NOT TRUE;
    IF failures > 0 THEN
        RAISE EXCEPTION '% of the cluster''s workers did not make the change', failures USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = failed,
            HINT = 'Correct the cause on each of these workers, and repeat the call. The call keeps the changes of other nodes, or makes them again.';
    END IF;
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

/* Fails if this database belongs to no cluster. */
CREATE FUNCTION snowflake_ids_internal.citus_check() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_node') IS NULL OR to_regclass('pg_catalog.pg_dist_local_group') IS NULL THEN
        RAISE EXCEPTION 'this database does not have Citus' USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'There is no table pg_dist_node.',
            HINT = 'Run CREATE EXTENSION citus first, or call snowflake_ids.use_registry to share a registry without Citus.';
    END IF;
END
$$;

/* Returns the nodes of Citus' catalog that can issue ids, without standbys. Columns that some versions lack are read through
   JSON. */
CREATE FUNCTION snowflake_ids_internal.citus_nodes()
RETURNS TABLE (node_id integer, node_name text, node_port integer, group_id integer, is_active boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT n.nodeid, n.nodename::text, n.nodeport, n.groupid, coalesce((to_jsonb(n) ->> 'isactive')::boolean, true)
    FROM pg_catalog.pg_dist_node AS n
    WHERE coalesce(to_jsonb(n) ->> 'noderole', 'primary') = 'primary'
    ORDER BY n.groupid, n.nodeid;
END
$$;

/* Returns each node's problem, if any. The first query to a node also works if the node lacks the extension. */
CREATE FUNCTION snowflake_ids_internal.citus_look()
RETURNS TABLE (node_id integer, node_name text, node_port integer, group_id integer, worker_id integer, layout text, registry text,
               version text, problem text, may_pass boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    nodes text;
BEGIN
    SELECT coalesce(json_agg(json_build_object('node_id', n.node_id, 'node_name', n.node_name, 'node_port', n.node_port, 'group_id', n.group_id,
        'is_active', n.is_active, 'version', CASE WHEN v.success THEN left(v.result, 100) END,
        'report', CASE WHEN r.success THEN left(r.result, 10000) END,
        'error', left(CASE WHEN v.success THEN r.result ELSE v.result END, 1000))), '[]')::text
    INTO nodes
    FROM snowflake_ids_internal.citus_nodes() AS n
        LEFT JOIN pg_catalog.run_command_on_all_nodes(
            $command$SELECT coalesce((SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake_ids'), '')$command$
        ) AS v ON v.nodeid = n.node_id
        LEFT JOIN pg_catalog.run_command_on_all_nodes('SELECT snowflake_ids_internal.citus_report()') AS r ON r.nodeid = n.node_id;
    RETURN QUERY SELECT j.* FROM snowflake_ids_internal.citus_judge(nodes) AS j;
END
$$;

CREATE FUNCTION snowflake_ids.citus_status()
RETURNS TABLE (node_id integer, node_name text, node_port integer, group_id integer, worker_id integer, layout text, registry text,
               version text, problem text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.citus_check();
    RETURN QUERY SELECT l.node_id, l.node_name, l.node_port, l.group_id, l.worker_id, l.layout, l.registry, l.version,
        -- The keys concern all nodes, so they are reported once, for the coordinator.
        coalesce(l.problem, CASE WHEN l.group_id = 0 THEN (SELECT left(string_agg(format('Citus does not check key "%s" of relation "%s" '
                'across shards, and %s. Hint: %s.', k.key, k.key_of, k.fault, k.hint), ' ' ORDER BY k.key_of::text COLLATE "C", k.key), 10000)
            FROM snowflake_ids_internal.citus_keys(NULL) AS k WHERE k.fault IS NOT NULL) END)
    FROM snowflake_ids_internal.citus_look() AS l ORDER BY l.group_id, l.node_id;
END
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

/* Makes this node use the registry with this identity, if the node does not use that registry yet. Fails if the node uses
   another registry, because other nodes may use the other registry, too. */
CREATE FUNCTION snowflake_ids_internal.citus_use(server name, identity text, timeline bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    used  record;
    found json;
BEGIN
    SELECT string_agg(r.identity, ',') AS identity, string_agg(r.server, ',') AS server INTO used FROM snowflake_ids.registry_server AS r;
    IF used.identity <> identity COLLATE "C" THEN
        RAISE EXCEPTION 'it uses another registry, "%"', used.server USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    -- On this node the name may lead to another server than on the coordinator, or to a former primary.
    found := snowflake_ids_internal.registry_look(coalesce(used.server, server));
    IF found ->> 'identity' <> identity COLLATE "C" THEN
        RAISE EXCEPTION 'registry "%" as seen from this node is not the registry of that name on the coordinator', server USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF (found ->> 'timeline')::bigint < timeline THEN
        RAISE EXCEPTION 'registry "%" as seen from this node is a former primary: it is on timeline %, but timeline % was seen before', server, found ->> 'timeline', timeline
            USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF used.server IS NOT NULL THEN
        UPDATE snowflake_ids.registry_server AS r SET timeline = (found ->> 'timeline')::integer
        WHERE r.identity = identity COLLATE "C" AND r.timeline < (found ->> 'timeline')::integer;
        RETURN NULL;
    END IF;
    -- Another session may hold the locks, because it also sets the registry.
    PERFORM set_config('lock_timeout', '20s', true);
    PERFORM snowflake_ids.use_registry(server);
    RETURN server;
END
$$;

/* Runs a statement on the active workers, or on the coordinator alone. Returns errors and unexpected results as JSON; the
   keys are node ids. */
CREATE FUNCTION snowflake_ids_internal.citus_tell(command text, on_workers boolean) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    failed jsonb;
BEGIN
    IF on_workers THEN
        SELECT jsonb_object_agg(n.node_id, left(coalesce(w.result, 'no answer'), 1000)) INTO failed
        FROM pg_catalog.run_command_on_workers(command) AS w
            JOIN snowflake_ids_internal.citus_nodes() AS n ON (n.node_name, n.node_port) = (w.nodename, w.nodeport)
        WHERE w.success IS NOT TRUE OR w.result NOT IN ('', 'DO');
    ELSE
        SELECT jsonb_object_agg(c.nodeid, left(coalesce(c.result, 'no answer'), 1000)) INTO failed
        FROM pg_catalog.run_command_on_coordinator(command) AS c WHERE c.success IS NOT TRUE;
    END IF;
    RETURN coalesce(failed, '{}');
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
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    /* The limit of the wait for worker ids. */
    deadline timestamptz := clock_timestamp() + interval '30 s';
    outside  boolean := coalesce(server COLLATE "C", 'citus_coordinator') <> 'citus_coordinator';
    used     text;
    identity text;
    options  text[];
    timeline bigint;
    there    json;
    version  text;
    place    text;
    old      text;
    told     jsonb;
    idle     jsonb;
    mapped   jsonb;
    failed   text[];
    passes   boolean;
    nodes    bigint;
    workers  text;
    held     jsonb;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF NOT (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user) THEN
        RAISE EXCEPTION 'permission denied to set the registry of a cluster' USING
            ERRCODE = 'insufficient_privilege',
            DETAIL = 'The registry is set on all nodes, and background workers there connect to it as the owner of the extension.',
            HINT = 'CALL snowflake_ids.use_citus() as a superuser.';
    END IF;
    PERFORM snowflake_ids_internal.citus_check();
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'cannot set the registry of a cluster at isolation level "%"', current_setting('transaction_isolation') USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'The transaction''s snapshot would not show changes that nodes make in the meantime.',
            HINT = 'Run the CALL outside of a transaction block, with default_transaction_isolation = ''read committed''.';
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_dist_local_group AS g WHERE g.groupid <> 0) THEN
        SELECT format(': %s, port %s', n.node_name, n.node_port) INTO place FROM snowflake_ids_internal.citus_nodes() AS n WHERE n.group_id = 0;
        RAISE EXCEPTION 'this database is a worker of a Citus cluster' USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'The coordinator sets the registry of all nodes of its cluster.',
            HINT = format('CALL snowflake_ids.use_citus() on the coordinator%s.', place);
    ELSIF NOT EXISTS (SELECT FROM snowflake_ids_internal.citus_nodes() AS n WHERE n.group_id = 0) THEN
        RAISE EXCEPTION 'the workers of this Citus cluster do not know where the coordinator is' USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'pg_dist_node has no row of group 0.',
            HINT = 'Run SELECT citus_set_coordinator_host(''host'', port), with a host name by which workers reach this server.';
    ELSIF snowflake_ids_internal.registry_is_busy() THEN
        RAISE EXCEPTION 'cannot change the registry in a transaction that has changed segment tags' USING
            ERRCODE = 'active_sql_transaction',
            HINT = 'Commit this transaction first, and then CALL snowflake_ids.use_citus().';
    ELSIF (SELECT e.xmin = pg_current_xact_id_if_assigned()::xid FROM pg_extension AS e WHERE e.extname = 'snowflake_ids') THEN
        -- Sessions on the workers would wait for Citus' own sessions. Citus' sessions create the extension on the workers, and
        -- end only with this transaction.
        RAISE EXCEPTION 'cannot set the registry of a cluster in the transaction that creates the extension' USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'The other nodes do not see the extension yet.',
            HINT = 'Commit this transaction first, and then CALL snowflake_ids.use_citus().';
    END IF;
    SELECT string_agg(r.server, ',' ORDER BY r.position) INTO used FROM snowflake_ids.registry_server AS r;
    IF outside THEN
        -- Citus copies foreign servers to all nodes, but not user mappings. Mappings of other roles are ignored.
        SELECT coalesce(m.umoptions, '{}') INTO options
        FROM pg_user_mappings AS m JOIN pg_class AS c ON c.oid = 'snowflake_ids.segment'::regclass
        WHERE m.srvname = server COLLATE "C" AND m.umuser IN (c.relowner, 0) ORDER BY m.umuser DESC LIMIT 1;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'foreign server "%" does not exist, or has no user mapping for the owner of the extension', server USING
                ERRCODE = 'undefined_object',
                HINT = 'On the coordinator, run CREATE SERVER ... FOREIGN DATA WRAPPER postgres_fdw, and CREATE USER MAPPING for the owner of the table '
                       'snowflake_ids.segment. Or CALL snowflake_ids.use_citus() without an argument: '
                       'the coordinator is then the registry.';
        END IF;
    ELSIF used IS NOT NULL THEN
        RAISE EXCEPTION 'the coordinator takes its own ids from registry "%"', used USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'A database that uses a registry cannot itself be a registry.',
            HINT = format('To share that registry, CALL snowflake_ids.use_citus(%L). '
                'To make the coordinator the registry, first SELECT snowflake_ids.use_local_registry().', used);
    END IF;
    FOR place IN SELECT format('%s (%s:%s)', n.node_id, n.node_name, n.node_port) FROM snowflake_ids_internal.citus_nodes() AS n
        WHERE NOT n.is_active
    LOOP
        RAISE NOTICE 'skipping node %, which is not active', place USING
            HINT = 'CALL snowflake_ids.use_citus() again after SELECT citus_activate_node(...).';
    END LOOP;

    IF outside THEN
        there := snowflake_ids_internal.registry_look(server);
        identity := there ->> 'identity';
        timeline := (there ->> 'timeline')::bigint;
    ELSE
        identity := snowflake_ids_internal.registry_identity();
        timeline := snowflake_ids_internal.registry_timeline();
    END IF;
    -- Nodes would change to another registry one after another. A node that has changed could get the worker id or the numbers
    -- of a node that has not.
    SELECT string_agg(format('node %s (%s:%s): %s', n.node_id, n.node_name, n.node_port, left(r.result, 1000)), E'\n' ORDER BY n.node_id) INTO old
    FROM snowflake_ids_internal.citus_nodes() AS n
        JOIN pg_catalog.run_command_on_all_nodes(format($command$
            SELECT coalesce(pg_catalog.string_agg(pg_catalog.format('registry "%%s"', r.server), ', ' ORDER BY r.position)
                            FILTER (WHERE r.identity OPERATOR(pg_catalog.<>) %L::pg_catalog.text), '')
            FROM snowflake_ids.registry_server AS r$command$, identity)) AS r ON r.nodeid = n.node_id
    WHERE n.is_active AND r.success AND r.result <> '';
    IF old IS NOT NULL THEN
        RAISE EXCEPTION 'some nodes of the cluster use another registry' USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = old,
            HINT = 'Stop all inserts, SELECT snowflake_ids.use_local_registry() on each of these nodes, '
                   'and CALL snowflake_ids.use_citus again before inserts resume.';
    END IF;

    -- The workers lack this extension if it was created on the coordinator before the extension citus.
    SELECT e.extversion INTO version FROM pg_extension AS e WHERE e.extname = 'snowflake_ids';
    told := snowflake_ids_internal.citus_tell(format($command$DO $do$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake_ids') THEN
            PERFORM pg_catalog.set_config('citus.enable_ddl_propagation', 'off', true);
            CREATE EXTENSION snowflake_ids VERSION %L;
        END IF;
    END$do$ $command$, version), true);

    IF outside THEN
        -- A worker without this function would log the statement, which contains the password.
        SELECT string_agg(format('node %s (%s:%s)', n.node_id, n.node_name, n.node_port), E'\n' ORDER BY n.node_id) INTO old
        FROM pg_catalog.run_command_on_workers(
                $command$SELECT pg_catalog.to_regprocedure('snowflake_ids_internal.citus_map(pg_catalog.name, pg_catalog.text[])') IS NULL$command$) AS w
            JOIN snowflake_ids_internal.citus_nodes() AS n ON (n.node_name, n.node_port) = (w.nodename, w.nodeport)
        WHERE w.success AND w.result <> 'f';
        IF old IS NOT NULL THEN
            RAISE EXCEPTION 'nodes of the cluster do not have this version of the extension' USING
                ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = old,
                HINT = 'Install the same version on these nodes, run ALTER EXTENSION snowflake_ids UPDATE there, and CALL snowflake_ids.use_citus() again.';
        END IF;
        -- These settings keep the statement out of the log, whatever its errors or duration. They take effect before the
        -- function is called.
        mapped := snowflake_ids_internal.citus_tell(format($command$SELECT CASE WHEN pg_catalog.set_config('log_min_error_statement', 'panic', false) IS NOT NULL
            AND pg_catalog.set_config('log_min_duration_statement', '-1', false) IS NOT NULL
            AND pg_catalog.set_config('log_min_duration_sample', '-1', false) IS NOT NULL
            AND pg_catalog.set_config('log_transaction_sample_rate', '0', false) IS NOT NULL
            THEN snowflake_ids_internal.citus_map(%L, %L) END$command$, server, options), true);
        -- Each node commits in its own transaction, so that other nodes see the change before this transaction ends.
        told := told || snowflake_ids_internal.citus_tell(
            format('SELECT snowflake_ids_internal.citus_run(%L)',
            format('SELECT snowflake_ids_internal.citus_use(%L, %L, %L)', server, identity, timeline)), false);
    ELSE
        -- A new registry knows no leases. The nodes' leases are committed before any node asks for a lease, and stay if this
        -- transaction fails.
        SELECT jsonb_agg(r.result::jsonb || jsonb_build_object('host', n.node_name, 'port', n.node_port)) INTO held
        FROM pg_catalog.run_command_on_all_nodes('SELECT snowflake_ids_internal.worker_held()') AS r
            JOIN snowflake_ids_internal.citus_nodes() AS n ON n.node_id = r.nodeid
        WHERE r.success AND r.result <> '';
        held := snowflake_ids_internal.citus_tell(format('SELECT snowflake_ids_internal.citus_hold(%L)', coalesce(held, '[]')), false);
        IF held <> '{}' THEN
            RAISE EXCEPTION 'could not record the worker ids of the cluster''s nodes' USING
                ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = (SELECT string_agg(format('node %s: %s', h.key, h.value), E'\n' ORDER BY h.key) FROM jsonb_each_text(held) AS h),
                HINT = 'Correct the cause on each of these nodes, and CALL snowflake_ids.use_citus() again.';
        END IF;
    END IF;
    -- The other nodes join the registry only after the coordinator has joined, and so gives no ids of its own any more.
    IF NOT EXISTS (SELECT FROM snowflake_ids_internal.citus_nodes() AS n WHERE n.group_id = 0 AND told ? n.node_id::text) THEN
        told := told || snowflake_ids_internal.citus_tell(format('SELECT snowflake_ids_internal.citus_run(%L)',
            format('SELECT snowflake_ids_internal.citus_use(%L, %L, %L)', coalesce(server, 'citus_coordinator'), identity, timeline)), true);
    END IF;
    told := told || coalesce(mapped, '{}');
    -- Defaults on workers may name generators and series, so these are copied. Rights are copied, too, so that a tag that is
    -- restricted here is restricted on the workers.
    told := snowflake_ids_internal.citus_tell(
        format('SELECT snowflake_ids_internal.citus_take(%L)', snowflake_ids_internal.citus_definitions()), true) || told;

    -- The registry usually leases worker ids within about a second.
    LOOP
        -- Each node first issues an id, because a server acquires its worker id when it issues its first id.
        SELECT jsonb_object_agg(r.nodeid, 'it gives no id: ' || left(coalesce(r.result, 'no answer'), 1000)) FILTER (WHERE r.success IS NOT TRUE)
        INTO idle FROM pg_catalog.run_command_on_all_nodes('SELECT pg_catalog.snowflake_nextval()') AS r;
        SELECT count(*), array_agg(format('node %s (%s:%s): %s', p.node_id, p.node_name, p.node_port, p.problem) ORDER BY p.node_id)
                   FILTER (WHERE p.problem IS NOT NULL),
               coalesce(bool_or(p.may_pass) FILTER (WHERE p.problem IS NOT NULL), false),
               string_agg(p.worker_id::text, ', ' ORDER BY p.worker_id)
        INTO nodes, failed, passes, workers
        FROM (SELECT l.node_id, l.node_name, l.node_port, l.worker_id,
                     (l.problem IS NULL OR l.may_pass) AND told ->> l.node_id::text IS NULL AS may_pass,
                     CASE WHEN told ->> l.node_id::text IS NOT NULL THEN told ->> l.node_id::text WHEN l.problem IS NULL OR l.may_pass THEN
                              coalesce(idle ->> l.node_id::text, l.problem, CASE WHEN l.worker_id IS NULL THEN 'it has no worker id yet' END)
                          ELSE l.problem END AS problem
              FROM snowflake_ids_internal.citus_look() AS l JOIN snowflake_ids_internal.citus_nodes() AS n USING (node_id)
              WHERE n.is_active) AS p;
        EXIT WHEN failed IS NULL;
        IF NOT passes OR clock_timestamp() > deadline THEN
            RAISE EXCEPTION '% of % nodes of the cluster cannot issue unique ids', cardinality(failed), nodes USING
                ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = array_to_string(failed, E'\n'),
                HINT = 'Correct the cause on each of these nodes, and CALL snowflake_ids.use_citus() again; the other nodes are not affected.';
        END IF;
        PERFORM pg_sleep(0.5);
    END LOOP;
    IF NOT outside AND NOT EXISTS (SELECT FROM snowflake_ids_internal.citus_nodes() AS n WHERE NOT n.is_active) THEN
        -- All nodes have joined, and each kept its worker id.
        UPDATE snowflake_ids.worker_lease AS w SET former_until = clock_timestamp() WHERE w.former_until > clock_timestamp();
    END IF;
    RAISE NOTICE '% nodes use one registry, each with a worker id of its own', nodes USING
        DETAIL = format('Worker ids: %s.', workers);
END
$$;
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
