/* From 0.2.0 to 0.2.1. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* Functions keep the extension by one of a schema that nobody can plant functions in, before they name anything. Comes last: it changes
   what functions say by now. */
CREATE FUNCTION snowflake_extension_keep() RETURNS void
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'extension_keep_wrapper';
COMMENT ON FUNCTION snowflake_extension_keep() IS 'keeps the extension from being dropped until the transaction ends: for its own functions';
DO $$
DECLARE
    old  text := 'PERFORM snowflake_ids_internal.extension_keep();';
    kept text := 'PERFORM pg_catalog.snowflake_extension_keep();';
    -- What stood before it in one of them.
    initial text := 'first bigint := snowflake_ids_internal.segment_bigint(''start'', start);';
    statement text;
BEGIN
    FOR statement IN
        SELECT pg_get_functiondef(p.oid)
        FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
        WHERE p.pronamespace IN ('snowflake_ids'::regnamespace, 'snowflake_ids_internal'::regnamespace) AND strpos(p.prosrc, old) > 0
    LOOP
        IF strpos(statement, initial) > 0 THEN
            statement := replace(replace(statement, initial, 'first bigint;'), old,
                old || E'\n    first := snowflake_ids_internal.segment_bigint(''start'', start);');
        END IF;
        EXECUTE replace(replace(statement, 'seen       snowflake_ids.worker_lease;', 'seen       record;'), old, kept);
    END LOOP;
    -- These two did not keep it, and superusers call them.
    FOR statement IN
        SELECT pg_get_functiondef(f)
        FROM unnest('{"snowflake_ids.layout_change(text,text)", snowflake_ids.use_citus(name)}'::regprocedure[]) AS f
    LOOP
        EXECUTE regexp_replace(statement, E'\nBEGIN\n', E'\nBEGIN\n    ' || kept || E'\n');
    END LOOP;
END
$$;
DROP FUNCTION snowflake_ids_internal.extension_keep();
