-- Attaching gives a column a default of this extension, in place of a sequence, an identity or no default. Detaching is the
-- reverse. The table must belong to the caller, or the caller must be a superuser.

CREATE FUNCTION snowflake_ids.attach(relation regclass, "column" name, kind text DEFAULT 'snowflake',
    tag text DEFAULT NULL, sequence text DEFAULT 'redirect', generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
DECLARE
    done record;
    failed jsonb;
    unchecked record;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('attach');
    IF snowflake_ids_internal.attach_here(relation, "column", kind, tag, sequence, generator, true) THEN
        RETURN;
    END IF;
    -- The tag and the coordinator are changed first, so that no worker repeats an id of the coordinator.
    -- A separate session changes the coordinator, and commits before the workers are changed.
    -- A later failure does not undo this change.
    SELECT r.success, r.result INTO done FROM pg_catalog.run_command_on_coordinator(format(
        'SELECT snowflake_ids_internal.attach_in_session(%L, %L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), "column", kind, tag, sequence, generator,
        snowflake_ids_internal.bounded_lock_timeout())) AS r;
    IF done.success IS NOT TRUE THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'could not change the coordinator in a separate session',
            DETAIL = left(coalesce(done.result, 'No answer.'), 1000),
            HINT = 'Correct the cause, and repeat the call; no worker has been changed.';
    ELSIF done.result <> '' THEN
        failed := done.result;
        RAISE EXCEPTION USING
            ERRCODE = failed ->> 'code',
            MESSAGE = failed ->> 'message',
            DETAIL = coalesce(nullif(failed ->> 'detail', ''), format('The coordinator reported this for table "%s".', relation)),
            HINT = coalesce(nullif(failed ->> 'hint', ''), 'Correct the cause, and repeat the call; no worker has been changed.');
    END IF;
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'waiting for other nodes');
    tag := CASE WHEN kind COLLATE "C" = 'segment' THEN coalesce(tag, snowflake_ids_internal.default_tag(relation)) END;
    PERFORM snowflake_ids_internal.citus_run_on_workers(format(
        'SELECT snowflake_ids_internal.attach_worker(%L, %L, %L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), "column", snowflake_ids_internal.id_default(kind, tag, generator),
        kind, tag, sequence, generator, snowflake_ids_internal.bounded_lock_timeout()));
    PERFORM snowflake_ids_internal.progress_end('attach');
    FOR unchecked IN SELECT * FROM snowflake_ids_internal.citus_keys(relation) LOOP
        RAISE NOTICE USING
            MESSAGE = format('Citus does not check key "%s" of relation "%s" across shards', unchecked.key, relation),
            DETAIL = coalesce(upper(left(unchecked.fault, 1)) || substr(unchecked.fault, 2) || '.',
                'Its ids are unique as long as no statement sets them itself.'),
            HINT = CASE WHEN unchecked.fault IS NULL THEN 'Leave the column out of each INSERT and UPDATE.'
                ELSE upper(left(unchecked.hint, 1)) || substr(unchecked.hint, 2) || '.' END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_ids.attach IS
    'makes a column take ids above its present values, from snowflake_nextval(), snowflake_nextval(generator) or segment_nextval(tag)';

CREATE FUNCTION snowflake_ids.detach(relation regclass, "column" name, kind text DEFAULT NULL) RETURNS void
LANGUAGE c SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS 'MODULE_PATHNAME', 'detach_wrapper';
COMMENT ON FUNCTION snowflake_ids.detach IS
    'gives an attached column its former sequence or identity back, or what the argument kind names: sequence, identity or none';
