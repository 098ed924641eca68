-- Properties of a column.

-- Returns the table, its partitions and its inheritance children at all levels. Parents come first, because an identity is
-- dropped from the topmost table.
CREATE FUNCTION snowflake_ids_internal.table_and_below(relation regclass) RETURNS SETOF regclass
LANGUAGE plpgsql ROWS 4 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE tree(relid, depth) AS (
        SELECT relation::oid, 0
        UNION -- removes duplicates at each level: a table may have very many paths from the top
        SELECT i.inhrelid, depth + 1 FROM tree JOIN pg_inherits i ON i.inhparent = relid
    )
    SELECT relid::regclass FROM tree GROUP BY relid ORDER BY max(depth), relid;
END
$$;

CREATE FUNCTION snowflake_ids_internal.type_maximum(type regtype) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE $1 WHEN 'smallint'::regtype THEN 32767 WHEN 'integer'::regtype THEN 2147483647 ELSE 9223372036854775807 END
$$;

CREATE FUNCTION snowflake_ids_internal.column_type(relation regclass, attribute name) RETURNS regtype
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.base_type(a.atttypid)
    FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C"
$$;

CREATE FUNCTION snowflake_ids_internal.column_maximum(relation regclass, attribute name) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.type_maximum(snowflake_ids_internal.column_type(relation, attribute))
$$;

-- Returns the sequences of a column, and of this column in the tables below: sequences that the column owns or names in its
-- default. owner is the table whose column owns the sequence.
CREATE FUNCTION snowflake_ids_internal.sequences_of(relation regclass, attribute name)
RETURNS TABLE (sequence regclass, owner regclass)
LANGUAGE sql ROWS 2 SET search_path = pg_catalog, pg_temp AS $$
    WITH columns AS (
        SELECT a.attrelid, a.attnum
        FROM snowflake_ids_internal.table_and_below($1) t JOIN pg_attribute a ON a.attrelid = t AND a.attname = $2 COLLATE "C"
    ), linked AS (
        SELECT d.objid AS relid, c.attrelid AS owner
        FROM columns c JOIN pg_depend d ON d.refobjid = c.attrelid AND d.refobjsubid = c.attnum
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
        UNION ALL
        SELECT d.refobjid, NULL
        FROM columns c JOIN pg_attrdef f ON f.adrelid = c.attrelid AND f.adnum = c.attnum
            JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
        WHERE d.refclassid = 'pg_class'::regclass
    )
    SELECT s.oid::regclass, max(l.owner)::regclass FROM linked l JOIN pg_class s ON s.oid = l.relid AND s.relkind = 'S' GROUP BY s.oid
$$;

-- Returns a table's name with its schema, also for temporary tables, whose regclass prints without a schema.
CREATE FUNCTION snowflake_ids_internal.qualified_name(relation regclass) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%I.%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation
$$;

-- Returns the highest id that is stored in a column of one table.
CREATE FUNCTION snowflake_ids_internal.stored_id(relation regclass, attribute name) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
BEGIN
    RETURN snowflake_ids_internal.as_owner(relation, format('SELECT max(%I) FROM ONLY %s', attribute, relation));
EXCEPTION WHEN undefined_function THEN
    -- The planner also plans index expressions, which may call functions that are not found here.
    RAISE undefined_function USING
        MESSAGE = SQLERRM,
        DETAIL = format('An expression of an index of table %s calls it: %s. The search_path is pg_catalog here.', relation,
            (SELECT coalesce(string_agg(i.indexrelid::regclass::text, ', '), 'none') FROM pg_index i
             WHERE i.indrelid = relation AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))),
        HINT = 'Give the functions of the index a search_path of their own: ALTER FUNCTION ... SET search_path = ...;';
END
$$;
