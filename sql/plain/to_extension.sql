/*
 * From snowflake_ids in plain SQL to the extension, above all ids that were given.
 *
 * Run it in the database, in one transaction, as a superuser or as a role that owns all tables concerned and may create the
 * extension. The server must have the library in shared_preload_libraries, with the layout that is the default:
 *
 *     psql -v ON_ERROR_STOP=1 -1 -f sql/plain/to_extension.sql
 *
 * All of it happens, or nothing. It waits for transactions that have taken ids, and others wait for it; locks on the tables are
 * held until it ends. What calls the functions from elsewhere than a column's default (views, functions of yours) goes on by
 * name, as the extension's functions have the same; a view or an index that depends on them keeps the script from dropping
 * them, and is named in the error: drop it before, and create it again afterwards.
 */

SET LOCAL search_path = pg_catalog, pg_temp;

-- From here on no id is given: those who take one wait for the sequences' locks.
DO $$
DECLARE
    sequence regclass;
BEGIN
    FOR sequence IN SELECT s.sequence FROM snowflake_ids.plain_segment s UNION ALL SELECT 'snowflake_ids.plain_last' LOOP
        EXECUTE format('ALTER SEQUENCE %s OWNED BY NONE', sequence);
    END LOOP;
END
$$;

-- The defaults, as they are written where the functions' schema is the first to be searched.
CREATE TEMPORARY TABLE plain_default ON COMMIT DROP AS
SELECT d.adrelid::regclass AS relation, d.adnum AS number, NULL::text AS expression, d.oid
FROM pg_attrdef d
WHERE EXISTS (
    SELECT FROM pg_depend p JOIN pg_proc f ON p.refclassid = 'pg_proc'::regclass AND p.refobjid = f.oid
    WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
      AND f.pronamespace = (SELECT n.oid FROM pg_namespace n, snowflake_ids.plain p WHERE n.nspname = p.functions)
      AND f.proname IN ('snowflake_nextval', 'snowflake_id', 'segment_nextval', 'segment_id'));
DO $$
DECLARE
    functions name := (SELECT p.functions FROM snowflake_ids.plain p);
BEGIN
    PERFORM set_config('search_path', format('pg_catalog, %I, pg_temp', functions), true);
    UPDATE pg_temp.plain_default SET expression = pg_get_expr(d.adbin, d.adrelid)
    FROM pg_attrdef d WHERE d.oid = plain_default.oid;
END
$$;

-- The extension makes the schema snowflake_ids.
ALTER SCHEMA snowflake_ids RENAME TO snowflake_ids_plain;
CREATE EXTENSION snowflake_ids;

DO $$
DECLARE
    functions name := (SELECT p.functions FROM snowflake_ids_plain.plain p);
    found record;
    last_id bigint;
    last_number bigint;
    is_called boolean;
BEGIN
    PERFORM set_config('search_path', format('pg_catalog, %I, pg_temp', functions), true);
    IF (SELECT layout FROM snowflake_ids.status) <> '41/5/5/12 epoch=2020-01-01' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the server has another layout than the ids that were given',
            HINT = 'Leave snowflake_ids.layout at its default, or keep the ids of both in columns that never meet.';
    END IF;
    -- Ids of the same worker id may be of the last milliseconds, or of a clock that was ahead.
    SELECT s.last_value INTO last_id FROM snowflake_ids_plain.plain_last s;
    IF last_id > snowflake_min_id(clock_timestamp() + interval '1 minute') THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the clock is behind ids that were given',
            DETAIL = format('The last one is of %s.', snowflake_timestamp(last_id)),
            HINT = 'Set the clock right, or wait.';
    END IF;
    WHILE last_id >= snowflake_min_id(clock_timestamp()) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
    FOR found IN SELECT * FROM snowflake_ids_plain.plain_segment LOOP
        EXECUTE format('SELECT last_value, is_called FROM %s', found.sequence) INTO last_number, is_called;
        PERFORM snowflake_ids.segment_create(found.tag, start => last_number::numeric + is_called::integer);
    END LOOP;
    -- Read anew, the names mean the extension's functions, which come first.
    FOR found IN SELECT d.*, a.attname FROM pg_temp.plain_default d JOIN pg_attribute a ON (attrelid, attnum) = (relation, number)
    LOOP
        EXECUTE format('ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT %s', found.relation, found.attname, found.expression);
    END LOOP;
    FOR found IN
        SELECT f.oid::regprocedure AS function FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
        WHERE n.nspname = functions AND f.oid::regprocedure::text ~ 'snowflake|segment'
          AND f.proname IN ('snowflake_nextval', 'snowflake_id', 'snowflake_nextvals', 'snowflake_lastval', 'segment_nextval',
            'segment_id', 'segment_nextvals', 'segment_currval', 'snowflake_timestamp', 'snowflake_datacenter_id',
            'snowflake_worker_id', 'snowflake_sequence', 'snowflake_min_id', 'snowflake_max_id', 'snowflake_compose')
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('DROP FUNCTION %s', found.function);
    END LOOP;
END
$$;

DROP SCHEMA snowflake_ids_plain CASCADE;
