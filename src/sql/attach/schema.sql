-- Attaching and detaching a whole schema: functions that make the plan, and procedures that execute it. Columns that use one
-- sequence are a group, because one binding serves all of them. Each group has a transaction of its own. Partitions and
-- children are attached together with the topmost parent that has a sequence for the column.
--
-- A procedure that commits cannot set a search_path, so the procedures qualify types and functions with their schemas. After
-- each COMMIT the procedures lock the extension again, because another role could drop the extension and reuse the names of
-- its objects.

-- Returns whether a schema is searched. If the caller names a schema, only this schema is searched. If not, all schemas are
-- searched, except those of the system and of extensions. Other sessions' temporary schemas are never searched.
CREATE FUNCTION snowflake_ids_internal.is_adopted_schema(candidate oid, schema regnamespace) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN schema IS NOT NULL THEN candidate = schema AND NOT pg_is_other_temp_schema(candidate) ELSE candidate = pg_my_temp_schema()
        OR NOT EXISTS (SELECT FROM pg_namespace n
                WHERE n.oid = candidate AND (n.nspname = 'information_schema' OR starts_with(n.nspname, 'pg_')))
            AND NOT EXISTS (SELECT FROM pg_depend d
                WHERE d.classid = 'pg_namespace'::regclass AND d.objid = candidate AND d.deptype = 'e') END
$$;

-- Returns the plan of a schema, without waiting for a lock.
CREATE FUNCTION snowflake_ids_internal.schema_plan(schema regnamespace, kind text)
RETURNS TABLE (relation regclass, attribute name, number smallint, found text, sequence oid, action text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning SET standard_conforming_strings = on
SET quote_all_identifiers = off SET jit = off AS $$
BEGIN
    PERFORM snowflake_ids_internal.check_kind(kind, NULL, NULL);
    RETURN QUERY SELECT p.relation::regclass, (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = p.relation AND a.attnum = p.number),
        p.number, p.found, p.sequence, p.action, p.reason
    FROM snowflake_ids_internal.column_plan(schema, kind, (SELECT count(*) FROM snowflake_ids.segment)) p;
END
$$;

CREATE FUNCTION snowflake_ids.attach_plan(schema regnamespace DEFAULT NULL, kind text DEFAULT 'snowflake')
RETURNS TABLE (relation regclass, "column" name, found text, action text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('attach_plan');
    RETURN QUERY SELECT p.relation, p.attribute, p.found, p.action, p.reason
    FROM snowflake_ids_internal.schema_plan(attach_plan.schema, attach_plan.kind) p;
END
$$;
COMMENT ON FUNCTION snowflake_ids.attach_plan IS
    'the columns of a schema that could take ids, and what attach_all does with each: attach it, bind its sequence, or skip it for the stated reason';

-- Returns the groups of columns to attach, and then the skipped columns with the reason.
CREATE FUNCTION snowflake_ids_internal.attach_steps(schema regnamespace, kind text)
RETURNS TABLE (relations oid[], numbers smallint[], sequence oid, reason text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH plan AS MATERIALIZED (SELECT * FROM snowflake_ids_internal.schema_plan($1, $2))
    SELECT array_agg(p.relation::oid ORDER BY p.relation, p.number), array_agg(p.number ORDER BY p.relation, p.number), p.sequence, NULL
    FROM plan p WHERE p.action <> 'skip' GROUP BY p.sequence, CASE p.action WHEN 'attach' THEN p.relation END,
        CASE p.action WHEN 'attach' THEN p.number END
    UNION ALL SELECT NULL, NULL, NULL, format('%s.%I: %s', p.relation, p.attribute, p.reason)
    FROM plan p WHERE p.action = 'skip' AND p.found <> 'attached' AND NOT starts_with(p.reason, 'goes with')
$$;

-- Attaches a group or, if kind is null, detaches it. Returns null, or the error. Checks the plan again under the lock.
CREATE FUNCTION snowflake_ids_internal.change_group(relations oid[], numbers smallint[], sequence oid, kind text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    change text := CASE WHEN kind IS NULL THEN 'detach' ELSE 'attach' END;
    relation regclass;
    attribute name;
    message text;
    detail text;
    hint text;
BEGIN
    IF kind IS NULL AND sequence IS NOT NULL THEN
        PERFORM snowflake_ids.unbind_sequence(sequence);
        RETURN NULL;
    END IF;
    -- Locks all tables before their sequence, because an INSERT locks its table and then waits for the sequence. Does not
    -- lock a distributed table, because another session attaches that table, and would wait for this session.
    FOREACH relation IN ARRAY relations LOOP
        PERFORM snowflake_ids_internal.lock_table(relation) WHERE NOT snowflake_ids_internal.is_distributed(relation);
    END LOOP;
    FOR place IN 1 .. cardinality(relations) LOOP
        relation := relations[place];
        attribute := NULL;
        SELECT a.attname INTO attribute FROM pg_attribute a
        WHERE a.attrelid = relation AND a.attnum = numbers[place] AND NOT a.attisdropped
            AND (change_group.sequence IS NULL OR EXISTS (SELECT FROM snowflake_ids_internal.sequences_of(relation, a.attname) s
                WHERE s.sequence = change_group.sequence));
        IF NOT FOUND THEN
            RAISE object_in_use USING MESSAGE = 'the column has changed meanwhile', HINT = format('Call %s_all again.', change);
        ELSIF kind IS NULL THEN
            PERFORM snowflake_ids.detach(relation, attribute);
        ELSE
            PERFORM snowflake_ids.attach(relation, attribute, kind);
            -- The first call has already reported the other columns.
            PERFORM set_config('client_min_messages', 'warning', true) WHERE current_setting('client_min_messages') <> 'error';
        END IF;
    END LOOP;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    message := concat(coalesce(relation, sequence)::regclass, '.' || quote_ident(attribute), ': ', message);
    RAISE WARNING USING
        MESSAGE = format('not %sed: %s', change, message),
        DETAIL = coalesce(nullif(detail, ''), 'The other columns are not affected.'),
        HINT = coalesce(nullif(hint, ''), format('Call %s_all again.', change));
    RETURN message;
END
$$;

CREATE FUNCTION snowflake_ids_internal.detach_steps(schema regnamespace, kind text)
RETURNS TABLE (relation oid, number smallint, sequence oid)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off SET jit = off AS $$
BEGIN
    PERFORM snowflake_ids_internal.check_kind(detach_steps.kind, NULL, NULL) WHERE detach_steps.kind IS NOT NULL;
    RETURN QUERY SELECT * FROM snowflake_ids_internal.columns_attached(detach_steps.schema, detach_steps.kind);
END
$$;

CREATE FUNCTION snowflake_ids_internal.check_may_commit(procedure text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF snowflake_ids_internal.in_transaction_block() THEN
        RAISE active_sql_transaction USING
            MESSAGE = format('%s cannot run inside a transaction block', left(procedure, 16)),
            DETAIL = 'The procedure commits after each group of columns.',
            HINT = format('CALL snowflake_ids.%s outside of BEGIN and COMMIT.', left(procedure, 16));
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.tell_done(what text, done bigint, remaining text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE NOTICE USING
        MESSAGE = format('%s: %s; left: %s', left(what, 64), done, cardinality(remaining)),
        DETAIL = left(coalesce(nullif(array_to_string(remaining, E'\n'), ''), 'Nothing is left.'), 8000);
END
$$;

CREATE PROCEDURE snowflake_ids.attach_all(schema regnamespace DEFAULT NULL, kind text DEFAULT 'snowflake')
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    step pg_catalog.record;
    done pg_catalog.int8 := 0;
    error pg_catalog.text;
    remaining pg_catalog.text[] := '{}';
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('attach_all');
    PERFORM snowflake_ids_internal.check_may_commit('attach_all');
    FOR step IN SELECT s.* FROM snowflake_ids_internal.attach_steps(schema, kind) AS s LOOP
        error := step.reason;
        IF error IS NULL THEN
            COMMIT;
            PERFORM pg_catalog.snowflake_extension_keep();
            error := snowflake_ids_internal.change_group(step.relations, step.numbers, step.sequence, kind);
        END IF;
        IF error IS NULL THEN
            done := done OPERATOR(pg_catalog.+) pg_catalog.cardinality(step.relations);
        ELSE
            remaining := pg_catalog.array_append(remaining, error);
        END IF;
    END LOOP;
    COMMIT;
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.tell_done('columns attached', done, remaining);
END
$$;
COMMENT ON PROCEDURE snowflake_ids.attach_all IS
    'attaches the columns of a schema as attach_plan shows, with one transaction for the columns of each sequence';

CREATE PROCEDURE snowflake_ids.detach_all(schema regnamespace DEFAULT NULL, kind text DEFAULT NULL)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    step pg_catalog.record;
    done pg_catalog.int8 := 0;
    error pg_catalog.text;
    remaining pg_catalog.text[] := '{}';
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('detach_all');
    PERFORM snowflake_ids_internal.check_may_commit('detach_all');
    FOR step IN SELECT s.* FROM snowflake_ids_internal.detach_steps(schema, kind) AS s LOOP
        COMMIT;
        PERFORM pg_catalog.snowflake_extension_keep();
        error := snowflake_ids_internal.change_group(ARRAY[step.relation], ARRAY[step.number], step.sequence, NULL);
        IF error IS NULL THEN
            done := done OPERATOR(pg_catalog.+) 1;
        ELSE
            remaining := pg_catalog.array_append(remaining, error);
        END IF;
    END LOOP;
    COMMIT;
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.tell_done('columns and sequences detached', done, remaining);
END
$$;
COMMENT ON PROCEDURE snowflake_ids.detach_all IS
    'detaches the attached columns of a schema, of one kind or both, and unbinds the sequences that they share';

-- Makes a column of a new table an identity with the options of a former identity, whose sequence is given, and attaches the column
-- to the same tag or generator. A temporary sequence cannot be bound, and a role that does not manage tags binds none: there the
-- column only gets the default. DDL of every role calls this function.
CREATE FUNCTION snowflake_ids_internal.attach_like(relation regclass, attribute name, sequence regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bound snowflake_ids.sequence_binding;
BEGIN
    IF (SELECT c.relpersistence = 't' FROM pg_class c WHERE c.oid = relation)
        OR NOT has_function_privilege('snowflake_ids_internal.bind_here'::regproc, 'EXECUTE') THEN
        PERFORM snowflake_ids_internal.as_owner(relation,
            format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', relation, attribute, pg_get_expr(f.adbin, f.adrelid)))
        FROM pg_depend d JOIN pg_attrdef f ON f.adrelid = d.refobjid AND f.adnum = d.refobjsubid
        WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'a'
            AND pg_get_expr(f.adbin, f.adrelid) ~ '^(snowflake|segment)_(nextval|id)[(]';
        RETURN;
    END IF;
    SELECT * INTO bound FROM snowflake_ids.sequence_binding b WHERE b.sequence = attach_like.sequence;
    PERFORM snowflake_ids_internal.as_owner(relation, format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', relation, attribute));
    PERFORM snowflake_ids_internal.as_owner(relation, format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY (%s %s)',
        relation, attribute, CASE bound.identity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
        format('INCREMENT BY %s MINVALUE %s START WITH %s CACHE %s', s.seqincrement, s.seqmin, s.seqstart, s.seqcache),
        'MAXVALUE ' || nullif(s.seqmax, 9223372036854775807)))
    FROM pg_sequence s WHERE s.seqrelid = attach_like.sequence;
    PERFORM snowflake_ids.attach(relation, attribute, CASE WHEN bound.tag IS NULL THEN 'snowflake' ELSE 'segment' END, bound.tag,
        generator => bound.generator);
END
$$;
