-- Checks of the ids of a table. The server compares the ids in one statement, with the snapshot of the call. All ids are grouped
-- only if count(DISTINCT) finds repeats, or if an id is out of range.

CREATE FUNCTION snowflake_ids_internal.audit_check(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind "char";
    type oid;
BEGIN
    SELECT c.relkind, a.atttypid INTO kind, type FROM pg_class c
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = attribute COLLATE "C" AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.oid = relation;
    IF relation IS NULL OR attribute IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'table and column must not be null';
    ELSIF kind IS NULL THEN
        RAISE undefined_table USING MESSAGE = format('relation with OID %s does not exist', relation::oid);
    ELSIF kind NOT IN ('r', 'p', 'f') THEN
        RAISE wrong_object_type USING
            MESSAGE = format('"%s" is not a table', relation),
            DETAIL = 'Only ordinary, partitioned and foreign tables can be audited.',
            HINT = 'Name the table that has the rows.';
    ELSIF type IS NULL THEN
        RAISE undefined_column USING
            MESSAGE = format('column "%s" of relation "%s" does not exist', attribute, relation);
    ELSIF NOT has_column_privilege(relation, attribute, 'SELECT') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for table %s', relation),
            DETAIL = format('Reading column "%s" requires the SELECT privilege.', attribute),
            HINT = 'Ask the owner of the table to grant SELECT on it.';
    ELSIF snowflake_ids_internal.base_type(type) NOT IN ('bigint'::regtype, 'integer'::regtype, 'smallint'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column "%s" of relation "%s" is of type %s', attribute, relation, format_type(type, NULL)),
            DETAIL = 'Ids are bigint, integer or smallint.',
            HINT = 'Name a column of type bigint, integer or smallint.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.audit_check_connection(connection text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    server pg_foreign_server;
BEGIN
    SELECT * INTO server FROM pg_foreign_server s WHERE s.srvname = connection COLLATE "C";
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('foreign server "%s" does not exist', coalesce(left(connection, 128), 'null')),
            HINT = 'Create it with CREATE SERVER and CREATE USER MAPPING, after CREATE EXTENSION postgres_fdw.';
    END IF;
    -- The owner of a foreign server chooses its host, and can create a user mapping for a superuser.
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user)
        AND NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.oid = server.srvowner) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('foreign server "%s" must belong to a superuser', connection),
            DETAIL = 'Its owner decides where a superuser would connect, and as which role.',
            HINT = 'Change its owner with ALTER SERVER ... OWNER TO, or call audit as a role that is not a superuser.';
    END IF;
END
$$;

-- Creates a temporary foreign table for the same table on a foreign server. Returns a query that reads it.
CREATE FUNCTION snowflake_ids_internal.audit_connect(number integer, connection text, relation regclass, attribute name) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    source text := format('snowflake_ids_audit_%s', number);
BEGIN
    PERFORM snowflake_ids_internal.audit_check_connection(connection);
    EXECUTE (SELECT format('CREATE FOREIGN TABLE pg_temp.%I (id bigint OPTIONS (column_name %L)) SERVER %I '
            'OPTIONS (schema_name %L, table_name %L, fetch_size ''10000'')',
            source, attribute, connection, n.nspname, c.relname)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation);
    RETURN format('SELECT id, %s::bigint << 32 FROM pg_temp.%I', number, source);
END
$$;

-- Returns a time in UTC, in the form that findings use.
CREATE FUNCTION snowflake_ids_internal.audit_time(micros bigint) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT regexp_replace(to_char(timestamp 'epoch' + $1 * interval '1 microsecond', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '[.]?0*$', 'Z')
$$;

CREATE FUNCTION snowflake_ids.audit("table" regclass, "column" name, generator text DEFAULT NULL,
    connections text[] DEFAULT NULL, tag text DEFAULT NULL, max_findings integer DEFAULT 10000)
RETURNS TABLE (finding text, is_fault boolean, id bigint, count bigint, datacenter_id integer, worker_id integer,
    day date, detail text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 100000 ROWS 100
SET search_path = pg_catalog, pg_temp SET row_security = off SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
#variable_conflict use_column
DECLARE
    has_connections boolean := coalesce(cardinality(connections), 0) > 0;
    named text[];
    layout record;
    numbers record;
    sources text;
    findings text;
    query text;
    answer jsonb;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF max_findings IS NULL OR max_findings NOT BETWEEN 1 AND 100000 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'max_findings is out of range', DETAIL = 'It must be 1 to 100000.';
    ELSIF cardinality(connections) > 64 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'connections has too many elements',
            DETAIL = format('%s connections are given; the limit is 64.', cardinality(connections));
    ELSIF generator IS NOT NULL AND tag IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'cannot specify both generator and tag', DETAIL = 'The ids come from a generator or from a segment tag, not from both.';
    END IF;
    -- The table may have changed before it was locked.
    PERFORM snowflake_ids_internal.audit_check("table", "column");
    PERFORM snowflake_ids_internal.lock_to_read("table");
    PERFORM snowflake_ids_internal.audit_check("table", "column");
    PERFORM snowflake_ids_internal.progress_enter('audit', "table", 'reading ids');
    IF generator IS NULL AND tag IS NULL THEN
        SELECT regexp_match(e.expression COLLATE "C", '^(segment|snowflake)_(?:nextval|id)\(''((?:[^'']|'''')*)''(?:::text)?\)$') INTO named
        FROM (SELECT pg_get_expr(d.adbin, d.adrelid)
            FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
            WHERE d.adrelid = "table" AND a.attname = "column" COLLATE "C") AS e (expression)
        WHERE octet_length(e.expression) <= 4096;
        generator := CASE WHEN named[1] = 'snowflake' THEN replace(named[2], '''''', '''') END;
        tag := CASE WHEN named[1] = 'segment' THEN replace(named[2], '''''', '''') END;
    END IF;
    sources := format('SELECT x.%I::bigint, %s::bigint FROM %s AS x', "column",
        CASE WHEN has_table_privilege("table", 'SELECT') THEN 'x.tableoid' ELSE '0' END, snowflake_ids_internal.qualified_name("table"));
    IF has_connections THEN
        -- Code of the table's owner runs in a statement of its own, before there is anything that reads remote rows, because
        -- only the caller may see them. This code can add ids to the copy, as it can add rows to its table.
        PERFORM snowflake_ids_internal.audit_check_connection(o.connection) FROM unnest(connections) AS o (connection);
        CREATE TEMPORARY TABLE snowflake_ids_audit_0 (id bigint, place bigint);
        GRANT INSERT ON pg_temp.snowflake_ids_audit_0 TO PUBLIC;
        PERFORM snowflake_ids_internal.run_as_owner("table",
            format('WITH copied AS (INSERT INTO pg_temp.snowflake_ids_audit_0 %s) SELECT 0::bigint', sources));
        sources := 'SELECT id, place FROM pg_temp.snowflake_ids_audit_0'
            || (SELECT string_agg(' UNION ALL '
                    || snowflake_ids_internal.audit_connect(o.number::integer, o.connection, "table", "column"), '')
                FROM unnest(connections) WITH ORDINALITY AS o (connection, number));
    END IF;
    SELECT * INTO layout FROM snowflake_ids_internal.layout_parts(generator);
    SELECT * INTO numbers FROM snowflake_ids_internal.audit_tag(tag);
    IF tag IS NULL THEN
        findings := format($sql$
            total AS (
                SELECT count(*) AS rows, count(i.id) AS ids,
                    count(i.id) > count(DISTINCT i.id) OR min(i.id) < 0 OR max(i.id) > %9$s AS has_faults FROM ids AS i
            ), parts AS (
                SELECT (%1$s + (i.id >> %3$s) * %2$s) / 86400000000 AS day,
                    i.id & (((1::bigint << %5$s) - 1 << %4$s) | ((1::bigint << %7$s) - 1 << %6$s)) AS node,
                    count(*) AS rows, min(i.id) AS first, max(i.id) AS last
                FROM ids AS i WHERE i.id BETWEEN 0 AND %8$s GROUP BY 1, 2
            ), counts AS (
                SELECT p.day, p.node >> %4$s & (1::bigint << %5$s) - 1 AS datacenter, p.node >> %6$s & (1::bigint << %7$s) - 1 AS worker,
                    sum(p.rows)::bigint AS rows, min(p.first) AS first, max(p.last) AS last
                FROM parts AS p GROUP BY GROUPING SETS ((p.day), (p.node))
            ), found AS (
                SELECT i.id, count(*) AS rows, i.id NOT BETWEEN 0 AND %8$s AS is_unfit, i.id BETWEEN %9$s + 1 AND %8$s AS is_future
                FROM ids AS i WHERE (SELECT t.has_faults FROM total AS t) AND i.id IS NOT NULL
                GROUP BY i.id HAVING count(*) > 1 OR i.id NOT BETWEEN 0 AND %9$s
            ), more AS (
                SELECT 1 AS part, 'day' AS finding, NULL::bigint AS id, c.rows, c.day, c.datacenter, c.worker,
                    NULL::bigint AS first, NULL::bigint AS last
                FROM counts AS c WHERE c.day IS NOT NULL
                UNION ALL
                SELECT 2, 'worker', NULL, c.rows, NULL, c.datacenter, c.worker,
                    %1$s + (c.first >> %3$s) * %2$s, %1$s + (c.last >> %3$s) * %2$s
                FROM counts AS c WHERE c.worker IS NOT NULL
            )$sql$, layout.epoch, layout.unit, layout.ticks_shift, layout.datacenter_shift, layout.datacenter,
            layout.worker_shift, layout.worker, layout.largest, layout.highest);
    ELSE
        findings := format($sql$
            total AS (
                SELECT c.*, c.ids > c.different OR c.fit < c.ids AS has_faults, c.fit < c.ids OR c.different <= (c.last - c.first) / %1$s AS has_gaps
                FROM (SELECT count(*) AS rows, count(i.id) AS ids, count(DISTINCT i.id) AS different, count(f.id) AS fit,
                        min(f.id) AS first, max(f.id) AS last
                    FROM ids AS i, LATERAL (SELECT CASE WHEN i.id BETWEEN 0 AND %3$s AND i.id %% %1$s = %2$s THEN i.id END) AS f (id)) AS c
            ), found AS (
                SELECT i.id, count(*) AS rows, i.id < 0 OR i.id %% %1$s <> %2$s AS is_unfit,
                    i.id > %3$s AND i.id %% %1$s = %2$s AS is_future
                FROM ids AS i WHERE (SELECT t.has_faults FROM total AS t) AND i.id IS NOT NULL GROUP BY i.id
                HAVING count(*) > 1 OR i.id NOT BETWEEN 0 AND %3$s OR i.id %% %1$s <> %2$s
            ), more AS (
                SELECT 0 AS part, 'gap' AS finding, n.before + %1$s AS id, (n.id - n.before) / %1$s - 1 AS rows, NULL::bigint AS day,
                    NULL::bigint AS datacenter, NULL::bigint AS worker, n.before + %1$s AS first, n.id - %1$s AS last
                FROM (SELECT i.id, lag(i.id) OVER (ORDER BY i.id) AS before FROM ids AS i
                    WHERE (SELECT t.has_gaps FROM total AS t) AND i.id BETWEEN 0 AND %3$s AND i.id %% %1$s = %2$s) AS n
                WHERE n.id - n.before > %1$s
            )$sql$, numbers.increment, numbers.remainder, coalesce(numbers.highest, 9223372036854775807));
    END IF;
    query := format($sql$
        WITH ids (id, place) AS NOT MATERIALIZED (%1$s), %2$s, findings AS (
            SELECT 0 AS part, 'duplicate' AS finding, f.id, f.rows, NULL::bigint AS day, NULL::bigint AS datacenter,
                NULL::bigint AS worker, NULL::bigint AS first, NULL::bigint AS last
            FROM found AS f WHERE f.rows > 1
            UNION ALL
            SELECT 0, CASE WHEN f.is_unfit THEN 'unfit' ELSE 'future' END, f.id, f.rows, NULL, NULL, NULL, NULL, NULL
            FROM found AS f WHERE f.is_unfit OR f.is_future
            UNION ALL
            SELECT * FROM more
        ), numbered AS (
            SELECT a.*, count(*) OVER (PARTITION BY a.finding) AS of_all,
                row_number() OVER (PARTITION BY a.finding ORDER BY a.id, a.day, a.datacenter, a.worker) AS number
            FROM findings AS a
        ), listed AS (
            SELECT * FROM numbered AS n WHERE n.number <= %3$s
        ), places AS (
            SELECT p.id, jsonb_agg(jsonb_build_array(p.place, p.rows) ORDER BY p.place) AS places
            FROM (SELECT i.id, i.place, count(*) AS rows FROM ids AS i
                WHERE i.id IN (SELECT l.id FROM listed AS l WHERE l.part = 0 AND l.finding <> 'gap') GROUP BY i.id, i.place) AS p
            GROUP BY p.id
        )
        SELECT jsonb_agg(to_jsonb(f) ORDER BY f.part, f.id, f.finding, f.day, f.datacenter, f.worker)::text FROM (
            SELECT l.part, l.finding, l.id, l.rows, l.day, l.datacenter, l.worker, l.first, l.last, p.places
            FROM listed AS l LEFT JOIN places AS p ON p.id = l.id AND l.finding <> 'gap'
            UNION ALL
            SELECT 3, 'null', NULL, t.rows - t.ids, NULL, NULL, NULL, NULL, NULL, NULL FROM total AS t WHERE t.rows > t.ids
            UNION ALL
            SELECT 4, 'total', NULL, t.rows, NULL, NULL, NULL, NULL, NULL, NULL FROM total AS t
            UNION ALL
            SELECT 5, 'unlisted ' || n.finding, NULL, n.of_all - %3$s, NULL, NULL, NULL, NULL, NULL, NULL
            FROM numbered AS n WHERE n.number = %3$s AND n.of_all > %3$s
        ) AS f$sql$, sources, findings, max_findings);
    IF has_connections THEN
        EXECUTE query INTO answer;
        DROP TABLE pg_temp.snowflake_ids_audit_0;
        FOR number IN 1 .. cardinality(connections) LOOP
            EXECUTE format('DROP FOREIGN TABLE pg_temp.%I', 'snowflake_ids_audit_' || number);
        END LOOP;
    ELSE
        answer := snowflake_ids_internal.read_as_owner("table", query)::jsonb;
    END IF;
    -- The layout's and the tag's state is read last, so that ids that were issued during the audit are not reported as faults.
    SELECT * INTO layout FROM snowflake_ids_internal.layout_parts(generator);
    SELECT * INTO numbers FROM snowflake_ids_internal.audit_tag(tag);
    PERFORM snowflake_ids_internal.progress_end('audit');
    RETURN QUERY SELECT split_part(f.finding, ' ', 1), f.finding ~ '^(unlisted )?(duplicate|future|unfit)$', f.id, f.rows,
        f.datacenter, f.worker, date '1970-01-01' + f.day,
        nullif(concat_ws(' ', CASE split_part(f.finding, ' ', 1)
            WHEN 'unfit' THEN CASE WHEN f.id < 0 THEN 'It is negative; ids are 0 or more.'
                WHEN tag IS NULL THEN format('The largest id of layout "%s" is %s.', layout.layout, layout.largest)
                ELSE format('Ids of the tag leave %s when divided by %s.', numbers.remainder, numbers.increment) END
            WHEN 'future' THEN CASE WHEN tag IS NULL THEN format('Its timestamp is %s, and the clock stands at %s.',
                    snowflake_ids_internal.audit_time(layout.epoch + (f.id >> layout.ticks_shift) * layout.unit),
                    snowflake_ids_internal.audit_time(layout.now))
                ELSE format('The highest id reserved of the tag is %s.', numbers.highest) END
            WHEN 'gap' THEN format('No row has an id from %s to %s.', f.first, f.last)
            WHEN 'worker' THEN format('From %s to %s.',
                snowflake_ids_internal.audit_time(f.first), snowflake_ids_internal.audit_time(f.last))
            WHEN 'unlisted' THEN format('Further findings "%s" are not listed.', split_part(f.finding, ' ', 2)) END,
            'In ' || (SELECT string_agg(p.name || CASE WHEN p.rows > 1 THEN format(' (%s rows)', p.rows) ELSE '' END, ', '
                    ORDER BY p.number)
                FROM (SELECT least(o.number, 9), CASE WHEN least(o.number, 9) = 9 THEN 'elsewhere'
                        WHEN min(o.place) >> 32 > 0 THEN format('connection %s', min(o.place) >> 32)
                        ELSE snowflake_ids_internal.qualified_name(coalesce(nullif(min(o.place), 0)::oid, "table")) END, sum(o.rows)
                    FROM (SELECT w.number, (w.pair ->> 0)::bigint, (w.pair ->> 1)::bigint
                        FROM jsonb_array_elements(f.places) WITH ORDINALITY AS w (pair, number)) AS o (number, place, rows)
                    GROUP BY 1) AS p (number, name, rows)) || '.'), '')
    FROM ROWS FROM (jsonb_to_recordset(answer) AS (finding text, id bigint, rows bigint, day integer, datacenter integer,
        worker integer, first bigint, last bigint, places jsonb)) WITH ORDINALITY AS f
    WHERE f.finding <> 'future'
        OR f.id > CASE WHEN tag IS NULL THEN layout.highest ELSE coalesce(numbers.highest, 9223372036854775807) END
    ORDER BY f.ordinality;
END
$$;
COMMENT ON FUNCTION snowflake_ids.audit IS
    'faults in the ids of a table, on this and other servers, and the number of ids for each node and day';
