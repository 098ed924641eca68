-- This extension's defaults in the form in which PostgreSQL prints them, so that they can be recognised.

-- Returns a call with a text literal as PostgreSQL prints it with standard_conforming_strings. quote_literal prints another
-- form.
CREATE FUNCTION snowflake_ids_internal.call_with(function text, argument text) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%s(''%s''::text)', function, replace(argument COLLATE "C", '''', ''''''))
$$;

-- Returns the tag for a column that is attached without a tag: the names of the schema and the table, with a dot between them.
-- Quotes keep two tables from getting the same tag. Each name that contains a dot is quoted. If either name contains a dot,
-- each name that begins with a quote is quoted, too.
CREATE FUNCTION snowflake_ids_internal.default_tag(relation regclass) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(CASE WHEN strpos(part, '.') > 0 OR starts_with(part, '"') AND strpos(n.nspname || c.relname, '.') > 0
        THEN quote_ident(part) ELSE part END, '.' ORDER BY place)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
        unnest(ARRAY[n.nspname::text, c.relname::text]) WITH ORDINALITY parts (part, place)
    WHERE c.oid = relation
$$;

CREATE FUNCTION snowflake_ids_internal.id_default(kind text, tag text, generator text DEFAULT NULL) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN kind COLLATE "C" = 'segment' THEN snowflake_ids_internal.call_with('segment_nextval', tag)
        WHEN generator IS NOT NULL THEN snowflake_ids_internal.call_with('snowflake_nextval', generator)
        ELSE 'snowflake_nextval()' END
$$;

-- Returns the columns whose defaults call a function for ids of tags. Finds the defaults by their dependency on the functions,
-- because pg_depend has an index for this search. PL/pgSQL keeps the plan.
CREATE FUNCTION snowflake_ids_internal.columns_of_tags() RETURNS TABLE (relation regclass, attribute name, written text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT d.adrelid::regclass, a.attname, pg_get_expr(d.adbin, 0)
    FROM pg_depend p
    JOIN pg_attrdef d ON d.oid = p.objid
    JOIN pg_class c ON c.oid = d.adrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
    JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE p.classid = 'pg_attrdef'::regclass AND p.refclassid = 'pg_proc'::regclass
        AND p.refobjid = ANY (ARRAY['segment_nextval(text)', 'segment_id(text)']::regprocedure[])
        -- Printing a default fails if another session meanwhile drops an object that the default names.
        AND NOT EXISTS (SELECT FROM pg_depend o WHERE o.classid = 'pg_attrdef'::regclass AND o.objid = d.oid
            AND o.refobjid NOT IN (p.refobjid, d.adrelid) AND o.refclassid <> 'pg_type'::regclass)
    ORDER BY d.adrelid, d.adnum;
END
$$;

-- Returns the columns whose defaults use a tag, even if the tag does not exist.
CREATE FUNCTION snowflake_ids_internal.columns_of_tag(tag text) RETURNS TABLE (relation regclass, attribute name)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.relation, c.attribute FROM snowflake_ids_internal.columns_of_tags() c
    -- Many columns may be attached. The first test excludes most of them cheaply.
    WHERE CASE WHEN strpos(c.written, snowflake_ids_internal.call_with('', tag) COLLATE "C") > 0
        THEN snowflake_ids_internal.default_of(c.relation, c.attribute) = snowflake_ids_internal.id_default('segment', tag) COLLATE "C" END
$$;

-- Returns a column with this tag whose table has rows. A table counts as non-empty if its file has pages. This test needs no
-- right to read the table.
CREATE FUNCTION snowflake_ids_internal.column_with_ids(tag text, OUT relation text, OUT attribute text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.qualified_name(coalesce(pg_partition_root(c.relation), c.relation)), c.attribute::text
    FROM snowflake_ids_internal.columns_of_tag(tag) c WHERE pg_relation_size(c.relation) > 0
    ORDER BY 1 LIMIT 1
$$;

-- Returns what the core needs to know about tags of dropped sequences, as JSON. A default that names other objects, too, may name
-- any tag: another session may drop these objects meanwhile, so that the default cannot be printed.
CREATE FUNCTION snowflake_ids_internal.tags_left(tags text[]) RETURNS SETOF text
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
    WITH calls AS MATERIALIZED (
        SELECT d.classid, d.objid FROM pg_depend AS d WHERE d.refclassid = 'pg_proc'::regclass
            AND d.refobjid IN (SELECT to_regprocedure(f) FROM unnest(ARRAY['segment_nextval(text)', 'segment_id(text)', 'segment_nextval_text(text)']) AS f)
    ), written AS MATERIALIZED (
        SELECT CASE WHEN NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = c.classid AND d.objid = c.objid
                AND d.refclassid NOT IN ('pg_type'::regclass, 'pg_proc'::regclass) AND d.refobjid <> f.adrelid)
            THEN pg_get_expr(f.adbin, 0) END AS expression
        FROM calls AS c JOIN pg_attrdef AS f ON c.classid = 'pg_attrdef'::regclass AND f.oid = c.objid
            JOIN pg_class AS t ON t.oid = f.adrelid AND NOT pg_is_other_temp_schema(t.relnamespace)
        UNION ALL SELECT pg_get_expr(t.typdefaultbin, 0) FROM calls AS c JOIN pg_type AS t ON c.classid = 'pg_type'::regclass AND t.oid = c.objid
    )
    SELECT json_build_object('tag', s.tag, 'is_made', s.is_made,
        'is_restricted', EXISTS (SELECT FROM snowflake_ids.segment_restricted AS r WHERE r.tag = s.tag),
        'is_used', EXISTS (SELECT FROM snowflake_ids.sequence_binding AS b WHERE b.tag = s.tag) OR EXISTS (SELECT FROM written AS w
            WHERE w.expression IS NULL OR strpos(w.expression, snowflake_ids_internal.call_with('', s.tag) COLLATE "C") > 0),
        'is_elsewhere', snowflake_ids_internal.has_workers() OR EXISTS (SELECT FROM snowflake_ids.registry_server))::text
    FROM snowflake_ids.segment AS s WHERE s.tag COLLATE "C" = ANY (tags)
$$;

-- Returns a column's default in the form that attach writes. A call by a synonym, such as snowflake_id, is replaced.
CREATE FUNCTION snowflake_ids_internal.default_of(relation regclass, attribute name) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(snowflake_ids_internal.own_default(w.written), w.written)
    -- Only expressions of generated columns name other columns. Printing column names would wait for a lock on the table.
    FROM (SELECT pg_get_expr(d.adbin, CASE WHEN a.attgenerated = '' THEN 0 ELSE d.adrelid END) AS written
        FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = $1 AND a.attname = $2 COLLATE "C" OFFSET 0) AS w
$$;
