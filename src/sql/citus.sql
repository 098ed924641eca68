/* Runs a statement on each active worker of a Citus cluster: by a connection of Citus' own, as the present user, in a
   transaction of its own there. What was done on some nodes stays done where others fail. */
CREATE FUNCTION snowflake_ids_internal.citus_run_on_workers(command text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    failed text;
    failures bigint;
BEGIN
    SELECT count(*), string_agg(format('node %s (%s:%s): %s', n.nodeid, r.nodename, r.nodeport, left(coalesce(r.result, 'no answer'), 1000)), E'\n'
                                ORDER BY n.nodeid)
    INTO failures, failed
    FROM pg_catalog.run_command_on_workers(command) AS r LEFT JOIN pg_catalog.pg_dist_node AS n USING (nodename, nodeport)
    WHERE r.success IS NOT TRUE;
    IF failures > 0 THEN
        RAISE EXCEPTION '% of the cluster''s workers failed', failures USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = failed,
            HINT = 'Mend that, and do the same again: what other nodes did stays as it is, or is done once more.';
    END IF;
END
$$;
