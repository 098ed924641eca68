/* Commands on other nodes: each node runs them in a session of its own, as the role that calls, outside the caller's
   transaction. */

/* Connects to a node; NULL where that went well, else what went wrong. */
CREATE FUNCTION citus_stand_in.connect(connection text, host text, port integer, options text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reason text;
BEGIN
    PERFORM citus_stand_in.dblink_connect_u(connection, format(
        'host=%s port=%s dbname=%s user=%s connect_timeout=%s application_name=''citus_run_command gpid=%s'' options=''%s''',
        host, port, current_database(), current_user,
        greatest(current_setting('citus.node_connection_timeout')::integer / 1000, 2), pg_backend_pid(), options));
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS reason = PG_EXCEPTION_DETAIL;
    RETURN coalesce(nullif(rtrim(reason), ''), SQLERRM);
END
$$;

/* The first result of what was sent. As with Citus, an error of a later statement of several is not told of. */
CREATE FUNCTION citus_stand_in.first_result(connection text, OUT success boolean, OUT result text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    count integer := 0;
    context text;
BEGIN
    -- The library's own wait for a result takes no interrupts before PostgreSQL 17.
    WHILE citus_stand_in.dblink_is_busy(connection) = 1 LOOP
        PERFORM pg_sleep(0.002);
    END LOOP;
    FOR result IN SELECT r.value FROM citus_stand_in.dblink_get_result(connection) AS r(value text) LOOP
        count := count + 1;
    END LOOP;
    success := count <= 1;
    result := CASE WHEN success THEN coalesce(result, '') ELSE 'expected a single row in query result' END;
EXCEPTION WHEN OTHERS OR query_canceled THEN
    GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
    -- It is this session that was cancelled.
    IF SQLSTATE = '57014' AND context NOT LIKE '%dblink connection%' THEN
        RAISE;
    END IF;
    success := false;
    result := CASE WHEN SQLERRM LIKE 'remote query result rowtype does not match%'
        THEN 'expected a single column in query target' ELSE 'ERROR:  ' || split_part(SQLERRM, E'\n', 1) END;
END
$$;

/* Waits for the end of what was sent: a later statement may still be at work. */
CREATE FUNCTION citus_stand_in.finish(connection text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    FOR n IN 1 .. 20 LOOP
        PERFORM citus_stand_in.first_result(connection);
    END LOOP;
    PERFORM citus_stand_in.dblink_disconnect(connection);
END
$$;

/* Runs a command on nodes, on all at once. */
CREATE FUNCTION citus_stand_in.run(names text[], ports integer[], command text, options text DEFAULT '')
RETURNS TABLE (name text, port integer, success boolean, result text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reasons text[];
    -- What a call that was cancelled left behind is in nobody's way.
    call text := 'citus_' || pg_catalog.gen_random_uuid() || '_';
BEGIN
    IF command IS NULL THEN
        RAISE EXCEPTION 'worker array object cannot contain null values';
    END IF;
    FOR n IN 1 .. coalesce(cardinality(names), 0) LOOP
        reasons[n] := citus_stand_in.connect(call || n, names[n], ports[n], options);
        IF reasons[n] IS NULL THEN
            PERFORM citus_stand_in.dblink_send_query(call || n, command);
        END IF;
    END LOOP;
    FOR n IN 1 .. coalesce(cardinality(names), 0) LOOP
        name := names[n];
        port := ports[n];
        IF reasons[n] IS NOT NULL THEN
            success := false;
            result := format('failed to connect to %s:%s', name, port);
        ELSE
            SELECT r.success, r.result INTO success, result FROM citus_stand_in.first_result(call || n) AS r;
            IF command = '' THEN
                success := false;
                result := '';
            END IF;
            PERFORM citus_stand_in.finish(call || n);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

CREATE FUNCTION pg_catalog.citus_is_coordinator() RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT g.groupid = 0 AND EXISTS (SELECT FROM pg_dist_node) FROM pg_dist_local_group AS g $$;

/* The nodes that a command is sent to: primaries that are active. */
CREATE FUNCTION citus_stand_in.nodes(OUT id integer, OUT group_id integer, OUT name text, OUT port integer) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT n.nodeid, n.groupid, n.nodename, n.nodeport FROM pg_dist_node AS n
    WHERE n.isactive AND n.noderole = 'primary' ORDER BY n.nodename, n.nodeport
$$;

CREATE FUNCTION pg_catalog.run_command_on_workers(command text, parallel boolean DEFAULT true,
    OUT nodename text, OUT nodeport integer, OUT success boolean, OUT result text) RETURNS SETOF record
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.* FROM (SELECT array_agg(n.name) AS names, array_agg(n.port) AS ports
        FROM citus_stand_in.nodes() AS n WHERE n.group_id <> 0) AS w,
        citus_stand_in.run(w.names, w.ports, command) AS r
$$;

CREATE FUNCTION citus_stand_in.run_on_nodes(only_coordinator boolean, command text, warning boolean,
    OUT nodeid integer, OUT success boolean, OUT result text) RETURNS SETOF record
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    names text[];
    ports integer[];
    known boolean;
BEGIN
    SELECT array_agg(n.name), array_agg(n.port), coalesce(bool_or(n.group_id = (SELECT g.groupid FROM pg_dist_local_group AS g)), false)
    INTO names, ports, known
    FROM citus_stand_in.nodes() AS n WHERE n.group_id = 0 OR NOT only_coordinator;
    -- A node that is not in the metadata runs it all the same, where it is the caller's own.
    IF names IS NULL OR NOT (known OR only_coordinator) THEN
        IF only_coordinator AND NOT citus_is_coordinator() THEN
            RAISE EXCEPTION 'the coordinator is not added to the metadata'
                USING HINT = 'Add the node as a coordinator by using: SELECT citus_set_coordinator_host(''<hostname>'')';
        END IF;
        names := names || current_setting('citus.local_hostname');
        ports := ports || current_setting('port')::integer;
    END IF;
    FOR nodeid, success, result IN
        SELECT coalesce(d.nodeid, 0), r.success, r.result FROM citus_stand_in.run(names, ports, command) AS r
        LEFT JOIN pg_dist_node AS d ON d.nodename = r.name AND d.nodeport = r.port
    LOOP
        IF warning AND NOT success THEN
            RAISE WARNING 'Error on node with node id %: %', nodeid, result;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

CREATE FUNCTION pg_catalog.run_command_on_all_nodes(command text, parallel boolean DEFAULT true,
    give_warning_for_connection_errors boolean DEFAULT false,
    OUT nodeid integer, OUT success boolean, OUT result text) RETURNS SETOF record
LANGUAGE sql AS $$ SELECT * FROM citus_stand_in.run_on_nodes(false, command, give_warning_for_connection_errors) $$;

CREATE FUNCTION pg_catalog.run_command_on_coordinator(command text, give_warning_for_connection_errors boolean DEFAULT false,
    OUT nodeid integer, OUT success boolean, OUT result text) RETURNS SETOF record
LANGUAGE sql AS $$ SELECT * FROM citus_stand_in.run_on_nodes(true, command, give_warning_for_connection_errors) $$;
