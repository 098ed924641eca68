-- Raising all tags above the columns that take their ids, as after a restore of data alone.

-- Returns each table and column that takes ids of a tag: by its default, from a bound sequence, or through a table above it.
-- Leaves out tags whose numbers begin anew with each period, because a column has numbers of many periods.
CREATE FUNCTION snowflake_ids_internal.places_of_tags() RETURNS TABLE (relation regclass, attribute name, tag text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
    WITH bound AS (
        SELECT b.sequence, b.tag FROM snowflake_ids.sequence_binding b
        WHERE b.tag IS NOT NULL AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence))
    ), given (relation, attribute, tag) AS (
        SELECT c.relation, c.attribute, snowflake_ids_internal.tag_of_default(snowflake_ids_internal.default_of(c.relation, c.attribute))
        FROM snowflake_ids_internal.columns_of_tags() c
        UNION SELECT a.attrelid, a.attname, b.tag
        FROM bound b JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = b.sequence AND d.classid = 'pg_attrdef'::regclass
            JOIN pg_attrdef f ON f.oid = d.objid JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
        UNION SELECT a.attrelid, a.attname, b.tag
        FROM bound b JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = b.sequence AND d.refclassid = 'pg_class'::regclass
                AND d.deptype IN ('a', 'i')
            JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    )
    SELECT DISTINCT c.oid::regclass, g.attribute, g.tag
    FROM given g CROSS JOIN LATERAL snowflake_ids_internal.table_and_below(g.relation) m
        JOIN pg_class c ON c.oid = m AND c.relkind IN ('r', 'f') AND NOT pg_is_other_temp_schema(c.relnamespace)
    WHERE snowflake_ids_internal.column_type(c.oid, g.attribute) = ANY (ARRAY['bigint', 'integer', 'smallint']::regtype[])
        AND NOT EXISTS (SELECT FROM snowflake_ids.segment s WHERE s.tag = g.tag AND s.reset IS NOT NULL)
        AND g.tag IS NOT NULL
$$;

CREATE FUNCTION snowflake_ids_internal.tell_not_raised(tag text, message text, detail text, hint text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE WARNING USING
        MESSAGE = format('segment tag "%s" is not raised: %s', left(tag, 128), message),
        DETAIL = coalesce(nullif(detail, ''), 'Other tags are not affected.'),
        HINT = coalesce(nullif(hint, ''), 'Call raise_all again.');
END
$$;

-- Reads all columns before it locks the first row of a tag, so that no call for ids waits for a table to be read.
CREATE FUNCTION snowflake_ids.raise_all() RETURNS TABLE (tag text, highest_id bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    place record;
    stored bigint;
    tags text[] := '{}';
    ids bigint[] := '{}';
    message text;
    detail text;
    hint text;
    former text := current_setting('lock_timeout');
    is_shared boolean;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('raise_all');
    is_shared := EXISTS (SELECT FROM snowflake_ids.registry_server) OR snowflake_ids_internal.has_workers();
    FOR place IN SELECT p.relation, p.attribute, p.tag, c.relowner AS owner FROM snowflake_ids_internal.places_of_tags() p
        JOIN pg_class c ON c.oid = p.relation
    LOOP
        BEGIN
            stored := snowflake_ids_internal.stored_id(place.relation, place.attribute);
            -- Any role may name a tag in a default, and then insert any number.
            IF stored > 0 AND NOT snowflake_ids_internal.may_move_tag(place.owner, place.tag) THEN
                PERFORM snowflake_ids_internal.tell_not_raised(place.tag,
                    format('the owner of table %s may not move it', place.relation),
                    format('The highest id in column "%s" is %s.', place.attribute, stored),
                    format('If these ids are of the tag: SELECT snowflake_ids.segment_raise(%L, %s);', place.tag, stored));
            ELSIF stored > 0 THEN
                tags := array_append(tags, place.tag);
                ids := array_append(ids, stored);
            END IF;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
            PERFORM snowflake_ids_internal.tell_not_raised(place.tag, format('%s: %s', place.relation, message), detail, hint);
        END;
    END LOOP;
    -- The rows of raised tags are locked now, so a row that another transaction has locked is left out.
    PERFORM set_config('lock_timeout', '20ms', true);
    FOR raise_all.tag, raise_all.highest_id IN
        SELECT f.tag, max(f.id) FROM unnest(tags, ids) f (tag, id)
            LEFT JOIN snowflake_ids.segment_status s ON s.database = current_database() AND s.tag = f.tag COLLATE "C"
        GROUP BY f.tag
        -- A tag that is in use gives only ids above its next id, unless other servers have reserved some.
        HAVING coalesce(max(f.id) >= min(coalesce(s.current_next, s.next_first)), true) OR is_shared
        ORDER BY f.tag COLLATE "C"
    LOOP
        BEGIN
            PERFORM snowflake_ids_internal.seed_tag(raise_all.tag, raise_all.highest_id);
            RETURN NEXT;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
            PERFORM snowflake_ids_internal.tell_not_raised(raise_all.tag, message, detail, hint);
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', former, true);
END
$$;
COMMENT ON FUNCTION snowflake_ids.raise_all IS
    'raises all tags above the columns that take their ids, as after a restore of data; returns the raised tags and the highest id of their columns';
