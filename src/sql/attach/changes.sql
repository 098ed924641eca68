-- Changes that attach and detach make.

-- Changes a column's default in a table, its partitions and its children. A row that is inserted directly into a partition
-- gets the partition's default.
CREATE FUNCTION snowflake_ids_internal.set_default(relation regclass, attribute name, change text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.as_owner(m, format('ALTER TABLE ONLY %s ALTER COLUMN %I %s', m, attribute, change))
    FROM unnest(ARRAY(SELECT snowflake_ids_internal.table_and_below(relation))) m;
END
$$;

-- Drops identities, and with them their sequences. With keep_sequence, creates sequences with the same names and options
-- again.
CREATE FUNCTION snowflake_ids_internal.drop_identities(relation regclass, attribute name, keep_sequence boolean)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    member regclass;
    sequence regclass;
    sequence_name text;
    type regtype;
    course record;
    rights aclitem[];
    described text;
    made regclass;
BEGIN
    FOR member IN SELECT b FROM snowflake_ids_internal.table_and_below(relation) b LOOP
        -- Looked up one by one: with a partitioned table's identity go those of its partitions.
        sequence := snowflake_ids_internal.identity_sequence(member, attribute);
        CONTINUE WHEN sequence IS NULL;
        sequence_name := snowflake_ids_internal.qualified_name(sequence);
        SELECT * INTO course FROM snowflake_ids_internal.sequence_course(sequence);
        SELECT c.relacl, obj_description(c.oid, 'pg_class'), s.seqtypid INTO rights, described, type
        FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid WHERE c.oid = sequence;
        PERFORM snowflake_ids_internal.as_owner(member,
            format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', member, attribute));
        IF keep_sequence THEN
            -- With its type, because a sequence that ends at its type's maximum is widened when it is bound.
            made := snowflake_ids_internal.create_sequence(member, attribute, sequence_name, format('AS %s %s', type, course.options));
            PERFORM snowflake_ids_internal.set_sequence(made, course.last_value, course.is_called);
            PERFORM snowflake_ids_internal.set_rights(made, rights, described);
        END IF;
    END LOOP;
END
$$;

-- Creates a sequence that belongs to the table's owner, because a column can own only such a sequence.
CREATE FUNCTION snowflake_ids_internal.create_sequence(relation regclass, attribute name, sequence_name text, options text)
RETURNS regclass LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    column_name text := format('%s.%I', snowflake_ids_internal.qualified_name(relation), attribute);
    made regclass;
BEGIN
    IF NOT snowflake_ids_internal.is_distributed(relation) THEN
        RETURN snowflake_ids_internal.create_sequence_for(relation,
            format('CREATE SEQUENCE %s %s OWNED BY %s', sequence_name, options, column_name));
    END IF;
    -- Citus refuses that, and has nothing against the two one after the other.
    made := snowflake_ids_internal.create_sequence_for(relation, format('CREATE SEQUENCE %s %s', sequence_name, options));
    PERFORM snowflake_ids_internal.as_owner(made,
        format('ALTER SEQUENCE %s OWNED BY %s', snowflake_ids_internal.qualified_name(made), column_name));
    RETURN made;
END
$$;

-- Grants the rights on a sequence again. The owner becomes the grantor of all rights, even if another role had granted them.
CREATE FUNCTION snowflake_ids_internal.set_rights(sequence regclass, rights aclitem[], described text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    on_sequence text := format('ON SEQUENCE %s ', snowflake_ids_internal.qualified_name(sequence));
    has aclitem[];
    as_made aclitem[];
BEGIN
    PERFORM snowflake_ids_internal.as_owner(sequence, format('COMMENT %s IS %L', on_sequence, described))
    WHERE octet_length(described) <= 8000;
    SELECT coalesce(c.relacl, d.acl), d.acl INTO has, as_made
    FROM pg_class c, acldefault('s', c.relowner) AS d (acl) WHERE c.oid = sequence;
    rights := coalesce(rights, as_made);
    IF has @> rights AND rights @> has THEN
        RETURN;
    END IF;
    PERFORM snowflake_ids_internal.as_owner(sequence, format('REVOKE ALL %sFROM %s', on_sequence, a.role))
    FROM (SELECT DISTINCT CASE e.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END
        FROM aclexplode(has) e LEFT JOIN pg_roles r ON r.oid = e.grantee) AS a (role);
    PERFORM snowflake_ids_internal.as_owner(sequence, format('GRANT %s %sTO %s%s', e.privilege_type, on_sequence,
        coalesce(quote_ident(r.rolname), 'PUBLIC'), CASE WHEN e.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END))
    FROM aclexplode(rights) e LEFT JOIN pg_roles r ON r.oid = e.grantee WHERE e.grantee = 0 OR r.rolname IS NOT NULL;
END
$$;

CREATE FUNCTION snowflake_ids_internal.set_sequence(sequence regclass, last_value bigint, is_called boolean) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.as_owner(sequence,
        format('SELECT setval(%L::regclass, %s, %L)', sequence::oid, last_value, is_called))
$$;

-- Drops the sequences that a column owns, except those that other objects use.
CREATE FUNCTION snowflake_ids_internal.drop_sequences(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned regclass;
    users text;
BEGIN
    FOR owned IN SELECT s.sequence FROM snowflake_ids_internal.sequences_of(relation, attribute) s
        WHERE s.owner IS NOT NULL AND NOT snowflake_ids_internal.sequence_is_bound(s.sequence)
    LOOP
        BEGIN
            PERFORM snowflake_ids_internal.as_owner(owned, format('DROP SEQUENCE %s', owned));
        EXCEPTION WHEN dependent_objects_still_exist THEN
            GET STACKED DIAGNOSTICS users = PG_EXCEPTION_DETAIL;
            RAISE NOTICE USING MESSAGE = format('sequence "%s" is kept, because others use it', owned), DETAIL = users;
        END;
    END LOOP;
END
$$;

-- Resumes sequences that were bound when the extension was dropped. Such a sequence's last value is the maximum of bigint,
-- which no sequence reaches by counting.
CREATE FUNCTION snowflake_ids_internal.resume_sequences(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    owned regclass;
    terms pg_sequence;
    stored bigint;
BEGIN
    FOR owned IN SELECT s.sequence FROM snowflake_ids_internal.sequences_of(relation, attribute) s
        WHERE s.owner IS NOT NULL AND NOT snowflake_ids_internal.sequence_is_bound(s.sequence)
            AND snowflake_ids_internal.highest_number(s.sequence) = 9223372036854775807
    LOOP
        SELECT * INTO terms FROM pg_sequence s WHERE s.seqrelid = owned;
        CONTINUE WHEN terms.seqincrement < 0;
        SELECT max(snowflake_ids_internal.as_owner(b, format('SELECT max(%I) FROM ONLY %s', attribute, b))) INTO stored
        FROM snowflake_ids_internal.table_and_below(relation) b;
        CONTINUE WHEN stored = terms.seqmax;
        RAISE NOTICE USING
            MESSAGE = format('sequence "%s" continues above the column''s highest value', owned),
            DETAIL = 'It was at its maximum, where DROP EXTENSION or a dump of the table alone leaves a bound sequence.';
        PERFORM snowflake_ids_internal.lock_relation(owned);
        PERFORM snowflake_ids_internal.sequence_put(owned, greatest(stored, terms.seqstart),
            coalesce(stored >= terms.seqstart, false));
    END LOOP;
END
$$;

-- Restores nextval defaults. A partition or child that has a sequence of its own gets its default from that sequence.
CREATE FUNCTION snowflake_ids_internal.restore_sequence(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass := snowflake_ids_internal.kept_sequence(relation, attribute, highest);
    member regclass;
    own regclass;
BEGIN
    IF sequence IS NULL THEN
        sequence := snowflake_ids_internal.create_sequence(relation, attribute,
            snowflake_ids_internal.free_sequence_name(relation, attribute), '');
    END IF;
    FOR member IN SELECT b FROM snowflake_ids_internal.table_and_below(relation) b LOOP
        own := coalesce(snowflake_ids_internal.kept_sequence(member, attribute, highest), sequence);
        PERFORM snowflake_ids_internal.advance_sequence(own, highest);
        PERFORM snowflake_ids_internal.as_owner(member,
            format('ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT nextval(%L::regclass)', member, attribute, own::oid));
    END LOOP;
END
$$;

-- Restores identities. Children come before their parents, because restoring a table's identity drops the sequences of the
-- tables below it.
CREATE FUNCTION snowflake_ids_internal.restore_identities(relation regclass, attribute name, highest bigint, identities jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    member regclass;
    without text;
BEGIN
    PERFORM snowflake_ids_internal.set_default(relation, attribute, 'DROP DEFAULT');
    FOR member IN SELECT b FROM snowflake_ids_internal.table_and_below(relation) WITH ORDINALITY t (b, place)
        WHERE b = relation OR identities ? b::oid::text ORDER BY place DESC
    LOOP
        PERFORM snowflake_ids_internal.restore_identity(member, attribute, highest, coalesce(identities ->> member::oid::text = 'a', false),
            snowflake_ids_internal.kept_sequence(member, attribute, highest), '');
    END LOOP;
    -- Inheritance children have identities of their own; partitions share their parent's since Postgres 17.
    SELECT string_agg(b::text, ', ' ORDER BY b::text) INTO without
    FROM snowflake_ids_internal.table_and_below(relation) b JOIN pg_attribute a ON a.attrelid = b AND a.attname = attribute COLLATE "C"
    WHERE a.attidentity = '';
    IF without IS NOT NULL THEN
        RAISE NOTICE USING
            MESSAGE = format('tables that inherit from "%s" have no default for column "%s"', relation, attribute),
            DETAIL = format('Rows inserted into them directly need one: %s.', without),
            HINT = 'Detach with kind => ''sequence'' to also give them a default.';
    END IF;
END
$$;

-- Restores an identity. The identity gets the options of the kept sequence. Without a kept sequence, the identity gets
-- `options`.
CREATE FUNCTION snowflake_ids_internal.restore_identity(relation regclass, attribute name, highest bigint, always boolean, kept regclass,
    options text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass;
    course record;
    rights aclitem[];
    described text;
BEGIN
    IF NOT (SELECT a.attnotnull FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C") THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" must be NOT NULL to be an identity', attribute, relation),
            HINT = format('Set it NOT NULL first: ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', relation, attribute);
    END IF;
    IF kept IS NOT NULL THEN
        -- An identity has its column's type.
        PERFORM snowflake_ids_internal.as_owner(kept, format('ALTER SEQUENCE %s AS %s', kept, a.atttypid::regtype))
        FROM pg_sequence s, pg_attribute a
        WHERE s.seqrelid = kept AND a.attrelid = relation AND a.attname = attribute COLLATE "C" AND s.seqtypid <> a.atttypid;
        SELECT * INTO course FROM snowflake_ids_internal.sequence_course(kept);
        options := course.options;
        SELECT c.relacl, obj_description(c.oid, 'pg_class') INTO rights, described FROM pg_class c WHERE c.oid = kept;
        PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
    END IF;
    -- The caller's rights are used, because the owner may lack the right to create a sequence in the schema. No row is
    -- read.
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY %s', relation, attribute,
        CASE WHEN always THEN 'ALWAYS' ELSE 'BY DEFAULT' END, '(' || nullif(options, '') || ')');
    sequence := snowflake_ids_internal.identity_sequence(relation, attribute);
    IF sequence IS NULL THEN
        RAISE object_in_use USING
            MESSAGE = format('the schema of relation "%s" was renamed meanwhile', relation),
            HINT = 'Try again.';
    ELSIF kept IS NOT NULL THEN
        PERFORM snowflake_ids_internal.set_sequence(sequence, course.last_value, course.is_called);
        PERFORM snowflake_ids_internal.set_rights(sequence, rights, described);
    END IF;
    PERFORM snowflake_ids_internal.advance_sequence(sequence, highest);
END
$$;

-- Returns the sequence that a column owns, or null. Widens the sequence to the column's type if the next numbers do not fit.
-- The column may have been an integer when the sequence was created.
CREATE FUNCTION snowflake_ids_internal.kept_sequence(relation regclass, attribute name, highest bigint) RETURNS regclass
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept regclass := (SELECT s.sequence FROM snowflake_ids_internal.sequences_of(relation, attribute) s
        WHERE s.owner = relation ORDER BY s.sequence LIMIT 1);
    type regtype := snowflake_ids_internal.column_type(relation, attribute);
BEGIN
    PERFORM snowflake_ids_internal.as_owner(kept, format('ALTER SEQUENCE %s AS %s', kept, type))
    FROM pg_sequence s
    WHERE s.seqrelid = kept AND s.seqtypid <> type AND highest >= snowflake_ids_internal.type_maximum(s.seqtypid);
    RETURN kept;
END
$$;

-- Returns a name as serial chooses it: truncated to max_identifier_length, and numbered if the name is taken.
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

-- Advances a sequence to a number that the sequence would have reached by its own increment. A descending sequence never
-- reaches this extension's ids.
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
        PERFORM snowflake_ids_internal.set_sequence(sequence, following::bigint, false);
    END IF;
END
$$;
