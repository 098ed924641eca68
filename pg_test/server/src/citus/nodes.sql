/* Nodes: adding and removing them, and what each knows of the others. */

/* What only the coordinator does. */
CREATE FUNCTION citus_stand_in.check_coordinator() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT g.groupid <> 0 FROM pg_dist_local_group AS g) THEN
        RAISE EXCEPTION 'operation is not allowed on this node'
            USING HINT = 'Connect to the coordinator and run it again.';
    END IF;
END
$$;

/* Runs statements on a node in one transaction, by a session whose changes go no further; an error of its is one here. */
CREATE FUNCTION citus_stand_in.tell(host text, port integer, statements text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    connection text := 'citus_' || pg_catalog.gen_random_uuid();
    reason text;
BEGIN
    reason := citus_stand_in.connect(connection, host, port, '-c citus.enable_ddl_propagation=off');
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION 'connection to the remote node %@%:% failed with the following error: %',
            current_user, host, port, reason;
    END IF;
    BEGIN
        -- The last one must give no rows.
        PERFORM citus_stand_in.dblink_exec(connection, statements || E';\nRESET work_mem');
    EXCEPTION WHEN OTHERS THEN
        PERFORM citus_stand_in.dblink_disconnect(connection);
        RAISE;
    END;
    PERFORM citus_stand_in.dblink_disconnect(connection);
END
$$;

/* The same on all workers. */
CREATE FUNCTION citus_stand_in.tell_workers(statements text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$ SELECT citus_stand_in.tell(n.name, n.port, statements) FROM citus_stand_in.nodes() AS n WHERE n.group_id <> 0 $$;

/* What makes a node know its group and all nodes. */
CREATE FUNCTION citus_stand_in.metadata_for(group_id integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('UPDATE pg_catalog.pg_dist_local_group SET groupid = %s; DELETE FROM pg_catalog.pg_dist_node;
        INSERT INTO pg_catalog.pg_dist_node
        SELECT * FROM pg_catalog.json_populate_recordset(NULL::pg_catalog.pg_dist_node, %L);',
        group_id, (SELECT json_agg(n) FROM pg_dist_node AS n))
$$;

/* Lets the workers know all nodes. One that cannot be reached learns of them by the next call: Citus' maintenance daemon
   tries again by itself. */
CREATE FUNCTION citus_stand_in.sync() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    node record;
BEGIN
    FOR node IN SELECT * FROM citus_stand_in.nodes() AS n WHERE n.group_id <> 0 LOOP
        BEGIN
            PERFORM citus_stand_in.tell(node.name, node.port, citus_stand_in.metadata_for(node.group_id));
        EXCEPTION WHEN OTHERS THEN
            RAISE NOTICE 'node % is out of sync: %', node.id, SQLERRM;
        END;
    END LOOP;
END
$$;

/* What a node that is added is made to have: extensions, foreign servers, tables, in this order. */
CREATE FUNCTION citus_stand_in.objects_for(group_id integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(o.command, E';\n' ORDER BY o.rank, o.id)
    FROM (
        SELECT 1, e.oid, citus_stand_in.extension_command(e.oid) FROM pg_extension AS e WHERE e.extname NOT IN ('plpgsql', 'dblink')
        UNION ALL
        SELECT 2, s.oid, citus_stand_in.server_command(s.oid) FROM pg_foreign_server AS s
        UNION ALL
        SELECT 3, p.logicalrelid, citus_stand_in.table_commands(p.logicalrelid, group_id) FROM pg_dist_partition AS p
    ) AS o(rank, id, command)
$$;

CREATE FUNCTION pg_catalog.citus_add_node(nodename text, nodeport integer, groupid integer DEFAULT -1,
    noderole pg_catalog.noderole DEFAULT 'primary', nodecluster name DEFAULT 'default') RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    added pg_dist_node;
BEGIN
    PERFORM citus_stand_in.check_coordinator();
    SELECT n.* INTO added FROM pg_dist_node AS n
    WHERE n.nodename = citus_add_node.nodename AND n.nodeport = citus_add_node.nodeport;
    IF FOUND THEN
        RETURN added.nodeid;
    END IF;
    INSERT INTO pg_dist_node AS n (groupid, nodename, nodeport, noderole, nodecluster, hasmetadata, metadatasynced)
    SELECT CASE WHEN citus_add_node.groupid < 0 THEN nextval('pg_dist_groupid_seq') ELSE citus_add_node.groupid END,
        citus_add_node.nodename, citus_add_node.nodeport, citus_add_node.noderole, citus_add_node.nodecluster,
        citus_add_node.noderole = 'primary', citus_add_node.noderole = 'primary'
    RETURNING n.* INTO added;
    IF added.noderole = 'primary' THEN
        -- One transaction there: what is created finds the node's group, and the coordinator, but not its own row here.
        PERFORM citus_stand_in.tell(added.nodename, added.nodeport, concat_ws(E';\n',
            citus_stand_in.metadata_for(added.groupid), citus_stand_in.objects_for(added.groupid)));
        PERFORM citus_stand_in.tell(n.name, n.port, citus_stand_in.metadata_for(n.group_id))
        FROM citus_stand_in.nodes() AS n WHERE n.group_id <> 0 AND n.id <> added.nodeid;
    END IF;
    RETURN added.nodeid;
END
$$;
REVOKE EXECUTE ON FUNCTION pg_catalog.citus_add_node FROM PUBLIC;

/* The node itself is not told: it goes on as if it still belonged. */
CREATE FUNCTION pg_catalog.citus_remove_node(nodename text, nodeport integer) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM citus_stand_in.check_coordinator();
    DELETE FROM pg_dist_node AS n
    WHERE n.nodename = citus_remove_node.nodename AND n.nodeport = citus_remove_node.nodeport;
    PERFORM citus_stand_in.sync();
END
$$;

CREATE FUNCTION pg_catalog.citus_set_coordinator_host(host text, port integer DEFAULT current_setting('port')::integer,
    node_role pg_catalog.noderole DEFAULT 'primary', node_cluster name DEFAULT 'default') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM citus_stand_in.check_coordinator();
    UPDATE pg_dist_node SET nodename = host, nodeport = port WHERE groupid = 0 AND noderole = node_role;
    IF NOT FOUND THEN
        INSERT INTO pg_dist_node (groupid, nodename, nodeport, noderole, nodecluster, hasmetadata, metadatasynced, shouldhaveshards)
        VALUES (0, host, port, node_role, node_cluster, true, true, false);
    END IF;
    PERFORM citus_stand_in.sync();
END
$$;

CREATE FUNCTION pg_catalog.citus_update_node(node_id integer, new_node_name text, new_node_port integer,
    force boolean DEFAULT false, lock_cooldown integer DEFAULT 10000) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM citus_stand_in.check_coordinator();
    UPDATE pg_dist_node SET nodename = new_node_name, nodeport = new_node_port WHERE nodeid = node_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'node % not found', node_id;
    END IF;
    PERFORM citus_stand_in.sync();
END
$$;

CREATE FUNCTION citus_stand_in.set_active(name text, port integer, active boolean) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    id integer;
BEGIN
    PERFORM citus_stand_in.check_coordinator();
    UPDATE pg_dist_node SET isactive = active WHERE nodename = name AND nodeport = port RETURNING nodeid INTO id;
    PERFORM citus_stand_in.sync();
    RETURN id;
END
$$;

CREATE FUNCTION pg_catalog.citus_activate_node(nodename text, nodeport integer) RETURNS integer
LANGUAGE sql AS $$ SELECT citus_stand_in.set_active(nodename, nodeport, true) $$;

CREATE FUNCTION pg_catalog.citus_disable_node(nodename text, nodeport integer, synchronous boolean DEFAULT false) RETURNS void
LANGUAGE sql AS $$ SELECT citus_stand_in.set_active(nodename, nodeport, false) $$;
