-- Notices for the user.

-- Of defaults that are neither ours nor of a sequence that the column owns.
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
            IF old <> expression COLLATE "C" THEN
                PERFORM snowflake_ids_internal.tell_tag_stays(old);
            END IF;
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
            MESSAGE = format('segment tag "%s" stays', tag),
            HINT = format('Where nothing else uses it: SELECT snowflake_ids.segment_drop(%L);', tag);
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.tell_numbers_go_on(relation regclass, attribute name, expression text,
    highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF highest > 0 AND snowflake_ids_internal.kind_of_default(expression) COLLATE "C" = 'snowflake' THEN
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" counts on from its highest id', attribute, relation),
            DETAIL = format('It is %s. Snowflake ids that are in the column stay.', highest);
    END IF;
END
$$;

-- Inheritance children have identities of their own; partitions share their parent's since Postgres 17.
CREATE FUNCTION snowflake_ids_internal.tell_tables_without_identity(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    without text := (SELECT string_agg(b::text, ', ' ORDER BY b::text)
        FROM snowflake_ids_internal.table_and_below(relation) b
            JOIN pg_attribute a ON a.attrelid = b AND a.attname = attribute COLLATE "C"
        WHERE a.attidentity = '');
BEGIN
    IF without IS NOT NULL THEN
        RAISE NOTICE USING
            MESSAGE = format('tables below "%s" have no default for column "%s"', relation, attribute),
            DETAIL = format('Rows inserted into them directly need one: %s.', without),
            HINT = 'A sequence serves them too: detach with kind => ''sequence''.';
    END IF;
END
$$;

-- They ask the registry when they need ids; what they have until then is theirs.
CREATE FUNCTION snowflake_ids_internal.tell_other_servers(tag text, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF highest > 0 THEN
        RAISE NOTICE USING
            MESSAGE = format('other servers may still give ids of segment tag "%s" up to %s', tag, highest),
            DETAIL = 'What they had reserved before the registry was told of the column''s ids is theirs.',
            HINT = format('On each other server that uses the registry: SELECT snowflake_ids.segment_discard(%L);', tag);
    END IF;
END
$$;

-- By a name that was made up, that is: a caller that names a tag means it.
CREATE FUNCTION snowflake_ids_internal.tell_shared_tag(relation regclass, attribute name, tag text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other regclass;
    other_attribute name;
    expression text := snowflake_ids_internal.id_default('segment', tag);
BEGIN
    SELECT d.adrelid, a.attname INTO other, other_attribute
    FROM pg_depend p JOIN pg_attrdef d ON p.classid = 'pg_attrdef'::regclass AND d.oid = p.objid
        JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE p.refclassid = 'pg_proc'::regclass AND p.refobjid IN
            ('pg_catalog.segment_nextval(text)'::regprocedure, 'pg_catalog.segment_id(text)'::regprocedure)
        -- Many columns may be attached: most are left out by this.
        AND strpos(pg_get_expr(d.adbin, d.adrelid), snowflake_ids_internal.call_with('', tag) COLLATE "C") > 0
        AND snowflake_ids_internal.default_of(d.adrelid, a.attname) = expression COLLATE "C"
        AND (d.adrelid NOT IN (SELECT snowflake_ids_internal.table_and_below(relation)) OR a.attname <> attribute COLLATE "C")
    ORDER BY d.adrelid, d.adnum LIMIT 1;
    IF FOUND THEN
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" shares its segment tag with column "%s" of relation "%s"',
                attribute, relation, other_attribute, other),
            HINT = 'For ids of its own, attach it with a tag of another name.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.tell_other_of_sequence(sequence regclass, other regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE NOTICE USING
        MESSAGE = format('column "%s" of relation "%s" gets ids, too', attribute, other),
        DETAIL = format('It takes them from sequence "%s".', sequence);
END
$$;
