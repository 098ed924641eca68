/* Changes on the coordinator that reach the workers: those to extensions, foreign servers and defaults of distributed tables.
   Changes to user mappings, to privileges on functions and to roles do not. Citus does propagate roles, but event triggers do not
   fire for them. Here the workers commit at once; in Citus they commit with the coordinator. */

CREATE FUNCTION citus_stand_in.propagates() RETURNS boolean LANGUAGE sql STABLE
AS $$ SELECT pg_catalog.current_setting('citus.enable_ddl_propagation')::pg_catalog.bool $$;

CREATE FUNCTION citus_stand_in.extension_command(id oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('CREATE EXTENSION IF NOT EXISTS %I WITH SCHEMA %I VERSION %L', extname, extnamespace::regnamespace::name, extversion)
    FROM pg_extension WHERE oid = id
$$;

CREATE FUNCTION citus_stand_in.server_command(id oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('CREATE SERVER IF NOT EXISTS %I FOREIGN DATA WRAPPER %I; UPDATE pg_catalog.pg_foreign_server SET srvoptions = %L WHERE srvname = %L',
        s.srvname, w.fdwname, s.srvoptions, s.srvname)
    FROM pg_foreign_server AS s JOIN pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw WHERE s.oid = id
$$;

CREATE FUNCTION citus_stand_in.before_command() RETURNS event_trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF citus_stand_in.propagates() THEN
        PERFORM citus_stand_in.check_coordinator();
    END IF;
END
$$;

CREATE FUNCTION citus_stand_in.after_command() RETURNS event_trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    command record;
BEGIN
    FOR command IN SELECT c.objid, c.command_tag FROM pg_event_trigger_ddl_commands() AS c WHERE NOT c.in_extension LOOP
        IF command.command_tag = 'ALTER TABLE' THEN
            PERFORM citus_stand_in.altered(command.objid) FROM pg_dist_partition AS p WHERE p.logicalrelid = command.objid;
        ELSIF citus_stand_in.propagates() THEN
            PERFORM citus_stand_in.tell_workers(CASE command.command_tag
                WHEN 'CREATE EXTENSION' THEN citus_stand_in.extension_command(command.objid)
                ELSE citus_stand_in.server_command(command.objid) END);
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION citus_stand_in.after_drop() RETURNS event_trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    dropped record;
BEGIN
    FOR dropped IN
        SELECT d.objid, d.object_type, d.object_identity FROM pg_event_trigger_dropped_objects() AS d
        WHERE d.original AND (d.object_type IN ('extension', 'server')
            OR EXISTS (SELECT FROM pg_dist_partition AS p WHERE p.logicalrelid = d.objid AND d.classid = 'pg_class'::regclass))
    LOOP
        DELETE FROM pg_dist_partition AS p WHERE p.logicalrelid = dropped.objid;
        DELETE FROM citus_stand_in.columns AS c WHERE c.of_table = dropped.objid;
        IF citus_stand_in.propagates() THEN
            PERFORM citus_stand_in.tell_workers(format('DROP %s IF EXISTS %s CASCADE', dropped.object_type, dropped.object_identity));
        END IF;
    END LOOP;
END
$$;
