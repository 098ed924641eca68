-- Sequences that several columns or functions use. Such a sequence is bound, and the columns keep their defaults. All users
-- then get ids from the same source: the columns, direct calls of nextval, and functions that call nextval.

CREATE FUNCTION snowflake_ids_internal.attach_shared(relation regclass, attribute name, shared regclass, kind text, tag text,
    generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    bound snowflake_ids.sequence_binding;
    highest bigint;
    most bigint := snowflake_ids_internal.sequence_most(shared);
    former record;
    holders text;
BEGIN
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
