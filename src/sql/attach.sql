-- Adoption: turning a column that a sequence, an identity or nobody fills into one with our default, and back.
--
-- Everything is done with ALTER TABLE and the like, so what is left dumps, restores and upgrades as any other
-- default. The functions run with the caller's privileges; the table must be the caller's own. They read past
-- no row security: a policy that hides rows from them is an error, as with pg_dump.

CREATE FUNCTION snowflake_ids.attach(relation regclass, "column" name, kind text DEFAULT 'snowflake',
    tag text DEFAULT NULL, drop_sequence boolean DEFAULT true) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
    highest bigint;
    expression text;
BEGIN
    PERFORM snowflake_ids_internal.check_attach(relation, "column", kind, tag, drop_sequence);
    PERFORM snowflake_ids_internal.lock_table(relation);
    PERFORM snowflake_ids_internal.check_column(relation, "column");
    IF kind = 'segment' AND tag IS NULL THEN
        SELECT n.nspname || '.' || c.relname INTO tag
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation;
    END IF;
    expression := snowflake_ids_internal.id_default(kind, tag);
    highest := snowflake_ids_internal.highest_id(relation, "column");
    IF kind = 'segment' THEN
        PERFORM snowflake_ids_internal.check_room_above(relation, "column", highest);
        PERFORM snowflake_ids_internal.seed_tag(tag, highest);
    ELSIF expression IS DISTINCT FROM snowflake_ids_internal.default_of(relation, "column") THEN
        PERFORM snowflake_ids_internal.check_snowflake_above(relation, "column", highest);
    END IF;
    PERFORM snowflake_ids_internal.tell_replaced_defaults(relation, "column", expression);
    PERFORM snowflake_ids_internal.drop_identities(relation, "column", NOT drop_sequence);
    -- Reaches partitions and children too: rows inserted into one directly get its own default.
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', relation, "column", expression);
    IF drop_sequence THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, "column");
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids.attach IS
    'makes a bigint column take ids from snowflake_nextval() or segment_nextval(tag), above all it has';

CREATE FUNCTION snowflake_ids.detach(relation regclass, "column" name, kind text DEFAULT 'sequence') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
DECLARE
    expression text;
    highest bigint;
BEGIN
    PERFORM snowflake_ids_internal.check_detach(relation, "column", kind);
    PERFORM snowflake_ids_internal.lock_table(relation);
    PERFORM snowflake_ids_internal.check_column(relation, "column");
    expression := snowflake_ids_internal.default_of(relation, "column");
    IF snowflake_ids_internal.kind_of_default(expression) IS NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" is not attached', "column", relation),
            DETAIL = CASE WHEN expression IS NULL THEN 'It has no default.'
                ELSE format('Its default is %s.', expression) END,
            HINT = 'Only a default of snowflake_nextval() or segment_nextval(tag) is taken back.';
    END IF;
    IF kind = 'none' THEN
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', relation, "column");
    ELSE
        highest := snowflake_ids_internal.highest_id(relation, "column");
        PERFORM snowflake_ids_internal.check_room_above(relation, "column", highest);
        PERFORM snowflake_ids_internal.tell_numbers_go_on(relation, "column", expression, highest);
        IF kind = 'sequence' THEN
            PERFORM snowflake_ids_internal.restore_sequence(relation, "column", highest);
        ELSE
            PERFORM snowflake_ids_internal.restore_identity(relation, "column", highest);
        END IF;
    END IF;
    PERFORM snowflake_ids_internal.tell_tag_stays(expression);
END
$$;
COMMENT ON FUNCTION snowflake_ids.detach IS
    'takes an attached column''s default back to a sequence, an identity or none';

-- What may be asked for.

CREATE FUNCTION snowflake_ids_internal.check_attach(relation regclass, attribute name, kind text, tag text,
    drop_sequence boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF relation IS NULL OR attribute IS NULL OR kind IS NULL OR drop_sequence IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'relation, column, kind and drop_sequence must not be null';
    ELSIF kind NOT IN ('snowflake', 'segment') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unknown kind "%s"', kind),
            HINT = 'Known kinds are snowflake and segment.';
    ELSIF kind = 'snowflake' AND tag IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'snowflake ids have no tag',
            DETAIL = format('The tag given is "%s".', tag),
            HINT = 'Leave the tag out, or attach with kind => ''segment''.';
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.check_attach IS 'fails where the arguments of attach are not right';

CREATE FUNCTION snowflake_ids_internal.check_detach(relation regclass, attribute name, kind text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF relation IS NULL OR attribute IS NULL OR kind IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'relation, column and kind must not be null';
    ELSIF kind NOT IN ('sequence', 'identity', 'none') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unknown kind "%s"', kind),
            HINT = 'Known kinds are sequence, identity and none.';
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.check_detach IS 'fails where the arguments of detach are not right';

-- ACCESS EXCLUSIVE, as ALTER TABLE takes it: at once, as two sessions that both raise a weaker lock would wait
-- for each other. From here to the commit nobody inserts between the largest id and the new default.
CREATE FUNCTION snowflake_ids_internal.lock_table(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    locked text;
BEGIN
    PERFORM snowflake_ids_internal.check_table(relation);
    -- An older snapshot would not see the rows that came while we waited for the lock.
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE feature_not_supported USING
            MESSAGE = format('a column cannot be attached or detached in a %s transaction',
                current_setting('transaction_isolation')),
            HINT = 'Use a transaction of isolation level read committed.';
    END IF;
    -- A lock is taken by name, and the name may change hands while we wait for it.
    LOOP
        locked := relation::text;
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', locked);
        EXIT WHEN relation::text = locked;
    END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.lock_table IS
    'locks a table and all below it against reading and writing until the transaction ends';

-- A foreign table is refused: others may insert where it really is, and it can't be locked against them.
CREATE FUNCTION snowflake_ids_internal.check_table(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    class pg_class;
BEGIN
    SELECT * INTO class FROM pg_class c WHERE c.oid = relation;
    IF NOT FOUND THEN
        RAISE undefined_table USING
            MESSAGE = format('relation with OID %s does not exist', relation::oid);
    ELSIF class.relkind NOT IN ('r', 'p') THEN
        RAISE wrong_object_type USING
            MESSAGE = format('"%s" is not a table', relation),
            DETAIL = 'Only ordinary and partitioned tables can be attached or detached.';
    ELSIF NOT pg_has_role(class.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of table %s', relation);
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.check_table IS 'fails unless this is a table of the caller''s';

CREATE FUNCTION snowflake_ids_internal.check_column(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_column pg_attribute;
BEGIN
    SELECT * INTO found_column FROM pg_attribute a
    WHERE a.attrelid = relation AND a.attname = attribute AND a.attnum > 0;
    IF NOT FOUND THEN
        RAISE undefined_column USING
            MESSAGE = format('column "%s" of relation "%s" does not exist', attribute, relation);
    ELSIF found_column.atttypid <> 'bigint'::regtype THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('column "%s" of relation "%s" must be bigint', attribute, relation),
            DETAIL = format('It is %s; ids have 64 bits.', found_column.atttypid::regtype),
            HINT = CASE WHEN found_column.atttypid IN ('integer'::regtype, 'smallint'::regtype) THEN
                format('Widen it, which rewrites the table, and likewise the columns that refer to it: '
                    'ALTER TABLE %s ALTER COLUMN %I TYPE bigint;', relation, attribute)
                ELSE 'Attach a column of type bigint.' END;
    ELSIF found_column.attgenerated <> '' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('column "%s" of relation "%s" is a generated column', attribute, relation),
            DETAIL = 'Its values are computed.',
            HINT = 'Attach a column that can be written to.';
    ELSIF found_column.attidentity <> '' AND snowflake_ids_internal.identity_sequence(relation, attribute) IS NULL THEN
        -- Since Postgres 17 a partition has part in its parent's identity.
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" is an identity of its partitioned table',
                attribute, relation),
            DETAIL = 'It cannot be dropped from one partition alone.',
            HINT = 'Attach the partitioned table.';
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.check_column IS 'fails unless the table has this column, and ids fit into it';

CREATE FUNCTION snowflake_ids_internal.check_room_above(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF highest = 9223372036854775807 THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('no ids are left above those of column "%s" of relation "%s"', attribute, relation),
            DETAIL = format('The highest is %s, the end of bigint.', highest),
            HINT = 'Give the rows at the end of the range other ids first.';
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.check_room_above IS 'fails where a column''s ids reach the end of bigint';

CREATE FUNCTION snowflake_ids_internal.check_snowflake_above(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    following bigint;
BEGIN
    EXECUTE format('SELECT %s', snowflake_ids_internal.id_default('snowflake', NULL)) INTO following;
    IF following <= highest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" has ids above those to come', attribute, relation),
            DETAIL = format('The highest is %s; snowflake_nextval() is at %s.', highest, following),
            HINT = 'They may be of another layout: set snowflake_ids.layout to theirs, '
                'or attach with kind => ''segment''.';
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.check_snowflake_above IS
    'fails where snowflake_nextval() is not above the ids of a column';

-- What a column has.

-- Partitions and inheritance children at all depths. Parents come first: an identity is dropped from above.
CREATE FUNCTION snowflake_ids_internal.table_and_below(relation regclass) RETURNS SETOF regclass
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE tree(relid, depth) AS (
        SELECT relation::oid, 0
        UNION ALL
        SELECT i.inhrelid, depth + 1 FROM tree JOIN pg_inherits i ON i.inhparent = relid
    )
    SELECT relid::regclass FROM tree GROUP BY relid ORDER BY max(depth), relid
$$;
COMMENT ON FUNCTION snowflake_ids_internal.table_and_below IS 'a table, its partitions and its inheritance children';

CREATE FUNCTION snowflake_ids_internal.default_of(relation regclass, attribute name) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_get_expr(d.adbin, d.adrelid)
    FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = relation AND a.attname = attribute
$$;
COMMENT ON FUNCTION snowflake_ids_internal.default_of IS 'a column''s default, all names in it qualified';

-- Owned by the column, whether as an identity's or a serial's, or named in its default.
CREATE FUNCTION snowflake_ids_internal.sequences_of(relation regclass, attribute name)
RETURNS TABLE (sequence regclass, owner regclass)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH columns AS (
        SELECT a.attrelid, a.attnum
        FROM snowflake_ids_internal.table_and_below(relation) t
            JOIN pg_attribute a ON a.attrelid = t AND a.attname = attribute
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
    GROUP BY s.oid
$$;
COMMENT ON FUNCTION snowflake_ids_internal.sequences_of IS
    'the sequences of a column and of those below it; owner: the table whose column owns it';

-- Of temporary tables too: their regclass reads without a schema.
CREATE FUNCTION snowflake_ids_internal.qualified_name(relation regclass) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%I.%I', n.nspname, c.relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation
$$;
COMMENT ON FUNCTION snowflake_ids_internal.qualified_name IS 'a relation''s name with its schema, quoted where needed';

CREATE FUNCTION snowflake_ids_internal.identity_sequence(relation regclass, attribute name) RETURNS regclass
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.objid::regclass
    FROM pg_attribute a JOIN pg_depend d ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
    WHERE a.attrelid = relation AND a.attname = attribute AND d.deptype = 'i'
        AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
$$;
COMMENT ON FUNCTION snowflake_ids_internal.identity_sequence IS 'the sequence of an identity column';

-- How a sequence runs, and where it is; the type is left out, as an identity takes its column's.
CREATE FUNCTION snowflake_ids_internal.sequence_course(sequence regclass, OUT options text, OUT last_value bigint,
    OUT is_called boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT format('INCREMENT BY %s MINVALUE %s MAXVALUE %s START WITH %s CACHE %s %s',
        s.seqincrement, s.seqmin, s.seqmax, s.seqstart, s.seqcache,
        CASE WHEN s.seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END)
    INTO options FROM pg_sequence s WHERE s.seqrelid = sequence;
    EXECUTE format('SELECT last_value, is_called FROM %s', sequence) INTO last_value, is_called;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.sequence_course IS
    'the options of a sequence, as CREATE SEQUENCE takes them, and its position';

-- What was taken and not stored counts: it may still be inserted. A descending sequence was highest at its start.
CREATE FUNCTION snowflake_ids_internal.highest_number(sequence regclass) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN NOT c.is_called THEN c.last_value - 1
        WHEN s.seqincrement < 0 THEN greatest(s.seqstart, c.last_value)
        ELSE c.last_value END
    FROM pg_sequence s, snowflake_ids_internal.sequence_course(sequence) c
    WHERE s.seqrelid = sequence
$$;
COMMENT ON FUNCTION snowflake_ids_internal.highest_number IS 'the highest number that a sequence has given';

-- Stored in the table or below, or given by the column's sequences and tags. Negative ids are in nobody's way.
CREATE FUNCTION snowflake_ids_internal.highest_id(relation regclass, attribute name) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    stored bigint;
    numbered bigint;
    tagged bigint;
BEGIN
    EXECUTE format('SELECT max(%I) FROM %s', attribute, relation) INTO stored;
    SELECT max(snowflake_ids_internal.highest_number(s.sequence)) INTO numbered
    FROM snowflake_ids_internal.sequences_of(relation, attribute) s;
    SELECT max(snowflake_ids.segment_raise(t, 0)) INTO tagged
    FROM (SELECT DISTINCT snowflake_ids_internal.tag_of_default(snowflake_ids_internal.default_of(b, attribute)) AS t
        FROM snowflake_ids_internal.table_and_below(relation) b) tags
    WHERE t IS NOT NULL;
    RETURN greatest(stored, numbered, tagged, 0);
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.highest_id IS
    'the highest id that a column has or was given; 0 where there is none above';

-- Our defaults, written as Postgres writes them back, so that they can be recognised.

CREATE FUNCTION snowflake_ids_internal.generator_of(kind text) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.oid::regproc::text
    FROM pg_extension e JOIN pg_proc p ON p.pronamespace = e.extnamespace
    WHERE e.extname = 'snowflake_ids'
        AND (p.proname, p.pronargs) = (kind || '_nextval', CASE kind WHEN 'segment' THEN 1 ELSE 0 END)
$$;
COMMENT ON FUNCTION snowflake_ids_internal.generator_of IS
    'the function that gives ids of a kind, qualified with the extension''s schema';

-- Written as Postgres writes it back (with standard_conforming_strings), which quote_literal does not.
CREATE FUNCTION snowflake_ids_internal.segment_default(generator text, tag text) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%s(''%s''::text)', generator, replace(tag, '''', ''''''))
$$;
COMMENT ON FUNCTION snowflake_ids_internal.segment_default IS 'the default of a column attached to a tag';

CREATE FUNCTION snowflake_ids_internal.id_default(kind text, tag text) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE kind WHEN 'segment' THEN snowflake_ids_internal.segment_default(g, tag) ELSE g || '()' END
    FROM snowflake_ids_internal.generator_of(kind) g
$$;
COMMENT ON FUNCTION snowflake_ids_internal.id_default IS 'the default of an attached column';

CREATE FUNCTION snowflake_ids_internal.kind_of_default(expression text) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN expression = snowflake_ids_internal.id_default('snowflake', NULL) THEN 'snowflake'
        WHEN starts_with(expression, snowflake_ids_internal.generator_of('segment') || '(') THEN 'segment' END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.kind_of_default IS
    'snowflake, segment, or null where the default is not ours';

-- Found by writing every tag's default: text that a user wrote is not taken apart. Null where the tag is gone.
CREATE FUNCTION snowflake_ids_internal.tag_of_default(expression text) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.tag FROM snowflake_ids.segment s, snowflake_ids_internal.generator_of('segment') g
    WHERE snowflake_ids_internal.segment_default(g, s.tag) = expression
$$;
COMMENT ON FUNCTION snowflake_ids_internal.tag_of_default IS 'the tag that a default names';

-- What is changed.

CREATE FUNCTION snowflake_ids_internal.seed_tag(tag text, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known snowflake_ids.segment;
BEGIN
    SELECT * INTO known FROM snowflake_ids.segment s WHERE s.tag = seed_tag.tag;
    IF NOT FOUND THEN
        PERFORM snowflake_ids.segment_create(tag, start => highest + 1);
    ELSIF known.reset IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('segment tag "%s" starts again every %s', tag, known.reset),
            DETAIL = 'A column''s ids would come again.',
            HINT = 'Attach with a tag that has no reset, or none: it is created.';
    ELSIF known.max_value <= highest THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('segment tag "%s" ends before the column''s ids', tag),
            DETAIL = format('Its max_value is %s; the highest id of the column is %s.', known.max_value, highest),
            HINT = 'Raise max_value with snowflake_ids.segment_alter, or attach with another tag.';
    ELSE
        PERFORM snowflake_ids.segment_raise(tag, highest);
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.seed_tag IS 'makes a tag go on above an id, creating it where it is unknown';

-- An identity's sequence goes with it. To keep it is to make another of the same name and course.
CREATE FUNCTION snowflake_ids_internal.drop_identities(relation regclass, attribute name, keep_sequence boolean)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    member regclass;
    sequence regclass;
    sequence_name text;
    course record;
BEGIN
    FOR member IN SELECT b FROM snowflake_ids_internal.table_and_below(relation) b LOOP
        -- Looked up one by one: with a partitioned table's identity go those of its partitions.
        sequence := snowflake_ids_internal.identity_sequence(member, attribute);
        CONTINUE WHEN sequence IS NULL;
        sequence_name := snowflake_ids_internal.qualified_name(sequence);
        SELECT * INTO course FROM snowflake_ids_internal.sequence_course(sequence);
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', member, attribute);
        IF keep_sequence THEN
            PERFORM snowflake_ids_internal.create_sequence(member, attribute, sequence_name, course.options);
            PERFORM setval(sequence_name, course.last_value, course.is_called);
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.drop_identities IS
    'turns identity columns of a table and of those below it into plain ones';

-- Belongs to the table's owner, as it must to be owned by a column, whoever is calling.
CREATE FUNCTION snowflake_ids_internal.create_sequence(relation regclass, attribute name, sequence_name text, options text)
RETURNS regclass LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    table_owner name := (SELECT pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.oid = relation);
BEGIN
    EXECUTE format('CREATE SEQUENCE %s %s', sequence_name, options);
    EXECUTE format('ALTER SEQUENCE %s OWNER TO %I', sequence_name, table_owner);
    EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.%I', sequence_name, relation, attribute);
    RETURN sequence_name::regclass;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.create_sequence IS 'makes a sequence that is owned by a column';

CREATE FUNCTION snowflake_ids_internal.drop_sequences(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned regclass;
    users text;
BEGIN
    FOR owned IN SELECT s.sequence FROM snowflake_ids_internal.sequences_of(relation, attribute) s
        WHERE s.owner IS NOT NULL
    LOOP
        BEGIN
            EXECUTE format('DROP SEQUENCE %s', owned);
        EXCEPTION WHEN dependent_objects_still_exist THEN
            GET STACKED DIAGNOSTICS users = PG_EXCEPTION_DETAIL;
            RAISE NOTICE USING MESSAGE = format('sequence "%s" is kept, as others use it', owned), DETAIL = users;
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.drop_sequences IS
    'drops the sequences that a column and those below it own, unless others use them';

CREATE FUNCTION snowflake_ids_internal.restore_sequence(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass := snowflake_ids_internal.kept_sequence(relation, attribute);
BEGIN
    IF sequence IS NULL THEN
        sequence := snowflake_ids_internal.create_sequence(relation, attribute,
            snowflake_ids_internal.free_sequence_name(relation, attribute), '');
    END IF;
    PERFORM snowflake_ids_internal.advance_sequence(sequence, highest);
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L::regclass)',
        relation, attribute, sequence);
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.restore_sequence IS
    'makes a column take its default from its sequence, kept or new, above an id';

CREATE FUNCTION snowflake_ids_internal.restore_identity(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept regclass := snowflake_ids_internal.kept_sequence(relation, attribute);
    sequence regclass;
    course record;
BEGIN
    IF NOT (SELECT a.attnotnull FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" must be NOT NULL to be an identity',
                attribute, relation),
            HINT = format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', relation, attribute);
    END IF;
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', relation, attribute);
    IF kept IS NULL THEN
        SELECT NULL AS options INTO course;
    ELSE
        SELECT * INTO course FROM snowflake_ids_internal.sequence_course(kept);
        PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
    END IF;
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED BY DEFAULT AS IDENTITY %s', relation, attribute,
        '(' || course.options || ')');
    sequence := snowflake_ids_internal.identity_sequence(relation, attribute);
    IF kept IS NOT NULL THEN
        PERFORM setval(sequence, course.last_value, course.is_called);
    END IF;
    PERFORM snowflake_ids_internal.advance_sequence(sequence, highest);
    PERFORM snowflake_ids_internal.tell_tables_without_identity(relation, attribute);
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.restore_identity IS 'makes a column an identity that goes on above an id';

-- Made wide: a serial of integer leaves a sequence that ends where integers do.
CREATE FUNCTION snowflake_ids_internal.kept_sequence(relation regclass, attribute name) RETURNS regclass
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept regclass := pg_get_serial_sequence(relation::text, attribute);
BEGIN
    IF kept IS NOT NULL THEN
        EXECUTE format('ALTER SEQUENCE %s AS bigint', kept);
    END IF;
    RETURN kept;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.kept_sequence IS
    'the sequence that a column owns, made bigint; null where it has none';

-- As serial names them: cut to fit, and numbered when the name is taken.
CREATE FUNCTION snowflake_ids_internal.free_sequence_name(relation regclass, attribute name) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    longest int := current_setting('max_identifier_length');
    schema_name name;
    stem text;
    suffix text := '_seq';
    taken int := 0;
BEGIN
    SELECT n.nspname, c.relname || '_' || attribute INTO schema_name, stem
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation;
    LOOP
        WHILE octet_length(stem || suffix) > longest LOOP
            stem := left(stem, -1);
        END LOOP;
        EXIT WHEN to_regclass(format('%I.%I', schema_name, stem || suffix)) IS NULL;
        taken := taken + 1;
        suffix := '_seq' || taken;
    END LOOP;
    RETURN format('%I.%I', schema_name, stem || suffix);
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.free_sequence_name IS 'a name for a new sequence of a column';

-- To a number that the sequence would have come to: one that counts in twos keeps to its half. One that counts
-- down is on the other side of our ids.
CREATE FUNCTION snowflake_ids_internal.advance_sequence(sequence regclass, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    terms pg_sequence;
    following numeric;
BEGIN
    SELECT * INTO terms FROM pg_sequence s WHERE s.seqrelid = sequence;
    IF terms.seqincrement > 0 AND snowflake_ids_internal.highest_number(sequence) < highest THEN
        following := terms.seqstart
            + ceil((highest::numeric + 1 - terms.seqstart) / terms.seqincrement) * terms.seqincrement;
        PERFORM setval(sequence, following::bigint, false);
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.advance_sequence IS 'makes a sequence that counts up go on above an id';

-- What the user should know.

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
            IF old <> expression THEN
                PERFORM snowflake_ids_internal.tell_tag_stays(old);
            END IF;
        ELSIF old IS NOT NULL AND NOT EXISTS (SELECT FROM snowflake_ids_internal.sequences_of(relation, attribute) s
            WHERE s.owner IS NOT NULL AND old = format('nextval(%L::regclass)', s.sequence)) THEN
            RAISE NOTICE 'default % of column "%" of relation "%" is replaced', old, attribute, member;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.tell_replaced_defaults IS
    'notices of defaults that are neither ours nor of a sequence that the column owns';

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
COMMENT ON FUNCTION snowflake_ids_internal.tell_tag_stays IS 'a notice of the tag that a former default named';

CREATE FUNCTION snowflake_ids_internal.tell_numbers_go_on(relation regclass, attribute name, expression text,
    highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF highest > 0 AND snowflake_ids_internal.kind_of_default(expression) = 'snowflake' THEN
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" counts on from its highest id', attribute, relation),
            DETAIL = format('It is %s. Snowflake ids that are in the column stay.', highest);
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.tell_numbers_go_on IS 'a notice that a sequence starts above snowflake ids';

-- Inheritance children have identities of their own; partitions share their parent's since Postgres 17.
CREATE FUNCTION snowflake_ids_internal.tell_tables_without_identity(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    without text := (SELECT string_agg(b::text, ', ' ORDER BY b::text)
        FROM snowflake_ids_internal.table_and_below(relation) b
            JOIN pg_attribute a ON a.attrelid = b AND a.attname = attribute
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
COMMENT ON FUNCTION snowflake_ids_internal.tell_tables_without_identity IS
    'a notice of tables that an identity does not reach';
