-- Our defaults, written as Postgres writes them back, so that they can be recognised.

-- Qualified with the extension's schema where defaults are.
CREATE FUNCTION snowflake_ids_internal.function_of(kind text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT CASE WHEN e.extnamespace = 'pg_catalog'::regnamespace THEN '' ELSE e.extnamespace::regnamespace || '.' END
        || kind || '_nextval'
    FROM pg_extension e WHERE e.extname = 'snowflake_ids');
END
$$;

-- Written as Postgres writes it back (with standard_conforming_strings), which quote_literal does not.
CREATE FUNCTION snowflake_ids_internal.call_with(function text, argument text) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%s(''%s''::text)', function, replace(argument COLLATE "C", '''', ''''''))
$$;

-- A name with a dot is quoted, and beside one a name that begins with a quote: else a table of another schema could have the same tag.
CREATE FUNCTION snowflake_ids_internal.default_tag(relation regclass) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(CASE WHEN strpos(part, '.') > 0 OR starts_with(part, '"') AND strpos(n.nspname || c.relname, '.') > 0
        THEN quote_ident(part) ELSE part END, '.' ORDER BY place)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
        unnest(ARRAY[n.nspname::text, c.relname::text]) WITH ORDINALITY parts (part, place)
    WHERE c.oid = relation
$$;

CREATE FUNCTION snowflake_ids_internal.id_default(kind text, tag text, generator text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT CASE WHEN kind COLLATE "C" = 'segment' THEN snowflake_ids_internal.call_with(f, tag)
        WHEN generator IS NOT NULL THEN snowflake_ids_internal.call_with(f, generator)
        ELSE f || '()' END
    FROM snowflake_ids_internal.function_of(kind) f);
END
$$;

-- snowflake, segment, or null: also for functions of these names in other schemas or with other arguments, and for more than one call.
CREATE FUNCTION snowflake_ids_internal.kind_of_default(expression text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT CASE WHEN expression COLLATE "C" = snowflake_ids_internal.id_default('snowflake', NULL) THEN 'snowflake'
        ELSE (SELECT kind
            FROM (SELECT kind, snowflake_ids_internal.function_of(kind) || $q$('$q$ AS before, $q$'::text)$q$ AS behind
                FROM unnest(ARRAY['snowflake', 'segment']) AS kinds (kind)) AS ours
            WHERE starts_with(expression COLLATE "C", before) AND right(expression COLLATE "C", length(behind)) = behind
                -- One literal: quotes within it are doubled.
                AND strpos(replace(substr(expression COLLATE "C", length(before) + 1,
                    greatest(length(expression) - length(before) - length(behind), 0)), $q$''$q$, ''), $q$'$q$) = 0) END);
END
$$;

-- By their default, whether there is such a tag or not. What depends on a function has an index.
CREATE FUNCTION snowflake_ids_internal.columns_of_tag(tag text) RETURNS TABLE (relation regclass, attribute name)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.adrelid::regclass, a.attname
    FROM pg_depend p
    JOIN pg_attrdef d ON d.oid = p.objid
    JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE p.classid = 'pg_attrdef'::regclass AND p.refclassid = 'pg_proc'::regclass
        AND p.refobjid = ANY (ARRAY['segment_nextval(text)', 'segment_id(text)']::regprocedure[])
        -- Many columns may be attached: most are left out by this.
        AND strpos(pg_get_expr(d.adbin, d.adrelid), snowflake_ids_internal.call_with('', tag) COLLATE "C") > 0
        AND snowflake_ids_internal.default_of(d.adrelid, a.attname) = snowflake_ids_internal.id_default('segment', tag) COLLATE "C"
    ORDER BY d.adrelid, d.adnum
$$;

-- A table has rows where its file has pages: to see that takes no right to read them.
CREATE FUNCTION snowflake_ids_internal.column_with_ids(tag text, OUT relation text, OUT attribute text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.qualified_name(coalesce(pg_partition_root(c.relation), c.relation)), c.attribute::text
    FROM snowflake_ids_internal.columns_of_tag(tag) c WHERE pg_relation_size(c.relation) > 0
    ORDER BY 1 LIMIT 1
$$;

-- With a synonym of ours it means the same, and is compared as if it were written as attach writes it.
CREATE FUNCTION snowflake_ids_internal.default_of(relation regclass, attribute name) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT CASE WHEN snowflake_ids_internal.kind_of_default(renamed) IS NULL THEN written ELSE renamed END
    FROM (SELECT written, regexp_replace(written, E'^(snowflake|segment)_id\\(', E'\\1_nextval(') AS renamed
        FROM (SELECT pg_get_expr(d.adbin, d.adrelid) AS written
            FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C") AS w) AS r);
END
$$;
