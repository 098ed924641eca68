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

-- Returns the base type of a domain, bigint for snowflake_id, and any other type unchanged.
CREATE FUNCTION snowflake_ids_internal.base_type(type oid) RETURNS regtype
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    WHILE EXISTS (SELECT FROM pg_type t WHERE t.oid = type AND t.typtype = 'd') LOOP
        type := (SELECT t.typbasetype FROM pg_type t WHERE t.oid = type);
    END LOOP;
    RETURN coalesce(nullif(type, 'snowflake_id'::regtype), 'bigint'::regtype);
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
LANGUAGE plpgsql ROWS 2 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    WITH columns AS (
        SELECT a.attrelid, a.attnum
        FROM snowflake_ids_internal.table_and_below(relation) t
            JOIN pg_attribute a ON a.attrelid = t AND a.attname = attribute COLLATE "C"
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
    SELECT s.oid::regclass, max(l.owner)::regclass
    FROM linked l JOIN pg_class s ON s.oid = l.relid AND s.relkind = 'S'
    GROUP BY s.oid;
END
$$;

-- Returns a table's name with its schema, also for temporary tables, whose regclass prints without a schema.
CREATE FUNCTION snowflake_ids_internal.qualified_name(relation regclass) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%I.%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation
$$;

-- Returns the kind of identity that the column has in each table, or had before its sequence was bound. Keys are oids of
-- tables; values are a for ALWAYS and d for BY DEFAULT.
CREATE FUNCTION snowflake_ids_internal.former_identities(relation regclass, attribute name) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned record;
    identity "char";
    identities jsonb := '{}';
BEGIN
    FOR owned IN SELECT s.sequence, s.owner, a.attidentity
        FROM snowflake_ids_internal.sequences_of(relation, attribute) s
            JOIN pg_attribute a ON a.attrelid = s.owner AND a.attname = attribute COLLATE "C"
    LOOP
        identity := owned.attidentity;
        IF identity = '' THEN
            SELECT b.identity INTO identity FROM snowflake_ids.sequence_binding b WHERE b.sequence = owned.sequence;
        END IF;
        IF identity IN ('a', 'd') THEN
            identities := identities || jsonb_build_object(owned.owner::oid, identity);
        END IF;
    END LOOP;
    RETURN identities;
END
$$;

CREATE FUNCTION snowflake_ids_internal.identity_sequence(relation regclass, attribute name) RETURNS regclass
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.objid::regclass
    FROM pg_attribute a JOIN pg_depend d ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
    WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C" AND d.deptype = 'i'
        AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
$$;

-- Returns the options and the position of a sequence, without the type, because an identity has its column's type.
CREATE FUNCTION snowflake_ids_internal.sequence_course(sequence regclass, OUT options text, OUT last_value bigint, OUT is_called boolean)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('INCREMENT BY %s MINVALUE %s MAXVALUE %s START WITH %s CACHE %s %s', s.seqincrement, s.seqmin, s.seqmax, s.seqstart,
        s.seqcache, CASE WHEN s.seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END), p.last_value, p.is_called
    FROM pg_sequence s, snowflake_ids_internal.sequence_position($1) p WHERE s.seqrelid = $1
$$;

-- Returns the highest number of a sequence, including numbers that were issued and may not be stored yet. The highest number
-- of a descending sequence is its start.
CREATE FUNCTION snowflake_ids_internal.highest_number(sequence regclass) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bound snowflake_ids.sequence_binding;
    highest bigint;
BEGIN
    SELECT * INTO bound FROM snowflake_ids.sequence_binding b WHERE b.sequence = highest_number.sequence
        AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence));
    IF FOUND AND bound.tag IS NULL THEN
        EXECUTE format('SELECT %s', snowflake_ids_internal.id_default('snowflake', NULL, bound.generator)) INTO highest;
    ELSIF NOT FOUND THEN
        SELECT CASE WHEN NOT p.is_called THEN p.last_value - 1
            WHEN s.seqincrement < 0 THEN greatest(s.seqstart, p.last_value)
            ELSE p.last_value END
        INTO highest FROM pg_sequence s, snowflake_ids_internal.sequence_position(sequence) p WHERE s.seqrelid = sequence;
    ELSIF EXISTS (SELECT FROM snowflake_ids.registry_server) OR EXISTS (SELECT FROM snowflake_ids.segment s WHERE s.tag = bound.tag) THEN
        highest := snowflake_ids_internal.highest_of_tag(bound.tag);
    ELSE
        -- Only the tag tells which ids the sequence has given.
        RAISE undefined_object USING
            MESSAGE = format('segment tag "%s" of sequence "%s" does not exist', bound.tag, sequence),
            DETAIL = 'The sequence has given ids of this tag, and must continue above them.',
            HINT = format('Create the tag again, above all ids that are in use: SELECT snowflake_ids.segment_create(%L, start => ...);', bound.tag);
    END IF;
    RETURN greatest(highest, bound.last_number);
END
$$;

-- Returns the highest id of a tag that this database has reserved or received.
CREATE FUNCTION snowflake_ids_internal.highest_of_tag(tag text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        RETURN (SELECT max(r.max_id) FROM snowflake_ids.received r WHERE r.tag = highest_of_tag.tag COLLATE "C");
    END IF;
    RETURN snowflake_ids.segment_raise(tag, 0);
END
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

-- Returns the highest id that is stored in the table or in tables below, or was issued by the column's sequences and tags.
-- Ignores negative ids.
CREATE FUNCTION snowflake_ids_internal.highest_id(relation regclass, attribute name) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    members regclass[] := ARRAY(SELECT b FROM snowflake_ids_internal.table_and_below(relation) b);
    member regclass;
    looked_at bigint;
    stored bigint;
BEGIN
    FOR member, looked_at IN SELECT m, place - 1 FROM unnest(members) WITH ORDINALITY t (m, place) LOOP
        PERFORM snowflake_ids_internal.progress_tables(looked_at, cardinality(members));
        stored := greatest(stored, snowflake_ids_internal.stored_id(member, attribute));
    END LOOP;
    RETURN greatest(stored, 0,
        (SELECT max(snowflake_ids_internal.highest_number(s.sequence)) FROM snowflake_ids_internal.sequences_of(relation, attribute) s),
        -- Any role may name a tag in a default. The position of another role's tag must not be revealed.
        (SELECT max(snowflake_ids_internal.highest_of_tag(t))
            FROM (SELECT DISTINCT c.relowner,
                    snowflake_ids_internal.tag_of_default(snowflake_ids_internal.default_of(b, attribute COLLATE "C"))
                FROM unnest(members) b JOIN pg_class c ON c.oid = b) tags (owner, t)
            WHERE t IS NOT NULL AND snowflake_ids_internal.may_take_ids(owner, t)));
END
$$;
