/*
 * Turns the pg_tle extension snowflake_ids_plain into functions and tables that belong to no extension, as snowflake_ids.sql
 * creates them. A dump can then be restored on a server without pg_tle. to_extension.sql can then replace the functions and
 * tables by the extension snowflake_ids.
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
