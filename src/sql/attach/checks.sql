-- Checks of the arguments of attach and detach, and of the column.

DO $$
BEGIN
    IF NOT snowflake_ids_internal.is_preloaded() THEN
        RAISE WARNING USING
            MESSAGE = 'snowflake_ids issues no ids until it is loaded via shared_preload_libraries',
            DETAIL = 'This server can decode ids, but cannot issue them.',
            HINT = 'Add snowflake_ids to shared_preload_libraries and restart the server.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.check_kind(kind text, tag text, generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF kind IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'kind must not be null';
    ELSIF kind COLLATE "C" NOT IN ('snowflake', 'segment') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unrecognized kind "%s"', left(kind, 128)),
            HINT = 'Known kinds are snowflake and segment.';
    ELSIF kind COLLATE "C" = 'snowflake' AND tag IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'snowflake ids have no tag',
            DETAIL = format('The tag given is "%s".', tag),
            HINT = 'Omit the tag, or use kind => ''segment''.';
    ELSIF kind COLLATE "C" = 'segment' AND generator IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'ids of a segment tag have no generator',
            DETAIL = format('The generator given is "%s".', left(generator, 128)),
            HINT = 'Omit the generator, or use kind => ''snowflake''.';
    END IF;
    PERFORM snowflake_ids_internal.generator_keep(generator) WHERE generator IS NOT NULL;
    -- A default that gives no ids would make each insert fail.
    IF NOT snowflake_ids_internal.is_preloaded() THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'snowflake_ids must be loaded via shared_preload_libraries',
            DETAIL = 'snowflake_ids.attach() needs ids, which this server issues only if the library was loaded at server start.',
            HINT = 'Add snowflake_ids to shared_preload_libraries and restart the server.';
    END IF;
END
$$;

-- Locks the tables in ACCESS EXCLUSIVE mode, which ALTER TABLE needs. Two sessions that upgraded a weaker lock would deadlock.
-- Until the commit, no session can insert rows, create a view on a table, change a table's owner, or add a child table.
CREATE FUNCTION snowflake_ids_internal.lock_table(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    locked regclass[] := '{}';
    members regclass[];
BEGIN
    PERFORM snowflake_ids_internal.check_table(relation, 'r', 'p');
    -- A snapshot taken before the lock would miss rows that were inserted during the wait for the lock.
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot attach or detach a column in a %s transaction', current_setting('transaction_isolation')),
            HINT = 'Use a transaction of isolation level read committed.';
    END IF;
    -- Repeats until all tables below are locked.
    LOOP
        members := ARRAY(SELECT snowflake_ids_internal.table_and_below(relation));
        EXIT WHEN members <@ locked;
        PERFORM snowflake_ids_internal.check_table(m, 'r', 'p', 'f'), snowflake_ids_internal.lock_relation(m)
        FROM unnest(members) m WHERE m <> ALL (locked);
        locked := locked || members;
    END LOOP;
    -- Everything may have changed during the wait for a lock.
    PERFORM snowflake_ids_internal.check_tables(relation);
END
$$;

CREATE FUNCTION snowflake_ids_internal.check_tables(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.check_table(relation, 'r', 'p');
    PERFORM snowflake_ids_internal.check_table(m, 'r', 'p', 'f') FROM snowflake_ids_internal.table_and_below(relation) m;
END
$$;

-- Checks the kind of a table. Refuses a foreign table, except as a partition: other servers may insert into the remote
-- table, and no lock here stops them.
CREATE FUNCTION snowflake_ids_internal.check_table(relation regclass, VARIADIC kinds "char"[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    class pg_class;
BEGIN
    SELECT * INTO class FROM pg_class c WHERE c.oid = relation;
    IF NOT FOUND THEN
        RAISE undefined_table USING MESSAGE = format('relation with OID %s does not exist', relation::oid);
    ELSIF class.relkind <> ALL (kinds) THEN
        RAISE wrong_object_type USING
            MESSAGE = format('"%s" is not a table', relation),
            DETAIL = 'Only columns of ordinary and partitioned tables can be attached or detached.';
    ELSIF NOT pg_has_role(class.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', relation);
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.check_column(relation regclass, attribute name, kind text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_column pg_attribute;
    base regtype := snowflake_ids_internal.column_type(relation, attribute);
BEGIN
    SELECT * INTO found_column FROM pg_attribute a
    WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C" AND a.attnum > 0;
    IF NOT FOUND THEN
        RAISE undefined_column USING
            MESSAGE = format('column "%s" of relation "%s" does not exist', attribute, relation);
    ELSIF base <> 'bigint'::regtype
        AND NOT (kind COLLATE "C" = 'segment' AND base IN ('integer'::regtype, 'smallint'::regtype)) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('column "%s" of relation "%s" must be bigint', attribute, relation),
            DETAIL = format('It is %s; ids have 64 bits.', found_column.atttypid::regtype),
            HINT = CASE WHEN base IN ('integer'::regtype, 'smallint'::regtype) THEN
                format('Widen the column, and all columns that reference it, which rewrites their tables: '
                    'ALTER TABLE %s ALTER COLUMN %I TYPE bigint.', relation, attribute)
                || ' Or attach the column with kind => ''segment''.'
                ELSE 'Attach a column of type bigint.' END;
    ELSIF found_column.attgenerated <> '' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('column "%s" of relation "%s" is a generated column', attribute, relation),
            DETAIL = 'Its values are computed.',
            HINT = 'Attach a column that can be written to.';
    ELSIF found_column.attidentity <> '' AND snowflake_ids_internal.identity_sequence(relation, attribute) IS NULL THEN
        -- Since Postgres 17, a partition shares its parent's identity.
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" is an identity of its partitioned table',
                attribute, relation),
            DETAIL = 'The identity cannot be dropped from one partition alone.',
            HINT = 'Call snowflake_ids.attach for the partitioned table.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.may_move_tag(role oid, tag text) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT has_table_privilege($1, 'snowflake_ids.segment', 'UPDATE') OR EXISTS (SELECT FROM snowflake_ids.segment_privilege p
        WHERE p.tag = $2 COLLATE "C" AND (p.grantee = 0 OR pg_has_role($1, p.grantee::oid, 'USAGE'))
            AND string_to_array(p.privileges, ',') && ARRAY['UPDATE', 'OWNER'])
$$;

CREATE FUNCTION snowflake_ids_internal.may_take_ids(role oid, tag text) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM snowflake_ids.segment_restricted r WHERE r.tag = $2 COLLATE "C")
        OR has_table_privilege($1, 'snowflake_ids.segment', 'UPDATE') OR EXISTS (SELECT FROM snowflake_ids.segment_privilege p
        WHERE p.tag = $2 COLLATE "C" AND (p.grantee = 0 OR pg_has_role($1, p.grantee::oid, 'USAGE'))
            AND string_to_array(p.privileges, ',') && ARRAY['USAGE', 'UPDATE', 'OWNER'])
$$;

-- Checks the right to a tag whose name comes from a table or a sequence, not from the caller. The caller may be a superuser,
-- and the table's owner may have chosen a table name that leads to another role's tag.
CREATE FUNCTION snowflake_ids_internal.check_unnamed_tag(relation regclass, tag text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM snowflake_ids.segment s WHERE s.tag = check_unnamed_tag.tag COLLATE "C")
        AND NOT (SELECT snowflake_ids_internal.may_move_tag(c.relowner, check_unnamed_tag.tag) FROM pg_class c WHERE c.oid = relation)
    THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for segment tag "%s"', left(tag, 128)),
            DETAIL = format('The tag is the default for "%s", whose owner does not have the UPDATE privilege on the tag.', relation),
            HINT = 'Pass another tag in the call. To use this tag nevertheless, pass its name.';
    END IF;
END
$$;

-- Fails before any change if INSERT would fail with the new ids, or if a use of the column would be lost.
CREATE FUNCTION snowflake_ids_internal.check_uses(relation regclass, attribute name, kind text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    members regclass[] := ARRAY(SELECT snowflake_ids_internal.table_and_below(relation));
    most bigint := CASE WHEN kind COLLATE "C" = 'segment' THEN snowflake_ids_internal.column_maximum(relation, attribute)
        ELSE 9223372036854775807 END;
    other record;
BEGIN
    SELECT c.conrelid::regclass AS member, c.confrelid::regclass AS of INTO other
    FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attname = attribute COLLATE "C"
    WHERE c.contype = 'f' AND c.conrelid = ANY (members) AND c.conkey = ARRAY[a.attnum] AND NOT a.atthasdef AND a.attidentity = '' LIMIT 1;
    IF FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" is a foreign key without a default', attribute, other.member),
            DETAIL = format('The values of the column come from table %s.', other.of),
            HINT = 'Attach the column that the foreign key references.';
    END IF;
    SELECT b AS member, snowflake_ids_internal.default_of(b, attribute) AS expression INTO other
    FROM unnest(members) b JOIN pg_attribute a ON a.attrelid = b AND a.attname = attribute COLLATE "C"
        JOIN pg_attrdef f ON f.adrelid = b AND f.adnum = a.attnum
        -- OFFSET 0 keeps the planner from first reading all rows of pg_attrdef in pg_depend when the catalog has no statistics.
        CROSS JOIN LATERAL (SELECT d.refobjid FROM pg_depend d WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
            AND d.refclassid = 'pg_class'::regclass OFFSET 0) d
        JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S'
    WHERE NOT snowflake_ids_internal.is_default_of(snowflake_ids_internal.default_of(b, attribute), s.oid::regclass)
    LIMIT 1;
    IF FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('default of column "%s" of relation "%s" is not a plain nextval() of a sequence', attribute, other.member),
            DETAIL = format('It is %s.', other.expression),
            HINT = 'Bind the sequence with snowflake_ids.bind_sequence, or drop the default first.';
    END IF;
    FOR other IN
        SELECT c.conrelid::regclass AS relation, a.attname AS attribute, a.atttypid::regtype AS type,
            snowflake_ids_internal.type_maximum(snowflake_ids_internal.base_type(a.atttypid)) AS most
        -- pg_depend has an index that finds the constraints that depend on a table.
        FROM (SELECT DISTINCT d.objid FROM pg_depend d WHERE d.classid = 'pg_constraint'::regclass AND d.refclassid = 'pg_class'::regclass
                AND d.refobjid = ANY (members)) AS d JOIN pg_constraint c ON c.oid = d.objid
            CROSS JOIN LATERAL unnest(c.conkey, c.confkey) AS k (own, other)
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.own
            JOIN pg_attribute r ON r.attrelid = c.confrelid AND r.attnum = k.other AND r.attname = check_uses.attribute COLLATE "C"
        WHERE c.contype = 'f' AND c.conparentid = 0 AND c.confrelid = ANY (members)
            AND snowflake_ids_internal.base_type(a.atttypid) IN ('smallint'::regtype, 'integer'::regtype)
        ORDER BY 1, 2
    LOOP
        CONTINUE WHEN other.most >= most;
        IF kind COLLATE "C" = 'snowflake' THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('column "%s" of relation "%s" cannot hold ids of the column that it references', other.attribute, other.relation),
                DETAIL = format('The maximum of type %s is %s.', other.type, other.most),
                HINT = format('Widen it first: ALTER TABLE %s ALTER COLUMN %I TYPE bigint.', other.relation, other.attribute);
        END IF;
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" references the column, and cannot hold ids above %s', other.attribute, other.relation, other.most),
            HINT = 'Widen it before ids reach this value.';
    END LOOP;
    FOR other IN
        SELECT format('constraint "%s" of relation "%s"', c.conname, c.conrelid::regclass) AS name, pg_get_constraintdef(c.oid) AS definition,
            c.conrelid::regclass AS relation, c.conname
        FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attname = attribute COLLATE "C"
        WHERE c.contype = 'c' AND c.conrelid = ANY (members) AND c.conkey = ARRAY[a.attnum] AND c.coninhcount = 0
        UNION ALL
        SELECT format('constraint "%s" of domain %s', c.conname, c.contypid::regtype), pg_get_constraintdef(c.oid), NULL, c.conname
        FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = relation AND a.attname = attribute COLLATE "C" AND a.atttypid = c.contypid
        WHERE c.contype = 'c'
        ORDER BY 3, 4
    LOOP
        RAISE NOTICE USING
            MESSAGE = other.name || ' applies to new ids',
            DETAIL = left(other.definition, 1000);
    END LOOP;
    FOR other IN
        SELECT t.tgname, t.tgrelid::regclass AS relation, s.sequence
        FROM pg_trigger t JOIN snowflake_ids_internal.sequences_of(relation, attribute) s ON s.owner = t.tgrelid
            JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attname = attribute COLLATE "C" AND NOT a.atthasdef AND a.attidentity = ''
        -- Row triggers that run before an INSERT.
        WHERE NOT t.tgisinternal AND t.tgtype::integer & 7 = 7
        ORDER BY 2, 1
    LOOP
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" has no default, and may be filled by trigger "%s"', attribute, other.relation,
                other.tgname),
            DETAIL = format('It owns sequence "%s", and gets a default now, too.', other.sequence),
            HINT = format('If the trigger uses the sequence, bind the sequence instead of attaching the column: SELECT snowflake_ids.bind_sequence(%L, %L);', other.sequence,
                left(kind, 128));
    END LOOP;
    IF EXISTS (SELECT FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attname = attribute COLLATE "C"
            WHERE p.partrelid = relation AND p.partstrat = 'r' AND p.partattrs[0] = a.attnum AND p.partdefid = 0)
        AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = relation AND pg_get_expr(c.relpartbound, 0) LIKE '%TO (MAXVALUE%')
    THEN
        RAISE NOTICE USING
            MESSAGE = format('relation "%s" is partitioned by range of the column and has no partition for higher ids', relation),
            HINT = 'Create a partition that ends at MAXVALUE, or a default partition.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.check_room_above(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF highest >= snowflake_ids_internal.column_maximum(relation, attribute) THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('no higher ids are left for column "%s" of relation "%s"', attribute, relation),
            DETAIL = format('The highest value in the column is %s, the maximum of type %s.', highest,
                (SELECT a.atttypid::regtype FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C")),
            HINT = 'First give lower ids to the rows with the highest ids.';
    END IF;
END
$$;

-- Fails if a default's next id is not above the ids of a column.
CREATE FUNCTION snowflake_ids_internal.check_snowflake_above(relation regclass, attribute name, highest bigint, expression text)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    following bigint;
BEGIN
    EXECUTE format('SELECT %s', expression) INTO following;
    IF following <= highest THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" has ids above the next id', attribute, relation),
            DETAIL = format('The highest value is %s; %s returned %s.', highest, replace(expression COLLATE "C", '::text', ''), following),
            HINT = CASE WHEN expression = snowflake_ids_internal.id_default('snowflake', NULL) THEN
                'If the ids are of another layout, change to that layout with snowflake_ids.layout_change, or attach with kind => ''segment''.'
                ELSE 'If the ids are of another layout, attach with a generator of that layout, or with kind => ''segment''.' END;
    END IF;
END
$$;
