-- Notices for the user.

-- Reports replaced defaults, except defaults of this extension and defaults that use a sequence that the column owns.
CREATE FUNCTION snowflake_ids_internal.tell_replaced_defaults(relation regclass, attribute name, expression text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    member regclass;
    old text;
BEGIN
    FOR member, old IN SELECT b, snowflake_ids_internal.default_of(b, attribute)
        FROM snowflake_ids_internal.table_and_below(relation) b
    LOOP
        IF snowflake_ids_internal.kind_of_default(old) IS NOT NULL THEN
            PERFORM snowflake_ids_internal.tell_tag_stays(old) WHERE old <> expression COLLATE "C";
        ELSIF old IS NOT NULL AND NOT EXISTS (SELECT FROM snowflake_ids_internal.sequences_of(relation, attribute) s
            WHERE s.owner IS NOT NULL AND old = format('nextval(%L::regclass)', s.sequence)) THEN
            RAISE NOTICE 'default % of column "%" of relation "%" is replaced', old, attribute, member;
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION snowflake_ids_internal.tell_tag_stays(expression text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tag text := snowflake_ids_internal.tag_of_default(expression);
BEGIN
    IF tag IS NOT NULL THEN
        RAISE NOTICE USING
            MESSAGE = format('segment tag "%s" is kept', tag),
            HINT = format('If nothing else uses it: SELECT snowflake_ids.segment_drop(%L);', tag);
    END IF;
END
$$;

-- Reports that other columns use the same tag. Called only if the caller did not name the tag.
CREATE FUNCTION snowflake_ids_internal.tell_shared_tag(relation regclass, attribute name, tag text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other regclass;
    other_attribute name;
BEGIN
    SELECT c.relation, c.attribute INTO other, other_attribute FROM snowflake_ids_internal.columns_of_tag(tag) c
    WHERE c.relation NOT IN (SELECT snowflake_ids_internal.table_and_below(tell_shared_tag.relation))
        OR c.attribute <> tell_shared_tag.attribute COLLATE "C" LIMIT 1;
    IF FOUND THEN
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" shares its segment tag with column "%s" of relation "%s"',
                attribute, relation, other_attribute, other),
            HINT = 'For ids of its own, attach it with a tag of another name.';
    END IF;
END
$$;
