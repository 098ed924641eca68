/*
 * Replaces snowflake_ids in plain SQL by the extension. New ids are above all issued ids.
 *
 * Run this script in the database, in one transaction. The role must be a superuser, or must own all tables concerned and have
 * the right to create the extension. The server must have the library in shared_preload_libraries, and the default layout:
 *
 *     psql -v ON_ERROR_STOP=1 -1 -f sql/plain/to_extension.sql
 *
 * If a step fails, nothing is changed. The script waits for transactions that have issued ids. Other transactions wait for the
 * script, which keeps its locks on the tables until it ends. Your functions that call the plain functions by name call the
 * extension's functions afterwards, because these have the same names. If a view or an index depends on the plain functions,
 * the script fails, and the error names the view or index: drop it before, and create it again afterwards. The descriptions of
 * tags are lost.
 *
 * A superuser may run this script, but the plain objects belong to another role, which may have changed them. So the script
 * locks the objects, and reads them only if they are as snowflake_ids.sql creates them. It changes the defaults of tables with
 * the rights of the tables' owners.
 */

SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
DECLARE
    plain_schema  pg_catalog.oid;
    owner         pg_catalog.oid;
    functions     pg_catalog.name;
    makes         pg_catalog.oid[];
    defaults      pg_catalog.oid[];
    expressions   pg_catalog.text[];
    expression    pg_catalog.text;
    statement     pg_catalog.text;
    trouble       pg_catalog.text;
    item          pg_catalog.record;
    locked_name   pg_catalog.name;
    last_id       pg_catalog.int8;
    last_number   pg_catalog.int8;
    is_called     pg_catalog.bool;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
        -- Keeps the planner from evaluating CHECK constraints, which may contain code of the owner.
        pg_catalog.set_config('constraint_exclusion', 'off', true);
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot go over to the extension in a %s transaction', current_setting('transaction_isolation')),
            DETAIL = 'It would not see tags that were created while it waited for locks.',
            HINT = 'Use a transaction of isolation level read committed.';
    END IF;

    -- The extension needs the schema name snowflake_ids. No other session can rename the schema before this transaction ends.
    ALTER SCHEMA snowflake_ids RENAME TO snowflake_ids_plain;
    plain_schema := 'snowflake_ids_plain'::regnamespace;
    -- Locks first the tables whose defaults call the functions: an INSERT locks its table, and then waits for the sequence.
    FOR item IN SELECT DISTINCT d.adrelid
        FROM pg_proc AS f JOIN pg_depend AS p ON p.refclassid = 'pg_proc'::regclass AND p.refobjid = f.oid
            JOIN pg_attrdef AS d ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
            JOIN pg_class AS c ON c.oid = d.adrelid
        WHERE f.proname IN ('snowflake_nextval', 'snowflake_id', 'segment_nextval', 'segment_id') AND c.relkind IN ('r', 'p')
            AND f.proowner = (SELECT relowner FROM pg_class WHERE oid = 'snowflake_ids_plain.plain'::regclass)
        ORDER BY d.adrelid
    LOOP
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', item.adrelid::regclass);
    END LOOP;
    LOCK TABLE ONLY snowflake_ids_plain.plain, ONLY snowflake_ids_plain.plain_segment IN ACCESS EXCLUSIVE MODE;

    -- Fails if a SELECT of these objects would run code of their owner, because that code would run with the caller's rights.
    FOR item IN
        SELECT t.name, t.kind, t.columns, c.* FROM (VALUES
            ('plain', 'r', 'only_row boolean, datacenter_id integer, worker_id integer, functions name'),
            ('plain_segment', 'r', 'tag text, sequence regclass'),
            ('plain_last', 'S', 'last_value bigint, log_cnt bigint, is_called boolean')) AS t (name, kind, columns)
            LEFT JOIN (SELECT oid, * FROM pg_class WHERE relnamespace = plain_schema) AS c ON c.relname = t.name
    LOOP
        trouble := CASE
            WHEN item.relkind IS NULL THEN 'It is not there.'
            WHEN item.relkind <> item.kind::"char" THEN CASE item.kind WHEN 'r' THEN 'It is not a table.' ELSE 'It is not a sequence.' END
            WHEN item.relpersistence <> 'p' OR item.relispartition
                OR EXISTS (SELECT FROM pg_inherits WHERE item.oid IN (inhrelid, inhparent)) THEN 'Other tables are above or below it.'
            WHEN EXISTS (SELECT FROM pg_rewrite WHERE ev_class = item.oid) THEN 'It has a rule.'
            WHEN EXISTS (SELECT FROM pg_trigger WHERE tgrelid = item.oid) THEN 'It has a trigger.'
            WHEN item.relrowsecurity OR item.relforcerowsecurity
                OR EXISTS (SELECT FROM pg_policy WHERE polrelid = item.oid) THEN 'It has row security.'
            WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = item.oid AND (indexprs IS NOT NULL OR indpred IS NOT NULL))
                THEN 'It has an index of an expression.'
            WHEN EXISTS (SELECT FROM pg_statistic_ext WHERE stxrelid = item.oid) THEN 'It has statistics of its own.'
            WHEN item.columns IS DISTINCT FROM (
                SELECT string_agg(format('%s %s', attname, atttypid::regtype)
                    || CASE WHEN attgenerated <> '' OR attidentity <> '' THEN ' generated' ELSE '' END, ', ' ORDER BY attnum)
                FROM pg_attribute WHERE attrelid = item.oid AND attnum > 0 AND NOT attisdropped) THEN 'Its columns are others.'
            END;
        IF trouble IS NOT NULL THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('snowflake_ids.%s is not as snowflake_ids.sql makes it', item.name),
                DETAIL = trouble,
                HINT = 'Find out who changed it and why, and make it as it was: what is in it may be wrong, too.';
        END IF;
    END LOOP;

    -- After these locks no ids are issued, because all calls wait for the locks of the sequences.
    FOR item IN SELECT s.tag, s.sequence::oid AS sequence FROM ONLY snowflake_ids_plain.plain_segment AS s
        UNION ALL SELECT NULL, 'snowflake_ids_plain.plain_last'::regclass
    LOOP
        FOR pass IN 1..2 LOOP
            -- ALTER SEQUENCE locks the sequence by name. If the oid still has this name afterwards, this sequence was locked.
            IF NOT EXISTS (SELECT FROM pg_class WHERE oid = item.sequence AND relkind = 'S' AND relnamespace = plain_schema
                AND (pass = 1 OR relname = locked_name)) THEN
                RAISE object_not_in_prerequisite_state USING
                    MESSAGE = format('segment tag "%s" has no sequence in schema snowflake_ids', left(item.tag, 128)),
                    DETAIL = format('It is said to be %s.', coalesce(item.sequence::regclass::text, 'null')),
                    HINT = 'Find out who changed snowflake_ids.plain_segment and why, and make it as it was.';
            ELSIF pass = 1 THEN
                SELECT relname INTO STRICT locked_name FROM pg_class WHERE oid = item.sequence;
                EXECUTE format('ALTER SEQUENCE snowflake_ids_plain.%I OWNED BY NONE', locked_name);
            END IF;
        END LOOP;
    END LOOP;

    -- Finds the plain functions, which have the same owner as the tables.
    SELECT p.functions INTO STRICT functions FROM ONLY snowflake_ids_plain.plain AS p;
    SELECT relowner INTO STRICT owner FROM pg_class WHERE oid = 'snowflake_ids_plain.plain'::regclass;
    makes := ARRAY(SELECT f.oid FROM pg_proc AS f JOIN pg_namespace AS n ON n.oid = f.pronamespace
        WHERE n.nspname = functions AND f.proowner = owner AND f.prokind = 'f'
          AND f.proname IN ('snowflake_nextval', 'snowflake_id', 'snowflake_nextvals', 'snowflake_lastval', 'segment_nextval',
            'segment_id', 'segment_nextvals', 'segment_currval', 'snowflake_timestamp', 'snowflake_datacenter_id',
            'snowflake_worker_id', 'snowflake_sequence', 'snowflake_min_id', 'snowflake_max_id', 'snowflake_compose'));
    IF (SELECT count(DISTINCT proname) FROM pg_proc WHERE oid = ANY (makes)) <> 15 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the functions of snowflake_ids.sql are not all in schema "%s"', functions),
            DETAIL = format('Looked for are those that role "%s" owns.', pg_get_userbyid(owner)),
            HINT = 'Where they were moved, UPDATE snowflake_ids.plain SET functions = the schema''s name; have one role own all.';
    END IF;

    -- Prints the defaults with the functions' schema in the search_path, so that the functions are printed without their schema.
    -- This statement qualifies all names, because other roles may create objects in that schema.
    defaults := ARRAY(SELECT d.oid FROM pg_attrdef AS d
        WHERE EXISTS (SELECT FROM pg_depend AS p WHERE p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid
            AND p.refclassid = 'pg_proc'::regclass AND p.refobjid = ANY (makes)));
    statement := format('SET LOCAL search_path = pg_catalog, %I, pg_temp', functions);
    EXECUTE statement;
    SELECT pg_catalog.array_agg(pg_catalog.pg_get_expr(d.adbin, d.adrelid) ORDER BY o.place USING OPERATOR(pg_catalog.<))
    INTO expressions
    FROM ROWS FROM (pg_catalog.unnest(defaults)) WITH ORDINALITY AS o (id, place)
        JOIN pg_catalog.pg_attrdef AS d ON d.oid OPERATOR(pg_catalog.=) o.id;
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

    CREATE EXTENSION snowflake_ids;
    IF (SELECT layout FROM snowflake_ids.status) <> '41/5/5/12 epoch=2020-01-01' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the server has another layout than the ids that were given',
            HINT = 'Leave snowflake_ids.layout at its default, or keep the ids of both in columns that never meet.';
    END IF;
    -- The last plain ids may have the same worker id and the present millisecond, or later times if the clock was ahead.
    SELECT s.last_value INTO last_id FROM snowflake_ids_plain.plain_last AS s;
    IF last_id > snowflake_min_id(clock_timestamp() + interval '1 minute') THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the clock is behind ids that were given',
            DETAIL = format('The last one is of %s.', snowflake_timestamp(last_id)),
            HINT = 'Set the clock right, or wait.';
    END IF;
    WHILE last_id >= snowflake_min_id(clock_timestamp()) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
    FOR item IN SELECT s.tag, c.relname FROM ONLY snowflake_ids_plain.plain_segment AS s JOIN pg_class AS c ON c.oid = s.sequence LOOP
        EXECUTE format('SELECT last_value, is_called FROM snowflake_ids_plain.%I', item.relname) INTO last_number, is_called;
        PERFORM snowflake_ids.segment_create(item.tag, start => last_number::numeric + is_called::integer);
    END LOOP;

    -- The printed names now mean the extension's functions, which are in pg_catalog and so are found first. A role that may not
    -- call as_owner is no superuser, and runs the statement itself.
    FOR item IN SELECT d.adrelid, a.attname, o.place FROM unnest(defaults) WITH ORDINALITY AS o (id, place)
        JOIN pg_attrdef AS d ON d.oid = o.id JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    LOOP
        expression := format('%s; ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT %s',
            statement, item.adrelid::regclass, item.attname, expressions[item.place]);
        IF has_schema_privilege('snowflake_ids_internal', 'USAGE')
            AND has_function_privilege('snowflake_ids_internal.as_owner(oid, text)', 'EXECUTE') THEN
            PERFORM snowflake_ids_internal.as_owner(item.adrelid, expression);
        ELSE
            EXECUTE expression;
            PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
        END IF;
    END LOOP;
    FOR item IN SELECT f::regprocedure AS function FROM unnest(makes) AS f LOOP
        EXECUTE format('DROP FUNCTION %s', item.function);
    END LOOP;
    DROP SCHEMA snowflake_ids_plain CASCADE;
END
$$;
