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
CREATE FUNCTION snowflake_ids.attach_plan(schema regnamespace DEFAULT NULL, kind text DEFAULT 'snowflake')
RETURNS TABLE (relation regclass, "column" name, found text, action text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning SET standard_conforming_strings = on
SET quote_all_identifiers = off SET jit = off AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('attach_plan');
    RETURN QUERY SELECT p.relation::regclass, (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = p.relation AND a.attnum = p.number),
        p.found, p.action, p.reason
    FROM snowflake_ids_internal.column_plan(attach_plan.schema, attach_plan.kind) p;
END
$$;
COMMENT ON FUNCTION snowflake_ids.attach_plan IS
    'the columns of a schema that could take ids, and what attach_all does with each: attach it, bind its sequence, or skip it for the stated reason';

-- Returns the groups of columns to attach, and then the skipped columns with the reason; or what gives ids, to detach it.
CREATE FUNCTION snowflake_ids_internal.schema_steps(attaches boolean, schema regnamespace, kind text)
RETURNS TABLE (relations oid[], numbers smallint[], sequence oid, reason text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning SET standard_conforming_strings = on
SET quote_all_identifiers = off SET jit = off AS $$
    WITH plan AS MATERIALIZED (SELECT * FROM snowflake_ids_internal.column_plan($2, $3) WHERE $1)
    SELECT array_agg(p.relation ORDER BY p.relation, p.number), array_agg(p.number ORDER BY p.relation, p.number), p.sequence, NULL
    FROM plan p WHERE p.action <> 'skip' GROUP BY p.sequence, CASE p.action WHEN 'attach' THEN p.relation END,
        CASE p.action WHEN 'attach' THEN p.number END
    UNION ALL SELECT NULL, NULL, NULL, format('%s.%I: %s', p.relation::regclass,
        (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = p.relation AND a.attnum = p.number), p.reason)
    FROM plan p WHERE p.action = 'skip' AND p.found <> 'attached' AND NOT starts_with(p.reason, 'goes with')
    UNION ALL SELECT ARRAY[coalesce(c.relation, c.sequence)], ARRAY[c.number], c.sequence, NULL
    FROM snowflake_ids_internal.columns_attached($2, $3) c WHERE NOT $1
$$;

CREATE PROCEDURE snowflake_ids_internal.change_all(attaches boolean, schema regnamespace, kind text)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    change pg_catalog.text := CASE WHEN attaches THEN 'attach' ELSE 'detach' END;
    step pg_catalog.record;
    done pg_catalog.int8 := 0;
    error pg_catalog.text;
    detail pg_catalog.text;
    hint pg_catalog.text;
    remaining pg_catalog.text[] := '{}';
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags(pg_catalog.concat(change, '_all'));
    PERFORM snowflake_ids_internal.check_may_commit(pg_catalog.concat(change, '_all'));
    FOR step IN SELECT s.* FROM snowflake_ids_internal.schema_steps(attaches, schema, kind) AS s LOOP
        error := step.reason;
        IF error IS NULL THEN
            COMMIT;
            PERFORM pg_catalog.snowflake_extension_keep();
            BEGIN
                PERFORM snowflake_ids_internal.change_columns(step.relations, step.numbers, step.sequence,
                    CASE WHEN attaches THEN kind END);
                done := done OPERATOR(pg_catalog.+) pg_catalog.cardinality(step.relations);
            EXCEPTION WHEN OTHERS THEN
                GET STACKED DIAGNOSTICS error = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
                RAISE WARNING USING MESSAGE = pg_catalog.concat('not ', change, 'ed: ', error), DETAIL = detail, HINT = hint;
            END;
            -- Citus lets no transaction commit that has lost a worker.
            IF error IS NOT NULL THEN
                ROLLBACK;
            END IF;
        END IF;
        remaining := CASE WHEN error IS NULL THEN remaining ELSE pg_catalog.array_append(remaining, error) END;
    END LOOP;
    COMMIT;
    RAISE NOTICE USING
        MESSAGE = pg_catalog.concat(CASE WHEN attaches THEN 'columns attached' ELSE 'columns and sequences detached' END, ': ', done,
            '; left: ', pg_catalog.cardinality(remaining)),
        DETAIL = CASE WHEN pg_catalog.cardinality(remaining) OPERATOR(pg_catalog.=) 0 THEN 'Nothing is left.'
            ELSE pg_catalog.left(pg_catalog.array_to_string(remaining, E'\n'), 8000) END;
END
$$;

CREATE PROCEDURE snowflake_ids.attach_all(schema regnamespace DEFAULT NULL, kind text DEFAULT 'snowflake')
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    CALL snowflake_ids_internal.change_all(true, schema, kind);
END
$$;
COMMENT ON PROCEDURE snowflake_ids.attach_all IS
    'attaches the columns of a schema as attach_plan shows, with one transaction for the columns of each sequence';

CREATE PROCEDURE snowflake_ids.detach_all(schema regnamespace DEFAULT NULL, kind text DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    CALL snowflake_ids_internal.change_all(false, schema, kind);
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
        OR NOT has_function_privilege('snowflake_ids_internal.has_workers'::regproc, 'EXECUTE') THEN
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
