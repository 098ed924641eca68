-- Sequences that several columns or functions use. Such a sequence is bound, and the columns keep their defaults. All users
-- then get ids from the same source: the columns, direct calls of nextval, and functions that call nextval.

-- Returns other columns that use a sequence in their default or own it, and the highest number that they can hold. Columns
-- of the relation and the tables below do not count.
CREATE FUNCTION snowflake_ids_internal.others_of_sequence(sequence regclass, relation regclass, attribute name)
RETURNS TABLE (other regclass, other_attribute name, type regtype, most bigint)
LANGUAGE plpgsql ROWS 2 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    WITH named (relation, number) AS (
        SELECT f.adrelid, f.adnum
        -- OFFSET 0 keeps the planner from reading all rows of pg_attrdef in pg_depend when the catalog has no statistics.
        FROM (SELECT d.classid, d.objid FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $1 OFFSET 0) d
            JOIN pg_attrdef f ON f.oid = d.objid
        WHERE d.classid = 'pg_attrdef'::regclass
        UNION
        SELECT d.refobjid, d.refobjsubid::smallint FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = $1 AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
            AND d.refobjsubid > 0
    ), used AS (
        SELECT n.relation::regclass AS relation, a.attname AS attribute, a.atttypid AS type
        FROM named n JOIN pg_attribute a ON a.attrelid = n.relation AND a.attnum = n.number
            JOIN pg_class c ON c.oid = n.relation
        WHERE (n.relation NOT IN (SELECT snowflake_ids_internal.table_and_below($2)) OR a.attname <> $3 COLLATE "C")
            -- Any role may name a sequence in a default by its oid.
            AND has_sequence_privilege(c.relowner, $1, 'USAGE') AND NOT pg_is_other_temp_schema(c.relnamespace)
    ), types AS MATERIALIZED (
        SELECT t.type, b AS base, snowflake_ids_internal.type_maximum(b) AS most
        FROM (SELECT DISTINCT u.type FROM used u) t, snowflake_ids_internal.base_type(t.type) b
    )
    SELECT u.relation, u.attribute, t.base, t.most FROM used u JOIN types t ON t.type = u.type
    ORDER BY 4, u.relation::text, u.attribute;
END
$$;

-- Returns whether a default, as the server prints it, is nextval of this sequence.
CREATE FUNCTION snowflake_ids_internal.is_default_of(expression text, sequence regclass) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
    SELECT expression COLLATE "C" = format('nextval(''%s''::regclass)', replace($2::text, '''', ''''''))
$$;

-- Returns the sequence of a column's default if the column is not the sequence's only user. A bound sequence counts as
-- shared, because it has its own tag or generator. A sequence that no column owns also counts as shared, because other code
-- may call nextval for it.
CREATE FUNCTION snowflake_ids_internal.shared_sequence(relation regclass, attribute name) RETURNS regclass
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.sequence FROM snowflake_ids_internal.sequences_of($1, $2) s
    WHERE snowflake_ids_internal.is_default_of(snowflake_ids_internal.default_of($1, $2), s.sequence)
        AND (s.owner IS NULL OR snowflake_ids_internal.sequence_is_bound(s.sequence)
            OR EXISTS (SELECT FROM snowflake_ids_internal.others_of_sequence(s.sequence, $1, $2)))
$$;

-- Fails if a sequence with several users cannot be bound for a column. The plan runs this check without a lock;
-- attach_shared repeats the check under the lock.
CREATE FUNCTION snowflake_ids_internal.check_shared(relation regclass, attribute name, shared regclass, kind text, tag text,
    generator text, sequence text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    bound snowflake_ids.sequence_binding;
    obstacle record;
    member regclass;
BEGIN
    IF sequence COLLATE "C" <> 'redirect' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" has other users than column "%s" of relation "%s"', shared, attribute, relation),
            DETAIL = 'If the sequence is not bound, the other users still get its own numbers.',
            HINT = format('Omit the argument sequence => %L, so that the sequence is bound.', left(sequence, 128));
    END IF;
    SELECT b INTO member FROM snowflake_ids_internal.table_and_below(relation) b
    WHERE NOT snowflake_ids_internal.is_default_of(snowflake_ids_internal.default_of(b, attribute), shared) LIMIT 1;
    IF FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('default of column "%s" of relation "%s" does not use sequence "%s"', attribute, member, shared),
            DETAIL = format('The default of relation "%s" uses the sequence. Binding a sequence that has several users does not change defaults.', relation),
            HINT = 'First set this default to nextval() of the sequence, or drop the default.';
    END IF;
    PERFORM snowflake_ids_internal.sequence_check_redirects();
    PERFORM snowflake_ids_internal.sequence_check_owned(shared);
    -- The caller may be a superuser, and the table's owner may have named another role's sequence in the default.
    IF NOT EXISTS (SELECT FROM pg_class t, pg_class s WHERE t.oid = relation AND s.oid = shared AND pg_has_role(t.relowner, s.relowner, 'USAGE')) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('table owner must be owner of sequence "%s"', shared),
            DETAIL = format('Column "%s" of relation "%s" is not the only user of the sequence.', attribute, relation),
            HINT = 'Ask the owner of the sequence to bind it with snowflake_ids.bind_sequence.';
    END IF;
    SELECT * INTO bound FROM snowflake_ids.sequence_binding b
    WHERE b.sequence = shared AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(shared));
    IF FOUND AND (bound.tag IS NULL) <> (kind COLLATE "C" = 'snowflake') OR tag <> bound.tag COLLATE "C"
        OR FOUND AND kind COLLATE "C" = 'snowflake' AND generator IS DISTINCT FROM bound.generator COLLATE "C"
    THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" is bound to other ids', shared),
            DETAIL = CASE WHEN bound.tag IS NOT NULL THEN format('It gives ids of segment tag "%s".', bound.tag)
                WHEN bound.generator IS NOT NULL THEN format('It gives ids of generator "%s".', bound.generator)
                ELSE 'It gives snowflake ids.' END,
            HINT = format('Attach the column with the kind, tag and generator of the sequence, or first SELECT snowflake_ids.unbind_sequence(%L);', shared);
    END IF;
    PERFORM snowflake_ids_internal.check_others_of_sequence(shared, relation, attribute,
        CASE kind COLLATE "C" WHEN 'snowflake' THEN snowflake_ids_internal.column_maximum(relation, attribute) END);
    SELECT * INTO obstacle FROM snowflake_ids_internal.sequence_obstacle(shared, true);
    IF obstacle.message IS NOT NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = obstacle.message, DETAIL = obstacle.detail, HINT = obstacle.hint;
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.attach_shared(relation regclass, attribute name, shared regclass, kind text, tag text,
    generator text, sequence text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    bound snowflake_ids.sequence_binding;
    highest bigint;
    most bigint;
    former record;
    holders text;
BEGIN
    PERFORM snowflake_ids_internal.sequence_check_owned(shared);
    PERFORM snowflake_ids_internal.lock_relation(shared);
    PERFORM snowflake_ids_internal.check_shared(relation, attribute, shared, kind, tag, generator, sequence);
    SELECT least(snowflake_ids_internal.column_maximum(relation, attribute), min(o.most)) INTO most
    FROM snowflake_ids_internal.others_of_sequence(shared, relation, attribute) o;
    SELECT * INTO bound FROM snowflake_ids.sequence_binding b
    WHERE b.sequence = shared AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(shared));
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'searching for the highest id');
    highest := snowflake_ids_internal.highest_id(relation, attribute);
    IF bound.sequence IS NULL THEN
        -- The columns' types now limit the numbers, not the sequence's own type.
        SELECT * INTO former FROM snowflake_ids_internal.sequence_make_fit(shared);
        PERFORM snowflake_ids_internal.advance_sequence(shared, highest);
        PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'raising the tag');
        IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
            tag := snowflake_ids_internal.default_tag(shared);
            PERFORM snowflake_ids_internal.check_unnamed_tag(shared, tag);
        END IF;
        PERFORM snowflake_ids_internal.sequence_bind(shared, kind, tag, generator, most);
        PERFORM snowflake_ids_internal.sequence_remember(shared, former.type, former.cycles, former.unlogged, NULL);
    ELSIF bound.tag IS NOT NULL THEN
        tag := bound.tag;
        PERFORM snowflake_ids_internal.seed_tag(tag, highest, most, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = shared));
    ELSE
        PERFORM snowflake_ids_internal.check_snowflake_above(relation, attribute, highest,
            snowflake_ids_internal.id_default(kind, NULL, generator));
    END IF;
    RAISE NOTICE USING
        MESSAGE = format('sequence "%s" gives the ids, and column "%s" of relation "%s" keeps its default', shared, attribute, relation),
        DETAIL = 'The column is not its only user.';
    SELECT string_agg(DISTINCT quote_ident(pg_get_userbyid(a.grantee)), ', ') INTO holders
    FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = shared AND a.privilege_type IN ('USAGE', 'UPDATE')
        AND a.grantee NOT IN (0, c.relowner) AND EXISTS (SELECT FROM snowflake_ids.segment_restricted r WHERE r.tag = attach_shared.tag);
    IF holders IS NOT NULL THEN
        RAISE NOTICE USING
            MESSAGE = format('roles that may use sequence "%s" may need privileges on segment tag "%s"', shared, left(tag, 128)),
            DETAIL = format('The tag is restricted. These roles have rights on the sequence: %s.', holders),
            HINT = 'Grant them USAGE with snowflake_ids.segment_grant.';
    END IF;
END
$$;
