-- Tables of a Citus cluster. Each node has the definition of a distributed table, and evaluates the table's defaults itself.
-- So attach and detach change each node. Citus would propagate such changes, but refuses them for distribution columns and
-- identities. Therefore these functions turn propagation off, and make the same changes on each worker in a separate
-- transaction.

CREATE FUNCTION snowflake_ids_internal.is_distributed(relation regclass) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN
        RETURN false;
    END IF;
    RETURN EXISTS (SELECT FROM pg_catalog.pg_dist_partition AS p WHERE p.logicalrelid = relation);
END
$$;

-- Returns the node's group: 0 on the coordinator and without Citus.
CREATE FUNCTION snowflake_ids_internal.node_group() RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_local_group') IS NULL THEN
        RETURN 0;
    END IF;
    RETURN coalesce((SELECT g.groupid FROM pg_catalog.pg_dist_local_group AS g LIMIT 1), 0);
END
$$;

CREATE FUNCTION snowflake_ids_internal.check_coordinator(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    coordinator text;
BEGIN
    IF snowflake_ids_internal.node_group() = 0 OR NOT snowflake_ids_internal.is_distributed(relation) THEN
        RETURN;
    END IF;
    SELECT format('host %s, port %s', n.nodename, n.nodeport) INTO coordinator
    FROM pg_catalog.pg_dist_node AS n WHERE n.groupid = 0 ORDER BY n.nodeid LIMIT 1;
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('table "%s" is a distributed table, and this node is a worker', relation),
        DETAIL = 'Its columns are attached and detached on all nodes, from the coordinator.',
        HINT = format('Connect to the coordinator%s, and call the function there.', coalesce(', at ' || coordinator, ''));
END
$$;

-- Returns the registries that this database uses. If it uses none, returns the database's own identity as a registry. The
-- result must be the same on all nodes.
CREATE FUNCTION snowflake_ids_internal.registries_in_use() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT string_agg(r.identity, ', ' ORDER BY r.position) FROM snowflake_ids.registry_server AS r),
        snowflake_ids_internal.registry_identity())
$$;

-- Returns the unique keys of distributed tables that lack the distribution column: for one table, or, if the argument is
-- null, for all. Citus enforces such a key only within each shard. fault is null if one of the key's columns has a default of
-- this extension and no trigger can write to that column, or if one of the columns refers to such a column by a foreign key
-- within the shard. Keys without an integer column are left out. The body is not checked, because its tables are Citus'.
CREATE FUNCTION snowflake_ids_internal.citus_keys(relation regclass)
RETURNS TABLE (key_of regclass, key name, fault text, hint text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off
SET check_function_bodies = off AS $$
    SELECT DISTINCT ON (p.logicalrelid, k.oid) p.logicalrelid, k.relname, f.fault,
        CASE WHEN f.fault = f.of_trigger THEN 'drop or disable the trigger if it does'
            ELSE format('SELECT snowflake_ids.attach(%L, %L)', p.logicalrelid, a.attname) END
    FROM pg_catalog.pg_dist_partition AS p
        JOIN pg_attribute AS d ON d.attrelid = p.logicalrelid AND d.attname = column_to_column_name(p.logicalrelid, p.partkey)
        JOIN pg_index AS i ON i.indrelid = p.logicalrelid AND i.indisunique
        JOIN pg_class AS k ON k.oid = i.indexrelid
        CROSS JOIN LATERAL (SELECT array_agg(u.number) FROM unnest(i.indkey) WITH ORDINALITY AS u (number, place)
            WHERE u.place <= i.indnkeyatts) AS n (numbers)
        JOIN pg_attribute AS a ON a.attrelid = p.logicalrelid AND a.attnum = ANY (n.numbers)
            AND snowflake_ids_internal.base_type(a.atttypid) IN ('bigint'::regtype, 'integer'::regtype, 'smallint'::regtype)
        CROSS JOIN LATERAL (SELECT snowflake_ids_internal.default_of(a.attrelid, a.attname)) AS w (written)
        LEFT JOIN LATERAL (SELECT format('trigger "%s" may write to column "%s"', t.tgname, a.attname) FROM pg_trigger AS t
            -- The bits of a row trigger that runs before an INSERT.
            WHERE t.tgrelid = a.attrelid AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgtype::integer & 7 = 7
            ORDER BY t.tgname LIMIT 1) AS t (fault) ON true
        CROSS JOIN LATERAL (SELECT CASE
            -- The column holds another table's ids, and the foreign key keeps both rows on the same shard.
            WHEN EXISTS (SELECT FROM pg_constraint AS c CROSS JOIN LATERAL unnest(c.conkey, c.confkey) AS r (own, other)
                    JOIN pg_attribute AS o ON o.attrelid = c.confrelid AND o.attnum = r.other
                WHERE c.conrelid = a.attrelid AND c.contype = 'f' AND d.attnum = ANY (c.conkey) AND r.own = a.attnum
                    AND snowflake_ids_internal.own_default(snowflake_ids_internal.default_of(o.attrelid, o.attname)) IS NOT NULL) THEN NULL
            WHEN a.attidentity <> '' THEN format('column "%s" is an identity', a.attname)
            WHEN w.written IS NULL THEN format('column "%s" has no default', a.attname)
            WHEN snowflake_ids_internal.own_default(w.written) IS NULL
                THEN format('the default of column "%s" is %s', a.attname, w.written)
            ELSE t.fault END, t.fault) AS f (fault, of_trigger)
    WHERE (relation IS NULL OR p.logicalrelid = relation) AND d.attnum <> ALL (n.numbers)
    ORDER BY p.logicalrelid, k.oid, f.fault IS NOT NULL, a.atthasdef OR a.attidentity <> '' DESC, a.attnum
$$;

/* Functions that run on the coordinator. */

-- Checks all workers before any change. If the check of a worker fails, no node is changed.
CREATE FUNCTION snowflake_ids_internal.check_workers(relation regclass, attribute name, kind text, generator text,
    highest bigint, expression text, identity boolean) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.citus_run_on_workers(format(
        'SELECT snowflake_ids_internal.check_worker(%L, %L, %L, %L, %L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), attribute, kind, generator,
        (SELECT g.layout FROM snowflake_ids.generator AS g WHERE g.name = generator COLLATE "C"),
        current_setting('snowflake_ids.layout'), snowflake_ids_internal.registries_in_use(), highest, expression, identity))
$$;

-- Fails in a transaction block, because workers commit separately. A rollback would leave the workers changed.
CREATE FUNCTION snowflake_ids_internal.check_alone(function text, relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF snowflake_ids_internal.in_transaction_block() THEN
        RAISE active_sql_transaction USING
            MESSAGE = format('cannot %s a column of a distributed table in a transaction block', left(function, 16)),
            DETAIL = format('Table "%s" is changed on each node in a separate transaction.', relation),
            HINT = format('Call snowflake_ids.%s outside of BEGIN and COMMIT, as a statement of its own.', left(function, 16));
    END IF;
END
$$;

-- Runs attach on another connection, without Citus' DDL propagation. Otherwise Citus would refuse to alter a sequence that it
-- still treats as distributed, although its table is not distributed any more. Returns an error in JSON, because Citus transmits
-- only an error's message.
CREATE FUNCTION snowflake_ids_internal.attach_in_session(relation_name text, attribute name, kind text, tag text,
    sequence text, generator text, timeout text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
DECLARE
    message text;
    detail text;
    hint text;
BEGIN
    PERFORM set_config('lock_timeout', left(timeout, 32), true);
    PERFORM snowflake_ids_internal.attach_here(relation_name::regclass, attribute, kind, tag, sequence, generator);
    RETURN '';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN jsonb_build_object('code', SQLSTATE, 'message', message, 'detail', coalesce(detail, ''), 'hint', coalesce(hint, ''));
END
$$;

-- Returns lock_timeout, or a limit if lock_timeout is 0, because a session that waits for a table's lock blocks all later
-- requests for the lock.
CREATE FUNCTION snowflake_ids_internal.bounded_lock_timeout() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE current_setting('lock_timeout') WHEN '0' THEN '20s' ELSE current_setting('lock_timeout') END
$$;

-- Detaches the column on the workers. The column's sequence on each worker continues in the worker's own range of numbers,
-- above the column's numbers.
CREATE FUNCTION snowflake_ids_internal.detach_workers(relation regclass, attribute name, kind text, expression text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET check_function_bodies = off AS $$
    SELECT snowflake_ids_internal.citus_run_on_workers(format(
        'SELECT snowflake_ids_internal.detach_worker(%L, %L, %L, %L, %L, %L)', snowflake_ids_internal.qualified_name(relation), attribute,
        kind, coalesce((SELECT snowflake_ids_internal.qualified_name(s.sequence)
            FROM snowflake_ids_internal.sequences_of(relation, attribute) s WHERE s.owner = relation ORDER BY s.sequence LIMIT 1),
            snowflake_ids_internal.free_sequence_name(relation, attribute)),
        (SELECT coalesce(jsonb_object_agg(n.groupid, snowflake_ids_internal.highest_of_group(n.groupid, relation, attribute, expression)), '{}')
            FROM (SELECT DISTINCT n.groupid FROM pg_catalog.pg_dist_node AS n WHERE n.groupid <> 0) AS n),
        snowflake_ids_internal.bounded_lock_timeout()))
$$;

-- Returns the highest id of a column in the range of a group, which is (group << 48, group + 1 << 48]; null if there is none.
-- Ignores negative ids.
CREATE FUNCTION snowflake_ids_internal.highest_of_group(node_group int, relation regclass, attribute name, expression text) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
    SELECT greatest(CASE WHEN n.tagged > n.above AND n.tagged <= n.last THEN n.tagged END,
        (SELECT max(snowflake_ids_internal.as_owner(b, format('SELECT max(%1$I) FROM ONLY %2$s WHERE %1$I > %3$s::bigint AND %1$I <= %4$s::bigint',
            attribute, b, n.above, n.last))) FROM snowflake_ids_internal.table_and_below(relation) b))
    FROM (SELECT node_group::bigint << 48, node_group::bigint + 1 << 48,
        (SELECT snowflake_ids_internal.highest_of_tag(t) FROM snowflake_ids_internal.tag_of_default(expression) t WHERE t IS NOT NULL)
        OFFSET 0) AS n (above, last, tagged)
$$;

/* Functions that run on a worker. */

CREATE FUNCTION snowflake_ids_internal.check_worker(relation_name text, attribute name, kind text, generator text,
    generator_layout text, layout text, registries text, highest bigint, expression text, identity boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    relation regclass := relation_name;
    here text;
BEGIN
    PERFORM snowflake_ids_internal.check_column(relation, attribute, coalesce(kind, 'segment'));
    IF identity AND NOT (SELECT a.attnotnull FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C") THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" must be NOT NULL to be an identity', attribute, relation);
    END IF;
    IF kind IS NULL THEN
        RETURN;
    END IF;
    PERFORM snowflake_ids_internal.check_kind(kind, NULL, generator);
    PERFORM snowflake_ids_internal.check_registered();
    here := snowflake_ids_internal.registries_in_use();
    IF here <> registries COLLATE "C" THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ids come from another registry than on the coordinator (%s, not %s)', here, registries);
    ELSIF kind COLLATE "C" = 'snowflake' AND current_setting('snowflake_ids.layout') <> layout COLLATE "C" THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ids have layout "%s" on this node, but layout "%s" on the coordinator',
                current_setting('snowflake_ids.layout'), layout);
    END IF;
    SELECT g.layout INTO here FROM snowflake_ids.generator AS g WHERE g.name = generator COLLATE "C";
    IF here IS DISTINCT FROM generator_layout COLLATE "C" THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('generator "%s" has layout "%s" on this node, but layout "%s" on the coordinator', generator, here, generator_layout);
    END IF;
    PERFORM snowflake_ids_internal.check_next(relation, attribute, highest, expression)
    WHERE kind COLLATE "C" = 'snowflake' AND highest IS NOT NULL;
END
$$;

CREATE FUNCTION snowflake_ids_internal.attach_worker(relation_name text, attribute name, expression text, kind text, tag text,
    sequence text, generator text, timeout text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
    SELECT set_config('lock_timeout', left(timeout, 32), true);
    SELECT snowflake_ids_internal.attach_here(relation_name::regclass, attribute::text, kind, tag, sequence, generator)
$$;

CREATE FUNCTION snowflake_ids_internal.detach_worker(relation_name text, attribute name, kind text, sequence_name text,
    reached jsonb, timeout text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
    SELECT set_config('lock_timeout', left(timeout, 32), true);
    SELECT snowflake_ids_internal.detach_on_node(relation_name::regclass, attribute::text, kind, sequence_name,
        (reached ->> snowflake_ids_internal.node_group()::text)::bigint)
$$;
