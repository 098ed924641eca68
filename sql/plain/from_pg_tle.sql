/*
 * Turns the extension snowflake_ids_plain of pg_tle into functions and tables of no extension, as snowflake_ids.sql makes them.
 * A dump can then be restored where there is no pg_tle, and to_extension.sql goes on from there.
 *
 *     psql -v ON_ERROR_STOP=1 -1 -f sql/plain/from_pg_tle.sql
 */
DO $$
DECLARE
    command pg_catalog.text;
BEGIN
    FOR command IN
        SELECT pg_catalog.format('ALTER EXTENSION snowflake_ids_plain DROP %s %s', o.type, o.identity)
        FROM pg_catalog.pg_depend AS d, pg_catalog.pg_identify_object(d.classid, d.objid, 0) AS o
        WHERE d.deptype OPERATOR(pg_catalog.=) 'e' AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
            AND d.refobjid OPERATOR(pg_catalog.=) (SELECT e.oid FROM pg_catalog.pg_extension AS e
                WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake_ids_plain')
    LOOP
        EXECUTE command;
    END LOOP;
END
$$;
DROP EXTENSION snowflake_ids_plain;
DROP TRIGGER plain_replace ON snowflake_ids.plain;
DROP FUNCTION snowflake_ids.plain_replace();
