-- Tables of a Citus cluster. Each node has such a table, without its rows, and evaluates its defaults by itself. So what is
-- changed is changed on each: Citus would pass it on, but refuses it for distribution columns and identities. Here it is
-- kept from that, and the same is done on the workers, each in a transaction of its own.
--
-- Sequences of such a table count from group << 48 on a worker, so that no two nodes give the same number. A node's own numbers
-- are those of that range; the coordinator's are those below 1 << 48.

CREATE FUNCTION snowflake_ids_internal.is_distributed(relation regclass) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_one boolean := false;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition AS p WHERE p.logicalrelid = $1)'
        INTO found_one USING relation;
    END IF;
    RETURN found_one;
END
$$;

-- 0 on the coordinator, and without Citus.
CREATE FUNCTION snowflake_ids_internal.node_group() RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number int;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_local_group') IS NOT NULL THEN
        EXECUTE 'SELECT g.groupid FROM pg_catalog.pg_dist_local_group AS g' INTO number;
    END IF;
    RETURN coalesce(number, 0);
END
$$;

-- Numbers of a group are above first, and up to last.
CREATE FUNCTION snowflake_ids_internal.numbers_of_group(node_group int, OUT first bigint, OUT last bigint)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE node_group WHEN 0 THEN '-9223372036854775808' ELSE node_group::bigint << 48 END, (node_group::bigint + 1 << 48)
$$;

CREATE FUNCTION snowflake_ids_internal.check_coordinator(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    coordinator text;
BEGIN
    IF snowflake_ids_internal.node_group() = 0 OR NOT snowflake_ids_internal.is_distributed(relation) THEN
        RETURN;
    END IF;
    EXECUTE 'SELECT format($f$host %s, port %s$f$, n.nodename, n.nodeport) FROM pg_catalog.pg_dist_node AS n WHERE n.groupid = 0
        ORDER BY n.nodeid LIMIT 1' INTO coordinator;
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('table "%s" is a distributed table, and this node is a worker', relation),
        DETAIL = 'Its columns are attached and detached on all nodes, from the coordinator.',
        HINT = format('Connect to the coordinator%s, and call the function there.', coalesce(', at ' || coordinator, ''));
END
$$;

-- The setting is the transaction's. What it was is given back, for the end.
CREATE FUNCTION snowflake_ids_internal.propagate(setting text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    former text := coalesce(nullif(current_setting('citus.enable_ddl_propagation', true), ''), 'on');
BEGIN
    PERFORM set_config('citus.enable_ddl_propagation', setting, true);
    RETURN former;
END
$$;

-- A sequence stays one of the cluster when its table is none any more, and Citus refuses to alter it.
CREATE FUNCTION snowflake_ids_internal.propagate_nothing() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN snowflake_ids_internal.propagate('off') END
$$;

-- The registries that ids come from, or this database where it is one itself: the same on all nodes.
CREATE FUNCTION snowflake_ids_internal.registries_in_use() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT string_agg(r.identity, ', ' ORDER BY r.position) FROM snowflake_ids.registry_server AS r),
        snowflake_ids_internal.registry_identity())
$$;

-- A tag gives ids as soon as the coordinator is changed. Former defaults of other nodes may give some until they are told, and have
-- given some that are not stored: where these may be in the range that the new ids begin in, there has to be room for them.
CREATE FUNCTION snowflake_ids_internal.above_other_nodes(highest bigint, former text, expression text) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN highest < 1::bigint << 48 OR former IS NOT DISTINCT FROM expression COLLATE "C" THEN highest
        WHEN snowflake_ids_internal.kind_of_default(former) COLLATE "C" = 'snowflake'
            THEN least(highest::numeric + (1::bigint << 42), 9223372036854775807)::bigint
        ELSE least(highest::numeric + (1::bigint << 36), 9223372036854775807)::bigint END
$$;

/* On the coordinator. */

-- Checks on all nodes beforehand: nothing is changed where one is not fit.
CREATE FUNCTION snowflake_ids_internal.check_workers(relation regclass, attribute name, kind text, generator text,
    highest bigint, expression text, identity boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.citus_run_on_workers(format(
        'SELECT snowflake_ids_internal.check_worker(%L, %L, %L, %L, %L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), attribute, kind, generator,
        (SELECT g.layout FROM snowflake_ids.generator AS g WHERE g.name = generator COLLATE "C"),
        current_setting('snowflake_ids.layout'), snowflake_ids_internal.registries_in_use(), highest, expression, identity));
END
$$;

-- Workers commit by themselves: what is rolled back here would leave them as they are then.
CREATE FUNCTION snowflake_ids_internal.check_alone(function text, relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF snowflake_ids_internal.in_transaction_block() THEN
        RAISE active_sql_transaction USING
            MESSAGE = format('cannot %s a column of a distributed table in a transaction block', left(function, 16)),
            DETAIL = format('Table "%s" is changed on each node in a transaction of its own.', relation),
            HINT = format('Call snowflake_ids.%s outside of BEGIN and COMMIT, as a statement of its own.', left(function, 16));
    END IF;
END
$$;

-- Nodes give ids of the former tag until they are told, and these would be the new tag's, too.
CREATE FUNCTION snowflake_ids_internal.check_tag_stays(relation regclass, attribute name, tag text, former text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known text := snowflake_ids_internal.tag_of_default(former);
BEGIN
    IF tag <> known COLLATE "C" THEN
        RAISE feature_not_supported USING
            MESSAGE = format('column "%s" of relation "%s" takes ids of tag "%s" on all nodes', attribute, relation, known),
            DETAIL = 'Nodes that are not told yet would give the same ids as those that take another tag.',
            HINT = format('First SELECT snowflake_ids.detach(%L, %L), then attach it to the other tag.', relation, attribute);
    END IF;
END
$$;

-- In a session of its own, whose transaction has ended when workers are told: the tag, and what the coordinator gives, stay
-- whatever happens then.
CREATE FUNCTION snowflake_ids_internal.attach_coordinator(relation regclass, attribute name, kind text, tag text,
    sequence text, generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    done record;
    failed jsonb;
BEGIN
    SELECT r.success, r.result INTO done FROM pg_catalog.run_command_on_coordinator(format(
        'SELECT snowflake_ids_internal.attach_in_session(%L, %L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), attribute, kind, tag, sequence, generator,
        snowflake_ids_internal.bounded_lock_timeout())) AS r;
    IF done.success IS NOT TRUE THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'the coordinator could not be changed in a session of its own',
            DETAIL = left(coalesce(done.result, 'No answer.'), 1000),
            HINT = 'Mend that, and do the same again: no worker has been changed.';
    ELSIF done.result <> '' THEN
        failed := done.result;
        RAISE EXCEPTION USING
            ERRCODE = failed ->> 'code',
            MESSAGE = failed ->> 'message',
            DETAIL = coalesce(nullif(failed ->> 'detail', ''), format('It is the coordinator that says so, of table "%s".', relation)),
            HINT = coalesce(nullif(failed ->> 'hint', ''), 'Mend that, and do the same again: no worker has been changed.');
    END IF;
END
$$;

-- Gives what failed, in JSON: Citus passes nothing on but an error's message.
CREATE FUNCTION snowflake_ids_internal.attach_in_session(relation_name text, attribute name, kind text, tag text,
    sequence text, generator text, timeout text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    message text;
    detail text;
    hint text;
BEGIN
    PERFORM set_config('lock_timeout', timeout, true);
    PERFORM snowflake_ids_internal.attach_here(relation_name::regclass, attribute, kind, tag, sequence, generator);
    RETURN '';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN jsonb_build_object('code', SQLSTATE, 'message', message, 'detail', coalesce(detail, ''), 'hint', coalesce(hint, ''));
END
$$;

-- One who waits for a table holds up those who come after.
CREATE FUNCTION snowflake_ids_internal.bounded_lock_timeout() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE current_setting('lock_timeout') WHEN '0' THEN '20s' ELSE current_setting('lock_timeout') END
$$;

CREATE FUNCTION snowflake_ids_internal.attach_workers(relation regclass, attribute name, kind text, tag text, sequence text,
    generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
        tag := snowflake_ids_internal.default_tag(relation);
    END IF;
    PERFORM snowflake_ids_internal.citus_run_on_workers(format(
        'SELECT snowflake_ids_internal.attach_worker(%L, %L, %L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), attribute, snowflake_ids_internal.id_default(kind, tag, generator),
        kind, tag, sequence, generator, snowflake_ids_internal.bounded_lock_timeout()));
END
$$;

-- Workers go on with their own numbers above those that are in the column.
CREATE FUNCTION snowflake_ids_internal.detach_workers(relation regclass, attribute name, kind text, expression text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence_name text := coalesce((SELECT snowflake_ids_internal.qualified_name(s.sequence)
        FROM snowflake_ids_internal.sequences_of(relation, attribute) s WHERE s.owner = relation ORDER BY s.sequence LIMIT 1),
        snowflake_ids_internal.free_sequence_name(relation, attribute));
BEGIN
    PERFORM snowflake_ids_internal.citus_run_on_workers(format(
        'SELECT snowflake_ids_internal.detach_worker(%L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), attribute, kind, sequence_name,
        snowflake_ids_internal.reached_by_groups(relation, attribute, expression),
        snowflake_ids_internal.bounded_lock_timeout()));
END
$$;

-- The highest id of a column in the range of each group of workers.
CREATE FUNCTION snowflake_ids_internal.reached_by_groups(relation regclass, attribute name, expression text) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    tag text := snowflake_ids_internal.tag_of_default(expression);
    tagged bigint := CASE WHEN tag IS NOT NULL THEN snowflake_ids_internal.highest_of_tag(tag) END;
    node_group int;
    numbers record;
    of_groups jsonb := '{}';
BEGIN
    FOR node_group IN EXECUTE 'SELECT DISTINCT n.groupid FROM pg_catalog.pg_dist_node AS n WHERE n.groupid <> 0' LOOP
        SELECT * INTO numbers FROM snowflake_ids_internal.numbers_of_group(node_group);
        of_groups := of_groups || jsonb_build_object(node_group, greatest(
            snowflake_ids_internal.highest_stored(relation, attribute, numbers.first, numbers.last),
            CASE WHEN tagged > numbers.first AND tagged <= numbers.last THEN tagged END));
    END LOOP;
    RETURN of_groups;
END
$$;

-- Above the first and up to the second.
CREATE FUNCTION snowflake_ids_internal.highest_stored(relation regclass, attribute name, above bigint, up_to bigint) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
    SELECT max(snowflake_ids_internal.as_owner(b, format('SELECT max(%1$I) FROM ONLY %2$s WHERE %1$I > %3$s AND %1$I <= %4$s',
        attribute, b, above::text || '::bigint', up_to::text || '::bigint')))
    FROM snowflake_ids_internal.table_and_below(relation) b
$$;

-- Of the coordinator's own numbers. Called when no worker gives ids of the column's tag any more.
CREATE FUNCTION snowflake_ids_internal.highest_own_id(relation regclass, attribute name, expression text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last bigint := (SELECT n.last FROM snowflake_ids_internal.numbers_of_group(0) n);
    tag text := snowflake_ids_internal.tag_of_default(expression);
    tagged bigint := CASE WHEN tag IS NOT NULL THEN snowflake_ids_internal.highest_of_tag(tag) END;
BEGIN
    RETURN greatest(snowflake_ids_internal.highest_stored(relation, attribute, 0, last), CASE WHEN tagged <= last THEN tagged END, 0);
END
$$;

/* On a worker, and where it says so on the coordinator, too. */

CREATE FUNCTION snowflake_ids_internal.check_worker(relation_name text, attribute name, kind text, generator text,
    generator_layout text, layout text, registries text, highest bigint, expression text, identity boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    relation regclass := relation_name;
    here text;
BEGIN
    PERFORM snowflake_ids_internal.check_table(relation, 'r', 'p');
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
            MESSAGE = format('ids are of layout "%s", and of layout "%s" on the coordinator',
                current_setting('snowflake_ids.layout'), layout);
    ELSIF generator IS NOT NULL THEN
        SELECT g.layout INTO here FROM snowflake_ids.generator AS g WHERE g.name = generator COLLATE "C";
        IF here IS DISTINCT FROM generator_layout COLLATE "C" THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('generator "%s" is of layout "%s", and of layout "%s" on the coordinator', generator, here,
                    generator_layout);
        END IF;
    END IF;
    IF kind COLLATE "C" = 'snowflake' AND highest IS NOT NULL THEN
        PERFORM snowflake_ids_internal.check_snowflake_above(relation, attribute, highest, expression);
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.attach_worker(relation_name text, attribute name, expression text, kind text, tag text,
    sequence text, generator text, timeout text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
DECLARE
    relation regclass := relation_name;
BEGIN
    PERFORM set_config('lock_timeout', timeout, true), snowflake_ids_internal.propagate('off');
    PERFORM snowflake_ids_internal.lock_table(relation);
    PERFORM snowflake_ids_internal.check_column(relation, attribute, kind);
    PERFORM snowflake_ids_internal.unbind_own(relation, attribute, NULL);
    PERFORM snowflake_ids_internal.drop_identities(relation, attribute, sequence COLLATE "C" <> 'drop');
    PERFORM snowflake_ids_internal.set_default(relation, attribute, 'SET DEFAULT ' || expression);
    IF kind COLLATE "C" = 'segment' THEN
        PERFORM snowflake_ids_internal.discard_received(tag);
    END IF;
    IF sequence COLLATE "C" = 'redirect' THEN
        PERFORM snowflake_ids_internal.bind_own(relation, attribute, tag, generator);
    ELSIF sequence COLLATE "C" = 'drop' THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.detach_worker(relation_name text, attribute name, kind text, sequence_name text,
    reached jsonb, timeout text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
DECLARE
    relation regclass := relation_name;
    node_group int := snowflake_ids_internal.node_group();
    numbers record := snowflake_ids_internal.numbers_of_group(node_group);
    highest bigint := (reached ->> node_group::text)::bigint;
    is_wide boolean := snowflake_ids_internal.column_type(relation, attribute) = 'bigint'::regtype;
    options text := CASE WHEN is_wide THEN format('MINVALUE %1$s MAXVALUE %2$s START WITH %1$s', numbers.first + 1, numbers.last + 1)
        ELSE '' END;
    sequence regclass;
    course record;
BEGIN
    PERFORM set_config('lock_timeout', timeout, true), snowflake_ids_internal.propagate('off');
    PERFORM snowflake_ids_internal.lock_table(relation);
    PERFORM snowflake_ids_internal.check_column(relation, attribute, 'segment');
    -- Ids of a tag came into this node's range. Others may give some more of them until they are told.
    IF is_wide AND highest IS NOT NULL AND highest > ALL (SELECT coalesce(b.last_number, snowflake_ids_internal.highest_number(s.sequence))
        FROM snowflake_ids_internal.sequences_of(relation, attribute) s
            LEFT JOIN snowflake_ids.sequence_binding b ON b.sequence = s.sequence) THEN
        highest := least(highest + (1::bigint << 36), numbers.last);
    END IF;
    PERFORM snowflake_ids_internal.unbind_own(relation, attribute, highest);
    -- Where it was detached before, and the coordinator was not.
    PERFORM snowflake_ids_internal.drop_identities(relation, attribute, true);
    PERFORM snowflake_ids_internal.set_default(relation, attribute, 'DROP DEFAULT');
    IF kind COLLATE "C" = 'none' THEN
        RETURN;
    END IF;
    sequence := snowflake_ids_internal.kept_sequence(relation, attribute, 9223372036854775807);
    -- Of the name that it has on the coordinator, but the column's no more.
    IF sequence IS NULL AND EXISTS (SELECT FROM pg_class c WHERE c.oid = to_regclass(sequence_name) AND c.relkind = 'S') THEN
        sequence := sequence_name::regclass;
        PERFORM snowflake_ids_internal.as_owner(sequence, format('ALTER SEQUENCE %s OWNED BY %s.%I', sequence_name,
            snowflake_ids_internal.qualified_name(relation), attribute));
    END IF;
    -- One that was of a narrower type would count where other nodes count.
    IF is_wide AND (SELECT s.seqmin NOT BETWEEN numbers.first AND numbers.last FROM pg_sequence s WHERE s.seqrelid = sequence) THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
        sequence := NULL;
    END IF;
    IF kind COLLATE "C" = 'sequence' THEN
        IF sequence IS NULL THEN
            sequence := snowflake_ids_internal.create_sequence(relation, attribute, sequence_name, options);
        END IF;
        -- Of a narrower type Citus has workers give none: they would be those of other nodes.
        PERFORM snowflake_ids_internal.set_default(relation, attribute,
            format('SET DEFAULT %s(%L::regclass)', CASE WHEN is_wide THEN 'nextval' ELSE 'worker_nextval' END, sequence::oid));
    ELSE
        SELECT options AS options, NULL::bigint AS last_value, NULL::boolean AS is_called INTO course;
        IF sequence IS NOT NULL THEN
            SELECT * INTO course FROM snowflake_ids_internal.sequence_course(sequence);
            PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
        END IF;
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED BY DEFAULT AS IDENTITY (%s)', relation, attribute,
            course.options);
        sequence := snowflake_ids_internal.identity_sequence(relation, attribute);
        IF course.last_value IS NOT NULL THEN
            PERFORM snowflake_ids_internal.set_sequence(sequence, course.last_value, course.is_called);
        END IF;
    END IF;
    PERFORM snowflake_ids_internal.advance_sequence(sequence, highest);
END
$$;

-- Ids that this node has reserved of a tag may be below the column's: those in memory, and those saved at a stop.
CREATE FUNCTION snowflake_ids_internal.discard_received(tag text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    UPDATE snowflake_ids.received AS r SET version = NULL WHERE r.tag = discard_received.tag COLLATE "C";
    PERFORM snowflake_ids.segment_discard(tag);
END
$$;

-- Binds the sequences that a column owns, and those below it. They stand in their own range, above which no tag is raised for them.
CREATE FUNCTION snowflake_ids_internal.bind_own(relation regclass, attribute name, tag text, generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned regclass;
    terms pg_sequence;
    reached bigint;
    drops boolean := false;
BEGIN
    FOR owned IN SELECT s.sequence FROM snowflake_ids_internal.sequences_of(relation, attribute) s WHERE s.owner IS NOT NULL LOOP
        -- Narrower ones Citus has set to their end on workers: they give no numbers, before and after.
        CONTINUE WHEN (SELECT s.seqtypid <> 'bigint'::regtype FROM pg_sequence s WHERE s.seqrelid = owned);
        IF (SELECT o.message FROM snowflake_ids_internal.sequence_obstacle(owned) o) IS NULL THEN
            PERFORM snowflake_ids_internal.lock_relation(owned);
            SELECT * INTO terms FROM pg_sequence s WHERE s.seqrelid = owned;
            reached := snowflake_ids_internal.sequence_reach(snowflake_ids_internal.highest_number(owned), terms.seqincrement);
            -- Before it is bound: what restarts a bound sequence would restart the tag.
            PERFORM snowflake_ids_internal.sequence_put(owned, terms.seqmax, true);
            PERFORM snowflake_ids_internal.sequence_record(owned, bind_own.tag, reached, bind_own.generator);
        ELSE
            drops := true;
        END IF;
    END LOOP;
    IF drops THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
    END IF;
END
$$;

-- Also on the coordinator. Sequences go back into the node's own range, above an id that is in it.
CREATE FUNCTION snowflake_ids_internal.unbind_own(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    numbers record := snowflake_ids_internal.numbers_of_group(snowflake_ids_internal.node_group());
    bound snowflake_ids.sequence_binding;
    terms pg_sequence;
    reached bigint;
    number numeric;
BEGIN
    FOR bound IN SELECT b.* FROM snowflake_ids_internal.sequences_of(relation, attribute) s
            JOIN snowflake_ids.sequence_binding b ON b.sequence = s.sequence
        WHERE s.owner IS NOT NULL AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence))
    LOOP
        PERFORM snowflake_ids_internal.lock_relation(bound.sequence);
        SELECT * INTO terms FROM pg_sequence s WHERE s.seqrelid = bound.sequence;
        reached := greatest(CASE WHEN bound.last_number <= numbers.last THEN bound.last_number END, unbind_own.highest);
        PERFORM snowflake_ids_internal.sequence_erase(bound.sequence);
        number := terms.seqstart;
        IF reached IS NOT NULL THEN
            number := terms.seqstart + greatest(0, ceil((snowflake_ids_internal.sequence_resume_above(reached, terms.seqincrement)::numeric
                + 1 - terms.seqstart) / terms.seqincrement)) * terms.seqincrement;
        END IF;
        IF number > least(terms.seqmax, numbers.last + 1) THEN
            RAISE sequence_generator_limit_exceeded USING
                MESSAGE = format('sequence "%s" ends before the ids that the column has', bound.sequence),
                DETAIL = format('Its maximum on this node is %s; the highest id is %s.', least(terms.seqmax, numbers.last + 1), reached);
        END IF;
        PERFORM snowflake_ids_internal.sequence_put(bound.sequence, number::bigint, false);
    END LOOP;
END
$$;
