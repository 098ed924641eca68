-- Attaching and detaching a whole schema: functions that make the plan, and procedures that execute it. Columns that use one
-- sequence are a group, because one binding serves all of them. Each group has a transaction of its own. Partitions and
-- children are attached together with the topmost parent that has a sequence for the column.
--
-- A procedure that commits cannot set a search_path, so the procedures qualify types and functions with their schemas. After
-- each COMMIT the procedures lock the extension again, because another role could drop the extension and reuse the names of
-- its objects.

-- Returns columns that have a default of this extension or a sequence, and columns that are the only column of a primary key.
-- sequence is the sequence of the default or the identity. kind is the kind of ids that the column already has. above is the
-- parent with which the column is attached; the parent may be in another schema.
CREATE FUNCTION snowflake_ids_internal.candidate_columns(schema regnamespace)
RETURNS TABLE (relation regclass, attribute name, number smallint, found text, sequence regclass, kind text, above regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE relations (relation) AS (
        SELECT c.oid FROM pg_class c WHERE c.relkind IN ('r', 'p', 'f') AND c.relnamespace
            IN (SELECT n.oid FROM pg_namespace n WHERE snowflake_ids_internal.is_adopted_schema(n.oid, candidate_columns.schema))
        UNION SELECT i.inhparent FROM relations r JOIN pg_inherits i ON i.inhrelid = r.relation
    ), defaults AS (
        SELECT f.adrelid AS relation, f.adnum AS number, max(d.refobjid) FILTER (WHERE s.relkind = 'S') AS sequence,
            bool_or(o.ours) AS calls_ours,
            -- Printing a default fails if another session meanwhile drops an object that the default names.
            bool_and(o.ours OR d.refclassid = 'pg_type'::regclass OR d.refobjid = f.adrelid) AS calls_only_ours
        FROM pg_attrdef f JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
            LEFT JOIN pg_class s ON d.refclassid = 'pg_class'::regclass AND s.oid = d.refobjid, LATERAL (SELECT d.refclassid
                = 'pg_proc'::regclass AND d.refobjid = ANY (ARRAY['snowflake_nextval()', 'snowflake_nextval(text)', 'snowflake_id()',
                    'snowflake_id(text)', 'snowflake_id(unknown)', 'segment_nextval(text)', 'segment_id(text)']::regprocedure[])) AS o (ours)
        GROUP BY f.adrelid, f.adnum
    ), owned AS (
        SELECT d.refobjid AS relation, d.refobjsubid AS number, max(d.objid) AS sequence, bool_or(d.deptype = 'i') AS is_identity
        FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND d.refobjsubid > 0
        GROUP BY d.refobjid, d.refobjsubid
    ), columns AS (
        SELECT c.oid AS relation, a.attname AS attribute, a.attnum AS number, a.attidentity, a.atthasdef, o.sequence AS owned,
            coalesce(f.sequence, CASE WHEN o.is_identity THEN o.sequence END) AS sequence, CASE WHEN f.calls_only_ours THEN
                snowflake_ids_internal.kind_of_default(snowflake_ids_internal.default_of(c.oid, a.attname)) END AS kind
        FROM relations r JOIN pg_class c ON c.oid = r.relation
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN defaults f ON f.relation = c.oid AND f.number = a.attnum
            LEFT JOIN owned o ON o.relation = c.oid AND o.number = a.attnum
            LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
        WHERE (f.calls_ours OR f.sequence IS NOT NULL OR o.sequence IS NOT NULL OR a.attidentity <> ''
            OR i.indrelid IS NOT NULL AND snowflake_ids_internal.base_type(a.atttypid)
                = ANY (ARRAY['bigint', 'integer', 'smallint', 'uuid']::regtype[]))
    ), bound AS MATERIALIZED (
        SELECT b.sequence, CASE WHEN b.tag IS NULL THEN 'snowflake' ELSE 'segment' END AS kind FROM snowflake_ids.sequence_binding b
        WHERE b.sequence IN (SELECT c.sequence FROM columns c)
            AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence))
    ), candidates AS MATERIALIZED (
        SELECT c.relation, c.attribute, c.number, coalesce(c.kind, b.kind) AS kind, c.sequence,
            CASE WHEN c.kind IS NOT NULL OR b.kind IS NOT NULL THEN 'attached' WHEN c.attidentity <> '' THEN 'identity'
                WHEN c.sequence = c.owned THEN 'serial' WHEN c.atthasdef THEN 'default' ELSE 'none' END AS found
        FROM columns c LEFT JOIN bound b ON b.sequence = c.sequence
    ), ways_up (relation, attribute, parent, depth) AS (
        SELECT c.relation, c.attribute, i.inhparent, 1 FROM candidates c JOIN pg_inherits i ON i.inhrelid = c.relation
        UNION SELECT w.relation, w.attribute, i.inhparent, w.depth + 1 FROM ways_up w JOIN pg_inherits i ON i.inhrelid = w.parent
    ), leaders AS (
        SELECT DISTINCT ON (w.relation, w.attribute) w.relation, w.attribute, w.parent
        FROM ways_up w JOIN candidates c ON c.relation = w.parent AND c.attribute = w.attribute
        WHERE c.sequence IS NOT NULL OR c.kind IS NOT NULL ORDER BY w.relation, w.attribute, w.depth DESC, w.parent
    )
    SELECT c.relation::regclass, c.attribute, c.number, c.found, c.sequence::regclass, c.kind, l.parent::regclass
    FROM candidates c LEFT JOIN leaders l ON l.relation = c.relation AND l.attribute = c.attribute;
END
$$;

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

-- Returns the views, functions and other objects that use a sequence according to the catalog. Also returns functions that
-- contain the sequence's name as a literal.
CREATE FUNCTION snowflake_ids_internal.sequence_users() RETURNS TABLE (sequence oid, users text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH named AS (
        SELECT DISTINCT p.oid, m.parts[1] AS name
        FROM (SELECT f.oid, left(f.prosrc, 20000) AS body FROM pg_proc f
                WHERE left(f.prosrc, 20000) ~ '(nextval|currval|setval)' AND f.pronamespace NOT IN ('pg_catalog'::regnamespace,
                    'snowflake_ids'::regnamespace, 'snowflake_ids_internal'::regnamespace) ORDER BY f.oid LIMIT 1000) p,
            regexp_matches(p.body, '''(?:[^''.]*\.)?"?([^''"]+)"?(?='')', 'g') AS m (parts)
    ), uses AS (
        SELECT s.oid AS sequence, format('function %s', n.oid::regprocedure) AS name
        FROM named n JOIN pg_class s ON s.relkind = 'S' AND s.relname = n.name
        UNION SELECT s.oid, format('trigger %I on table %s', t.tgname, t.tgrelid::regclass)
        FROM named n JOIN pg_class s ON s.relkind = 'S' AND s.relname = n.name JOIN pg_trigger t ON t.tgfoid = n.oid
        UNION SELECT s.oid, CASE d.classid WHEN 'pg_rewrite'::regclass THEN (SELECT format('view %s', r.ev_class::regclass)
            FROM pg_rewrite r WHERE r.oid = d.objid) ELSE pg_describe_object(d.classid, d.objid, d.objsubid) END
        FROM pg_class s JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid
        WHERE s.relkind = 'S' AND d.classid NOT IN ('pg_attrdef'::regclass, 'pg_class'::regclass)
    )
    SELECT u.sequence, left(string_agg(u.name, ', ' ORDER BY u.name COLLATE "C"), 500) FROM uses u GROUP BY u.sequence
$$;

-- Returns the columns that must be widened together: a column, and the columns that refer to it by foreign keys, directly or
-- through other columns. Leaves out columns that are wide enough for ids.
CREATE FUNCTION snowflake_ids_internal.columns_to_widen(relation regclass, attribute name) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE widened (relation, number) AS (
        SELECT a.attrelid, a.attnum FROM pg_attribute a WHERE a.attrelid = $1 AND a.attname = $2 COLLATE "C"
        UNION SELECT c.conrelid, k.own
        -- pg_constraint has no index on the referenced table, but pg_depend has one.
        FROM widened w CROSS JOIN LATERAL (SELECT d.classid, d.objid FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass
                AND d.refobjid = w.relation AND d.refobjsubid = w.number OFFSET 0) d
            JOIN pg_constraint c ON c.oid = d.objid AND c.confrelid = w.relation AND c.contype = 'f' AND c.conparentid = 0,
            unnest(c.conkey, c.confkey) AS k (own, other)
        WHERE d.classid = 'pg_constraint'::regclass AND k.other = w.number
    )
    SELECT left(string_agg(format('%s.%I', a.attrelid::regclass, a.attname), ', ' ORDER BY a.attrelid <> $1, a.attrelid, a.attnum), 300)
    FROM widened w JOIN pg_attribute a ON a.attrelid = w.relation AND a.attnum = w.number
    WHERE snowflake_ids_internal.type_maximum(snowflake_ids_internal.base_type(a.atttypid)) < 9223372036854775807
$$;

-- Runs the checks of attach that keep no lock and read no row. Returns the error of the first check that fails, or null. The
-- checks print constraints, so they wait if another session locks a constraint's table.
CREATE FUNCTION snowflake_ids_internal.attach_error(relation regclass, attribute name, kind text, OUT shared regclass, OUT message text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
BEGIN
    PERFORM snowflake_ids_internal.check_coordinator(relation);
    PERFORM snowflake_ids_internal.check_tables(relation);
    PERFORM snowflake_ids_internal.check_column(relation, attribute, kind);
    PERFORM snowflake_ids_internal.check_uses(relation, attribute, kind);
    IF NOT snowflake_ids_internal.is_distributed(relation) THEN
        shared := snowflake_ids_internal.shared_sequence(relation, attribute);
        -- If the sequence belongs to another role, the error concerns only this column, not the sequence's other users.
        PERFORM snowflake_ids_internal.check_shared(relation, attribute, shared, kind, NULL, NULL, 'redirect')
        FROM pg_class t, pg_class s
        WHERE t.oid = attach_error.relation AND s.oid = shared AND NOT pg_has_role(t.relowner, s.relowner, 'USAGE');
    END IF;
    PERFORM snowflake_ids_internal.check_unnamed_tag(t, snowflake_ids_internal.default_tag(t)) FROM coalesce(shared, relation) AS t
    WHERE kind COLLATE "C" = 'segment';
EXCEPTION WHEN OTHERS THEN
    message := SQLERRM;
END
$$;

-- Returns the error of the same checks for a group's sequence and all columns that this sequence serves.
CREATE FUNCTION snowflake_ids_internal.group_error(relation regclass, attribute name, sequence regclass, kind text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
BEGIN
    PERFORM snowflake_ids_internal.check_shared(relation, attribute, sequence, kind, NULL, NULL, 'redirect');
    PERFORM snowflake_ids_internal.check_uses(o.other, o.other_attribute, kind)
    FROM snowflake_ids_internal.others_of_sequence(sequence, relation, attribute) o;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLERRM;
END
$$;

CREATE FUNCTION snowflake_ids_internal.schema_plan(schema regnamespace, kind text)
RETURNS TABLE (relation regclass, attribute name, number smallint, state text, sequence regclass, action text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
    candidate record;
    failure record;
    below regclass;
    tags bigint := (SELECT count(*) FROM snowflake_ids.segment);
    -- Keys are the groups' sequences; values are the groups' errors, or null.
    groups jsonb := '{}';
BEGIN
    PERFORM snowflake_ids_internal.check_kind(kind, NULL, NULL);
    FOR candidate IN
        SELECT c.*, t.relpersistence, t.relhassubclass, e.extname, u.users,
            count(*) FILTER (WHERE c.above IS NULL) OVER (PARTITION BY c.sequence) AS columns
        FROM snowflake_ids_internal.candidate_columns(schema) c JOIN pg_class t ON t.oid = c.relation
            LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = t.oid AND d.deptype = 'e'
            LEFT JOIN pg_extension e ON e.oid = d.refobjid
            LEFT JOIN snowflake_ids_internal.sequence_users() u ON u.sequence = c.sequence
        WHERE t.relnamespace IN (SELECT n.oid FROM pg_namespace n WHERE snowflake_ids_internal.is_adopted_schema(n.oid, schema))
        ORDER BY t.relnamespace::regnamespace::text COLLATE "C", t.relname, c.number
    LOOP
        relation := candidate.relation;
        attribute := candidate.attribute;
        number := candidate.number;
        state := candidate.found;
        sequence := candidate.sequence;
        action := 'skip';
        below := NULL;
        -- Finds partitions that were added later. Skips a column that has a tag or generator of its own, because attach_all
        -- would replace that tag or generator.
        IF state = 'attached' AND candidate.relhassubclass AND snowflake_ids_internal.default_of(relation, attribute)
            = snowflake_ids_internal.id_default(kind, snowflake_ids_internal.default_tag(relation)) COLLATE "C"
        THEN
            SELECT b INTO below FROM snowflake_ids_internal.table_and_below(relation) b
            WHERE snowflake_ids_internal.default_of(b, attribute)
                IS DISTINCT FROM snowflake_ids_internal.default_of(relation, attribute) LIMIT 1;
        END IF;
        IF candidate.above IS NOT NULL THEN
            reason := format('goes with table "%s"', candidate.above);
        ELSIF candidate.extname IS NOT NULL THEN
            reason := format('table of extension "%s"', candidate.extname);
        ELSIF candidate.relpersistence = 't' THEN
            reason := 'temporary table';
        ELSIF state = 'attached' AND below IS NULL THEN
            reason := concat('takes ', candidate.kind, ' ids', ' of sequence "' || sequence::text || '"');
        ELSE
            SELECT * INTO failure FROM snowflake_ids_internal.attach_error(relation, attribute, kind);
            reason := failure.message;
            IF reason IS NULL AND failure.shared IS NOT NULL AND NOT groups ? failure.shared::oid::text THEN
                groups := groups || jsonb_build_object(failure.shared::oid,
                    snowflake_ids_internal.group_error(relation, attribute, failure.shared, kind));
                tags := tags + 1;
            ELSIF reason IS NULL AND failure.shared IS NULL AND sequence IS NOT NULL THEN
                reason := (SELECT o.message || ', and attach would drop it'
                    FROM snowflake_ids_internal.sequence_obstacle(sequence, true) o);
                tags := tags + 1;
            END IF;
            reason := coalesce(reason, groups ->> failure.shared::oid::text);
            IF reason IS NULL AND state IN ('default', 'none') AND sequence IS NULL THEN
                reason := CASE state WHEN 'none' THEN 'no default' ELSE 'default of no sequence' END
                    || ': attach it by name if it is to take ids';
            ELSIF reason IS NULL THEN
                action := CASE WHEN failure.shared IS NULL THEN 'attach' ELSE 'bind' END;
                reason := nullif(concat_ws('; ',
                    CASE WHEN below IS NOT NULL THEN format('table "%s" does not take its ids yet', below) END,
                    CASE WHEN sequence IS NOT NULL AND candidate.columns > 1 THEN
                        format('sequence "%s" serves %s columns', sequence, candidate.columns) END,
                    'ids also go to ' || nullif(concat_ws(', ', (SELECT string_agg(format('%s.%I', f.other, f.other_attribute), ', ')
                        FROM (SELECT o.* FROM snowflake_ids_internal.others_of_sequence(sequence, relation, attribute) o
                            JOIN pg_class c ON c.oid = o.other
                            WHERE NOT snowflake_ids_internal.is_adopted_schema(c.relnamespace, schema) LIMIT 3) f), candidate.users), ''),
                    'ids end at ' || nullif(snowflake_ids_internal.column_maximum(relation, attribute), 9223372036854775807),
                    CASE WHEN kind COLLATE "C" = 'segment' AND tags > current_setting('snowflake_ids.max_tags')::bigint THEN
                        format('tag %s is beyond snowflake_ids.max_tags (%s)', tags, current_setting('snowflake_ids.max_tags')) END), '');
            ELSIF state = 'default' AND snowflake_ids_internal.column_type(relation, attribute) = 'uuid'::regtype THEN
                reason := 'uuid: set DEFAULT snowflake_uuid() by hand if its ids are to grow with time';
            ELSIF kind COLLATE "C" = 'snowflake' AND snowflake_ids_internal.column_type(relation, attribute)
                IN ('integer'::regtype, 'smallint'::regtype) THEN
                reason := format('%s: widen %s, or take kind segment', reason,
                    snowflake_ids_internal.columns_to_widen(relation, attribute));
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

CREATE FUNCTION snowflake_ids.attach_plan(schema regnamespace DEFAULT NULL, kind text DEFAULT 'snowflake')
RETURNS TABLE (relation regclass, "column" name, found text, action text, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('attach_plan');
    RETURN QUERY SELECT p.relation, p.attribute, p.state, p.action, p.reason
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
    FROM plan p WHERE p.action = 'skip' AND p.state <> 'attached' AND NOT starts_with(p.reason, 'goes with')
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
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.check_kind(detach_steps.kind, NULL, NULL) WHERE detach_steps.kind IS NOT NULL;
    RETURN QUERY
    WITH attached AS MATERIALIZED (SELECT * FROM snowflake_ids_internal.candidate_columns(detach_steps.schema) c
        WHERE c.found = 'attached')
    SELECT DISTINCT CASE WHEN c.sequence IS NULL THEN c.relation::oid END, CASE WHEN c.sequence IS NULL THEN c.number END, c.sequence::oid
    FROM attached c JOIN pg_class t ON t.oid = c.relation LEFT JOIN pg_class s ON s.oid = c.sequence
    -- The caller may be a superuser, and any role may name another role's sequence in a default.
    WHERE (s.oid IS NULL OR pg_has_role(t.relowner, s.relowner, 'USAGE'))
        AND snowflake_ids_internal.is_adopted_schema(t.relnamespace, detach_steps.schema)
        AND (detach_steps.kind IS NULL OR c.kind = detach_steps.kind COLLATE "C")
        AND NOT EXISTS (SELECT FROM attached a WHERE a.relation = c.above AND a.attribute = c.attribute)
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = t.oid AND d.deptype = 'e')
    ORDER BY 1, 2, 3;
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

-- Attaches a new column, or, with number 0, all columns of a new table, if they have a sequence of their own. With kind bound,
-- binds the sequence instead. DDL of every role calls this function.
CREATE FUNCTION snowflake_ids_internal.attach_created(relation oid, number integer, kind text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    attribute name;
    type regtype;
    sequence regclass;
    message text;
    detail text;
    hint text;
BEGIN
    FOR attribute, type, sequence IN
        SELECT a.attname, snowflake_ids_internal.base_type(a.atttypid), s.oid
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
                AND d.refobjid = c.oid AND d.refobjsubid = a.attnum
            JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
        WHERE c.oid = attach_created.relation AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
            AND (attach_created.number = 0 OR a.attnum = attach_created.number)
            -- Extensions also create tables at run time, in schemas of their own.
            AND NOT EXISTS (SELECT FROM pg_depend e
                WHERE e.classid = 'pg_namespace'::regclass AND e.objid = c.relnamespace AND e.deptype = 'e')
        ORDER BY a.attnum
    LOOP
        IF kind COLLATE "C" <> 'segment' AND type <> 'bigint'::regtype THEN
            RAISE WARNING USING
                MESSAGE = format('column "%s" of relation "%s" is %s and keeps its sequence', attribute, relation::regclass, type),
                DETAIL = format('Snowflake ids have 64 bits, and snowflake_ids.new_columns is %s.', kind),
                HINT = 'Make it bigint in the migration, or widen it later and then call snowflake_ids.attach.';
        ELSIF kind COLLATE "C" = 'bound' THEN
            PERFORM snowflake_ids.bind_sequence(sequence);
        ELSE
            PERFORM snowflake_ids.attach(relation, attribute, kind);
        END IF;
    END LOOP;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE EXCEPTION USING
        ERRCODE = SQLSTATE,
        MESSAGE = format('could not attach new column "%s" of relation "%s": %s', attribute, relation::regclass, message),
        DETAIL = coalesce(nullif(detail, ''), format('snowflake_ids.new_columns is %s.', kind)),
        HINT = coalesce(nullif(hint, '') || ' Or ', '')
            || 'SET snowflake_ids.new_columns = off, where no other server inserts into the table.';
END
$$;
