-- This extension's defaults in the form in which PostgreSQL prints them, so that they can be recognised.

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

-- Returns a column's default in the form that attach writes. A call by a synonym, such as snowflake_id, is replaced.
CREATE FUNCTION snowflake_ids_internal.default_of(relation regclass, attribute name) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(snowflake_ids_internal.own_default(w.written), w.written)
    -- Only expressions of generated columns name other columns. Printing column names would wait for a lock on the table.
    FROM (SELECT pg_get_expr(d.adbin, CASE WHEN a.attgenerated = '' THEN 0 ELSE d.adrelid END) AS written
        FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = $1 AND a.attname = $2 COLLATE "C" OFFSET 0) AS w
$$;
