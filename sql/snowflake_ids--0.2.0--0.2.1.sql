/* From 0.2.0 to 0.2.1. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* The registry of a Citus cluster is told of the leases that its nodes have before it grants one. */
CREATE FUNCTION snowflake_ids_internal.worker_held() RETURNS text
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'worker_held_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.worker_held() FROM PUBLIC;
CREATE FUNCTION snowflake_ids_internal.citus_hold(leases jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    IF current_setting('synchronous_commit') <> 'remote_apply' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    INSERT INTO snowflake_ids.worker_lease AS w (datacenter_id, worker_id, token, expires_at, host, port)
    -- A node that tells of more keeps nobody from the id for longer than a lease here would.
    SELECT l.datacenter_id, l.worker_id, l.token,
        least(l.expires_at, clock_timestamp() + current_setting('snowflake_ids.lease_duration')::interval), l.host, l.port
    FROM jsonb_to_recordset(leases) AS l(datacenter_id integer, worker_id integer, token bigint, expires_at timestamptz, host text, port integer)
    WHERE l.expires_at > clock_timestamp()
    ORDER BY l.datacenter_id, l.worker_id
    ON CONFLICT (datacenter_id, worker_id) DO UPDATE
    SET token = excluded.token, expires_at = excluded.expires_at, leased_at = excluded.leased_at, host = excluded.host, port = excluded.port,
        released_at = NULL
    WHERE w.expires_at <= clock_timestamp();
END
$$;
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.citus_hold(jsonb) FROM PUBLIC;
CREATE OR REPLACE PROCEDURE snowflake_ids.use_citus(server name DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    /* For how long worker ids are waited for. */
    deadline timestamptz := clock_timestamp() + interval '30 s';
    outside  boolean := coalesce(server COLLATE "C", 'citus_coordinator') <> 'citus_coordinator';
    used     text;
    identity text;
    options  text[];
    timeline bigint;
    there    json;
    version  text;
    place    text;
    old      text;
    told     jsonb;
    idle     jsonb;
    mapped   jsonb;
    failed   text[];
    passes   boolean;
    nodes    bigint;
    workers  text;
    held     jsonb;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF NOT (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user) THEN
        RAISE EXCEPTION 'permission denied to set the registry of a cluster' USING
            ERRCODE = 'insufficient_privilege',
            DETAIL = 'It is set on all nodes, where background workers then connect as the owner of the extension.',
            HINT = 'CALL snowflake_ids.use_citus() as a superuser.';
    END IF;
    PERFORM snowflake_ids_internal.citus_check();
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'cannot set the registry of a cluster at isolation level "%"', current_setting('transaction_isolation') USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'It would not see what nodes do meanwhile, this one included.',
            HINT = 'CALL it outside of a transaction block, with default_transaction_isolation = ''read committed''.';
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_dist_local_group AS g WHERE g.groupid <> 0) THEN
        SELECT format(': %s, port %s', n.node_name, n.node_port) INTO place FROM snowflake_ids_internal.citus_nodes() AS n WHERE n.group_id = 0;
        RAISE EXCEPTION 'this database is a worker of a Citus cluster' USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'The nodes of a cluster are told their registry by its coordinator.',
            HINT = format('CALL snowflake_ids.use_citus() on the coordinator%s.', place);
    ELSIF NOT EXISTS (SELECT FROM snowflake_ids_internal.citus_nodes() AS n WHERE n.group_id = 0) THEN
        RAISE EXCEPTION 'the workers of this Citus cluster do not know where the coordinator is' USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'pg_dist_node has no row of group 0.',
            HINT = 'SELECT citus_set_coordinator_host(''host'', port), with a name by which workers reach this server.';
    ELSIF snowflake_ids_internal.registry_is_busy() THEN
        RAISE EXCEPTION 'cannot change the registry in a transaction that has changed segment tags' USING
            ERRCODE = 'active_sql_transaction',
            HINT = 'Commit first.';
    ELSIF (SELECT e.xmin = pg_current_xact_id_if_assigned()::xid FROM pg_extension AS e WHERE e.extname = 'snowflake_ids') THEN
        -- The workers' sessions would wait for Citus', in which their extension is created, and which ends with this transaction.
        RAISE EXCEPTION 'cannot set the registry of a cluster in the transaction that creates the extension' USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'The other nodes do not see it yet.',
            HINT = 'Commit first.';
    END IF;
    SELECT string_agg(r.server, ',' ORDER BY r.position) INTO used FROM snowflake_ids.registry_server AS r;
    IF outside THEN
        -- Citus has foreign servers on all nodes, and user mappings where they were made. Others' mappings are not looked at.
        SELECT coalesce(m.umoptions, '{}') INTO options
        FROM pg_user_mappings AS m JOIN pg_class AS c ON c.oid = 'snowflake_ids.segment'::regclass
        WHERE m.srvname = server COLLATE "C" AND m.umuser IN (c.relowner, 0) ORDER BY m.umuser DESC LIMIT 1;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'foreign server "%" does not exist, or has no user mapping for the owner of the extension', server USING
                ERRCODE = 'undefined_object',
                HINT = 'CREATE SERVER ... FOREIGN DATA WRAPPER postgres_fdw, and CREATE USER MAPPING for the owner of the table '
                       'snowflake_ids.segment, here on the coordinator. Without a name the coordinator is the registry.';
        END IF;
    ELSIF used IS NOT NULL THEN
        RAISE EXCEPTION 'the coordinator takes its own ids from registry "%"', used USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'A database that has its ids from elsewhere is no registry.',
            HINT = format('CALL snowflake_ids.use_citus(%L), or first SELECT snowflake_ids.use_local_registry().', used);
    END IF;
    FOR place IN SELECT format('%s (%s:%s)', n.node_id, n.node_name, n.node_port) FROM snowflake_ids_internal.citus_nodes() AS n
        WHERE NOT n.is_active
    LOOP
        RAISE NOTICE 'node % is not active, and left out', place USING
            HINT = 'CALL snowflake_ids.use_citus() again after SELECT citus_activate_node(...).';
    END LOOP;

    IF outside THEN
        there := snowflake_ids_internal.registry_look(server);
        identity := there ->> 'identity';
        timeline := (there ->> 'timeline')::bigint;
    ELSE
        identity := snowflake_ids_internal.registry_identity();
        timeline := snowflake_ids_internal.registry_timeline();
    END IF;
    PERFORM snowflake_ids_internal.citus_refuse_move(identity);

    -- An extension that was created here before Citus is not on the workers.
    SELECT e.extversion INTO version FROM pg_extension AS e WHERE e.extname = 'snowflake_ids';
    told := snowflake_ids_internal.citus_tell(format($command$DO $do$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake_ids') THEN
            PERFORM pg_catalog.set_config('citus.enable_ddl_propagation', 'off', true);
            CREATE EXTENSION snowflake_ids VERSION %L;
        END IF;
    END$do$ $command$, version), true);

    IF outside THEN
        -- A worker that does not know the function would log the statement, with the password.
        SELECT string_agg(format('node %s (%s:%s)', n.node_id, n.node_name, n.node_port), E'\n' ORDER BY n.node_id) INTO old
        FROM pg_catalog.run_command_on_workers(
                $command$SELECT pg_catalog.to_regprocedure('snowflake_ids_internal.citus_map(pg_catalog.name, pg_catalog.text[])') IS NULL$command$) AS w
            JOIN snowflake_ids_internal.citus_nodes() AS n ON (n.node_name, n.node_port) = (w.nodename, w.nodeport)
        WHERE w.success AND w.result <> 'f';
        IF old IS NOT NULL THEN
            RAISE EXCEPTION 'nodes of the cluster do not have this version of the extension' USING
                ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = old,
                HINT = 'They were not given the user mapping. Mend that, and CALL snowflake_ids.use_citus() again.';
        END IF;
        -- Neither an error nor its duration has the statement logged. Settings come before the function is called.
        SELECT jsonb_object_agg(n.node_id, left(coalesce(w.result, 'no answer'), 1000)) INTO mapped
        FROM pg_catalog.run_command_on_workers(format(
                $command$SELECT CASE WHEN pg_catalog.set_config('log_min_error_statement', 'panic', false) IS NOT NULL
                    AND pg_catalog.set_config('log_min_duration_statement', '-1', false) IS NOT NULL
                    AND pg_catalog.set_config('log_min_duration_sample', '-1', false) IS NOT NULL
                    AND pg_catalog.set_config('log_transaction_sample_rate', '0', false) IS NOT NULL
                    THEN snowflake_ids_internal.citus_map(%L, %L) END$command$, server, options)) AS w
            JOIN snowflake_ids_internal.citus_nodes() AS n ON (n.node_name, n.node_port) = (w.nodename, w.nodeport)
        WHERE w.success IS NOT TRUE OR w.result <> '';
        -- Each node in a transaction of its own, which the others see: this one is not over yet.
        told := told || snowflake_ids_internal.citus_tell(
            format('SELECT snowflake_ids_internal.citus_run(%L)',
            format('SELECT snowflake_ids_internal.citus_use(%L, %L, %L)', server, identity, timeline)), false);
    END IF;
    IF NOT outside THEN
        -- A registry that was made anew knows of no lease. Committed before a node asks it, and whatever becomes of this transaction.
        SELECT jsonb_agg(r.result::jsonb || jsonb_build_object('host', n.node_name, 'port', n.node_port)) INTO held
        FROM pg_catalog.run_command_on_all_nodes('SELECT snowflake_ids_internal.worker_held()') AS r
            JOIN snowflake_ids_internal.citus_nodes() AS n ON n.node_id = r.nodeid
        WHERE r.success AND r.result <> '';
        held := snowflake_ids_internal.citus_tell(format('SELECT snowflake_ids_internal.citus_hold(%L)', coalesce(held, '[]')), false);
        IF held <> '{}' THEN
            RAISE EXCEPTION 'the worker ids of the cluster''s nodes cannot be noted' USING
                ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = (SELECT string_agg(format('node %s: %s', h.key, h.value), E'\n' ORDER BY h.key) FROM jsonb_each_text(held) AS h),
                HINT = 'Nothing was changed. Mend that, and CALL snowflake_ids.use_citus() again.';
        END IF;
    END IF;
    -- While the coordinator gives ids of its own, none goes to the registry.
    IF NOT EXISTS (SELECT FROM snowflake_ids_internal.citus_nodes() AS n WHERE n.group_id = 0 AND told ? n.node_id::text) THEN
        told := told || snowflake_ids_internal.citus_tell(format('SELECT snowflake_ids_internal.citus_run(%L)',
            format('SELECT snowflake_ids_internal.citus_use(%L, %L, %L)', coalesce(server, 'citus_coordinator'), identity, timeline)), true);
    END IF;
    told := told || coalesce(mapped, '{}');
    -- Their tables' defaults may name generators and series. A tag that is restricted here is not open there.
    told := snowflake_ids_internal.citus_tell(
        format('SELECT snowflake_ids_internal.citus_take(%L)', snowflake_ids_internal.citus_definitions()), true) || told;

    -- Worker ids come within a second or so.
    LOOP
        -- Before they are looked at: a server takes a worker id for its first one.
        SELECT jsonb_object_agg(r.nodeid, 'it gives no id: ' || left(coalesce(r.result, 'no answer'), 1000)) FILTER (WHERE r.success IS NOT TRUE)
        INTO idle FROM pg_catalog.run_command_on_all_nodes('SELECT pg_catalog.snowflake_nextval()') AS r;
        SELECT count(*), array_agg(format('node %s (%s:%s): %s', p.node_id, p.node_name, p.node_port, p.problem) ORDER BY p.node_id)
                   FILTER (WHERE p.problem IS NOT NULL),
               coalesce(bool_or(p.may_pass) FILTER (WHERE p.problem IS NOT NULL), false),
               string_agg(p.worker_id::text, ', ' ORDER BY p.worker_id)
        INTO nodes, failed, passes, workers
        FROM (SELECT l.node_id, l.node_name, l.node_port, l.worker_id,
                     (l.problem IS NULL OR l.may_pass) AND told ->> l.node_id::text IS NULL AS may_pass,
                     CASE WHEN told ->> l.node_id::text IS NOT NULL THEN told ->> l.node_id::text WHEN l.problem IS NULL OR l.may_pass THEN
                              coalesce(idle ->> l.node_id::text, l.problem, CASE WHEN l.worker_id IS NULL THEN 'it has no worker id yet' END)
                          ELSE l.problem END AS problem
              FROM snowflake_ids_internal.citus_look() AS l JOIN snowflake_ids_internal.citus_nodes() AS n USING (node_id)
              WHERE n.is_active) AS p;
        EXIT WHEN failed IS NULL;
        IF NOT passes OR clock_timestamp() > deadline THEN
            RAISE EXCEPTION '% of % nodes of the cluster cannot give ids that no other gives', cardinality(failed), nodes USING
                ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = array_to_string(failed, E'\n'),
                HINT = 'Mend that, and CALL snowflake_ids.use_citus() again. The other nodes stay as they are.';
        END IF;
        PERFORM pg_sleep(0.5);
    END LOOP;
    IF NOT outside AND NOT EXISTS (SELECT FROM snowflake_ids_internal.citus_nodes() AS n WHERE NOT n.is_active) THEN
        -- All nodes are there, each with what it had.
        UPDATE snowflake_ids.worker_lease AS w SET former_until = clock_timestamp() WHERE w.former_until > clock_timestamp();
    END IF;
    RAISE NOTICE '% nodes use one registry, each with a worker id of its own', nodes USING
        DETAIL = format('Worker ids: %s.', workers);
END
$$;
/* A server has places for 256 layouts unless it is set. */
CREATE OR REPLACE FUNCTION snowflake_ids.generator_create(
    name           text,
    layout         text    DEFAULT NULL,
    modulus        integer DEFAULT NULL,
    remainder      integer DEFAULT NULL,
    sequence_start text    DEFAULT NULL,
    cache          integer DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    -- Written out: in another server's dump it means the same.
    own_layout text;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    own_layout := snowflake_ids_internal.server_layout();
    PERFORM snowflake_ids_internal.generator_check(name, coalesce(layout, own_layout), modulus, remainder, sequence_start, cache);
    -- Two at a time could each find the last place free.
    LOCK TABLE snowflake_ids.generator IN SHARE ROW EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C") THEN
        PERFORM snowflake_ids_internal.generator_taken(name);
    END IF;
    INSERT INTO snowflake_ids.generator (name, layout, modulus, remainder, sequence_start, cache)
    VALUES (name, coalesce(layout, own_layout), modulus, remainder, sequence_start, cache);
END
$$;

/* Forced back, a tag leaves a period that has not begun. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_move(
    tag text, max_id bigint, exact boolean DEFAULT true, force boolean DEFAULT false
) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE snowflake_ids.segment AS s
    SET max_id = segment_move.max_id,
        period = greatest(CASE WHEN NOT force THEN s.period END, snowflake_ids_internal.segment_period(s.reset, s.time_zone)),
        version = snowflake_ids_internal.random_number(), update_time = clock_timestamp(),
        life = CASE WHEN force THEN snowflake_ids_internal.random_number() ELSE s.life END,
        timeline = CASE WHEN exact THEN snowflake_ids_internal.timeline() ELSE s.timeline END,
        system_identifier = CASE WHEN exact THEN snowflake_ids_internal.system_identifier() ELSE s.system_identifier END
    WHERE s.tag = segment_move.tag COLLATE "C"
$$;
/* How well the places of tags serve as a cache. */
CREATE  FUNCTION snowflake_ids_internal."segment_places"() RETURNS TABLE (
	"hits" bigint,  /* i64 */
	"misses" bigint,  /* i64 */
	"evictions" bigint  /* i64 */
)
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'segment_places_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.segment_places() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_ids_internal.segment_places() TO PUBLIC;
CREATE OR REPLACE VIEW snowflake_ids.metric_server AS
SELECT (s.state IN ('ready', 'idle', 'in recovery'))::integer::double precision AS ready,
       (s.state = 'in recovery')::integer::double precision AS in_recovery,
       extract(epoch FROM s.drift)::double precision AS drift_seconds,
       extract(epoch FROM current_setting('snowflake_ids.max_drift', true)::interval)::double precision AS max_drift_seconds,
       s.full_ticks::double precision AS full_ticks_total,
       s.steps_back::double precision AS clock_steps_back_total,
       extract(epoch FROM s.largest_step_back)::double precision AS clock_largest_step_back_seconds,
       s.steps_forward::double precision AS clock_steps_forward_total,
       extract(epoch FROM s.clock_ahead)::double precision AS clock_ahead_seconds,
       s.switches::double precision AS node_switches_total,
       s.reservations::double precision AS reservations_total,
       s.reserved_by_callers::double precision AS reservations_by_callers_total,
       extract(epoch FROM s.high_water_mark - (clock_timestamp() - s.clock_ahead))::double precision AS high_water_mark_ahead_seconds,
       extract(epoch FROM s.lease_expires_at - (clock_timestamp() - s.clock_ahead))::double precision AS lease_remaining_seconds,
       extract(epoch FROM current_setting('snowflake_ids.lease_duration', true)::interval)::double precision AS lease_duration_seconds,
       snowflake_ids_internal.layout_seconds_left(s.layout) AS layout_remaining_seconds,
       t.refills::double precision AS tag_refills_total, t.refill_seconds AS tag_refill_seconds_total,
       t.waits::double precision AS tag_waits_total, t.wait_seconds AS tag_wait_seconds_total,
       t.places::double precision AS tag_places, t.places_in_use::double precision AS tag_places_in_use,
       p.hits::double precision AS tag_place_hits_total, p.misses::double precision AS tag_place_misses_total,
       p.evictions::double precision AS tag_place_evictions_total
FROM snowflake_ids.status() AS s CROSS JOIN snowflake_ids_internal.segment_totals() AS t
    CROSS JOIN snowflake_ids_internal.segment_places() AS p;
COMMENT ON COLUMN snowflake_ids.metric_server.tag_place_hits_total IS 'Ids that were taken of tags that had their place.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_place_misses_total IS 'Calls whose tag had no place, and got one.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_place_evictions_total IS 'Tags that lost their place to others.';
/* Bound sequences: no role writes their table by hand, and a row that came by hand counts while its sequence stands at its end. */
CREATE FUNCTION snowflake_ids_internal.sequence_stands_at_end("of" oid) RETURNS boolean
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_stands_at_end_wrapper';
CREATE FUNCTION snowflake_ids_internal.sequence_record("of" oid, tag text, last_number bigint, generator text) RETURNS void
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_record_wrapper';
CREATE FUNCTION snowflake_ids_internal.sequence_erase("of" oid) RETURNS void
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_erase_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.sequence_record(oid, text, bigint, text),
    snowflake_ids_internal.sequence_erase(oid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_ids_internal.sequence_stands_at_end(oid) TO PUBLIC;
ALTER TABLE snowflake_ids.sequence_binding ADD COLUMN checked boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN snowflake_ids.sequence_binding.checked IS
    'whether the sequence was seen at its end, where a bound one stands; else it is bound as long as it stands there';
ALTER TABLE snowflake_ids.sequence_binding ADD COLUMN type regtype, ADD COLUMN cycles boolean, ADD COLUMN unlogged boolean,
    ADD COLUMN identity "char";
COMMENT ON COLUMN snowflake_ids.sequence_binding.type IS 'the type that it had, and gets back; null: that of its column';
COMMENT ON COLUMN snowflake_ids.sequence_binding.cycles IS 'whether it started again at its end, and will';
COMMENT ON COLUMN snowflake_ids.sequence_binding.unlogged IS 'whether it was unlogged, and will be';
COMMENT ON COLUMN snowflake_ids.sequence_binding.identity IS
    'a or d where it was that of an identity, ALWAYS or BY DEFAULT, which detach makes of its column again';
CREATE FUNCTION snowflake_ids_internal.sequence_remember("of" oid, of_type oid, cycles bool, unlogged bool, identity text) RETURNS void
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_remember_wrapper';
CREATE FUNCTION snowflake_ids_internal.base_type(type oid) RETURNS regtype
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE types (type, depth) AS (
        SELECT $1, 0 UNION ALL SELECT p.typbasetype, t.depth + 1 FROM types t JOIN pg_type p ON p.oid = t.type WHERE p.typtype = 'd'
    )
    SELECT t.type::regtype FROM types t ORDER BY t.depth DESC LIMIT 1
$$;
CREATE FUNCTION snowflake_ids_internal.type_maximum(type regtype) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE $1 WHEN 'smallint'::regtype THEN 32767 WHEN 'integer'::regtype THEN 2147483647 ELSE 9223372036854775807 END
$$;
CREATE FUNCTION snowflake_ids_internal.column_type(relation regclass, attribute name) RETURNS regtype
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.base_type(a.atttypid)
    FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C"
$$;
UPDATE snowflake_ids.sequence_binding AS b SET checked = true WHERE snowflake_ids_internal.sequence_stands_at_end(b.sequence);

CREATE FUNCTION snowflake_ids_internal.sequence_binding_check() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT pg_has_role(coalesce((SELECT c.relowner FROM pg_class AS c WHERE c.oid = NEW.sequence AND c.relkind = 'S'),
            (SELECT c.relowner FROM pg_class AS c WHERE c.oid = TG_RELID)), 'MEMBER') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of sequence %s', NEW.sequence),
            DETAIL = 'Its numbers are its owner''s to bind.',
            HINT = 'Have its owner call snowflake_ids.bind_sequence.';
    END IF;
    NEW.checked := snowflake_ids_internal.sequence_stands_at_end(NEW.sequence);
    RETURN NEW;
END
$$;
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.sequence_binding_check() FROM PUBLIC;
CREATE TRIGGER sequence_binding_check BEFORE INSERT OR UPDATE OF sequence ON snowflake_ids.sequence_binding
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.sequence_binding_check();
ALTER TABLE snowflake_ids.sequence_binding ENABLE ALWAYS TRIGGER sequence_binding_check;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_forget_dropped() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM snowflake_ids.sequence_binding AS b WHERE b.sequence = ANY (ARRAY(
        SELECT g.sequence FROM snowflake_ids.sequence_binding AS g
        WHERE NOT EXISTS (SELECT FROM pg_sequence AS s WHERE s.seqrelid = g.sequence) FOR UPDATE SKIP LOCKED))
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_bind(sequence regclass, kind text, tag text, generator text,
    most bigint DEFAULT 9223372036854775807) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    terms pg_sequence;
    highest bigint := snowflake_ids_internal.highest_number(sequence);
    following bigint;
    expression text;
BEGIN
    SELECT * INTO terms FROM pg_sequence AS s WHERE s.seqrelid = sequence;
    highest := snowflake_ids_internal.sequence_reach(highest, terms.seqincrement);
    IF highest = 9223372036854775807 THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('no ids are left above the numbers of sequence "%s"', sequence),
            DETAIL = 'It stands at the end of bigint, where DROP EXTENSION, or a dump of a part of the database, leaves a bound sequence.',
            HINT = format('If it was left there, SELECT setval(%L, number) with the highest number that is in use, and bind it again.',
                sequence);
    END IF;
    IF kind COLLATE "C" = 'segment' THEN
        PERFORM snowflake_ids_internal.seed_tag(tag, greatest(highest, 0), least(most, terms.seqmax),
            (SELECT c.relowner FROM pg_class AS c WHERE c.oid = sequence));
    ELSE
        PERFORM snowflake_ids_internal.sequence_check_layout(terms.seqincrement, generator);
        expression := snowflake_ids_internal.id_default('snowflake', NULL, generator);
        EXECUTE format('SELECT %s', expression) INTO following;
        IF following <= highest THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('sequence "%s" has numbers above the ids to come', sequence),
                DETAIL = format('The highest is %s; %s is at %s.', highest, replace(expression COLLATE "C", '::text', ''), following),
                HINT = 'Bind it with kind => ''segment''.';
        END IF;
    END IF;
    PERFORM snowflake_ids_internal.sequence_put(sequence, terms.seqmax, true);
    PERFORM snowflake_ids_internal.sequence_record(sequence, CASE WHEN kind COLLATE "C" = 'segment' THEN tag END, highest, generator);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_unbind(sequence regclass, above bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    terms pg_sequence;
    former snowflake_ids.sequence_binding;
    highest bigint := greatest(above, snowflake_ids_internal.highest_number(sequence));
    number numeric;
BEGIN
    SELECT * INTO terms FROM pg_sequence AS s WHERE s.seqrelid = sequence;
    SELECT * INTO former FROM snowflake_ids.sequence_binding AS b WHERE b.sequence = sequence;
    PERFORM snowflake_ids_internal.sequence_erase(sequence);
    -- To a number that the sequence would have come to: one that counts in twos keeps to its half.
    number := terms.seqstart + greatest(0, ceil((snowflake_ids_internal.sequence_resume_above(highest, terms.seqincrement)::numeric
        + 1 - terms.seqstart) / terms.seqincrement)) * terms.seqincrement;
    IF number > terms.seqmax THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('sequence "%s" ends before the ids that it gave', sequence),
            DETAIL = format('Its maximum is %s; the highest id is %s.', terms.seqmax, highest),
            HINT = format('Raise it: ALTER SEQUENCE %s MAXVALUE 9223372036854775807;', sequence);
    END IF;
    PERFORM snowflake_ids_internal.sequence_put(sequence, number::bigint, false);
    PERFORM snowflake_ids_internal.sequence_make_former(sequence, former.type, former.cycles, former.unlogged, number::bigint);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_is_bound(sequence regclass) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM snowflake_ids.sequence_binding AS b
        WHERE b.sequence = $1 AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end($1)))
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.highest_number(sequence regclass) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bound snowflake_ids.sequence_binding;
    highest bigint;
BEGIN
    SELECT * INTO bound FROM snowflake_ids.sequence_binding b WHERE b.sequence = highest_number.sequence
        AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence));
    IF FOUND THEN
        IF bound.tag IS NULL THEN
            EXECUTE format('SELECT %s', snowflake_ids_internal.id_default('snowflake', NULL, bound.generator)) INTO highest;
        ELSE
            IF NOT EXISTS (SELECT FROM snowflake_ids.registry_server)
                AND NOT EXISTS (SELECT FROM snowflake_ids.segment s WHERE s.tag = bound.tag) THEN
                -- Which ids it gave is not known any more.
                RAISE undefined_object USING
                    MESSAGE = format('segment tag "%s" of sequence "%s" does not exist', bound.tag, sequence),
                    DETAIL = 'The sequence gave ids of it, and must go on above them.',
                    HINT = format('Create it again above all ids that are in use: '
                        'SELECT snowflake_ids.segment_create(%L, start => ...);', bound.tag);
            END IF;
            highest := snowflake_ids_internal.highest_of_tag(bound.tag);
        END IF;
        RETURN greatest(highest, bound.last_number);
    END IF;
    SELECT CASE WHEN NOT c.is_called THEN c.last_value - 1
        WHEN s.seqincrement < 0 THEN greatest(s.seqstart, c.last_value)
        ELSE c.last_value END
    INTO highest FROM pg_sequence s, snowflake_ids_internal.sequence_course(sequence) c
    WHERE s.seqrelid = sequence;
    RETURN highest;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.bind_own(relation regclass, attribute name, tag text, generator text) RETURNS void
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.unbind_own(relation regclass, attribute name, highest bigint) RETURNS void
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.generator_users(name text, bound boolean) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    argument text := format('(''%s''::text)', replace(name COLLATE "C", '''', ''''''));
    users text;
BEGIN
    SELECT string_agg(u.text, E'\n' ORDER BY u.text COLLATE "C") INTO users
    FROM (
        SELECT format('default value for column %s of table %s depends on it', quote_ident(a.attname), f.adrelid::regclass)
        FROM pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
            JOIN pg_class AS c ON c.oid = f.adrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
        WHERE EXISTS (SELECT FROM unnest(ARRAY['snowflake_nextval', 'snowflake_id', 'snowflake_uuid', 'snowflake_uuid_text']) AS call (called)
            WHERE strpos(pg_get_expr(f.adbin, f.adrelid), (called || argument) COLLATE "C") > 0
                AND EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                    AND d.refclassid = 'pg_proc'::regclass
                    AND d.refobjid = format('pg_catalog.%I(text)', called)::regprocedure))
        UNION ALL
        SELECT format('sequence %s is bound to it', b.sequence)
        FROM snowflake_ids.sequence_binding AS b
        WHERE bound AND b.generator = name COLLATE "C" AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence))
            AND EXISTS (SELECT FROM pg_sequence AS s WHERE s.seqrelid = b.sequence)
    ) AS u (text);
    RETURN users;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.administration_objects(part text) RETURNS TABLE (object text, privileges text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT o.object, o.privileges
    FROM (VALUES
        (part, 'SCHEMA snowflake_ids, snowflake_ids_internal', 'USAGE'),
        ('tags', 'FUNCTION snowflake_ids.segment_create, snowflake_ids.stats_reset', 'EXECUTE'),
        ('tags', (SELECT 'FUNCTION ' || string_agg('snowflake_ids_internal.' || f, ', ')
            FROM unnest(ARRAY['above_other_nodes', 'attach_coordinator', 'attach_here', 'attach_in_session', 'bounded_lock_timeout', 'check_alone',
                'check_tag_stays', 'in_transaction_block', 'attach_worker', 'attach_workers', 'bind_own', 'check_coordinator', 'check_registered', 'check_worker',
                'check_workers', 'citus_run', 'citus_run_on_workers', 'detach_worker', 'detach_workers', 'discard_received', 'highest_own_id', 'highest_stored',
                'is_distributed', 'node_group', 'numbers_of_group', 'propagate', 'propagate_nothing', 'reached_by_groups', 'registries_in_use',
                'registry_identity', 'unbind_own', 'advance_sequence', 'as_owner', 'base_type', 'bind_sequences', 'column_type', 'former_identities', 'restore_identities', 'sequence_make_fit', 'sequence_make_former', 'sequence_remember', 'set_rights', 'type_maximum', 'check_attach', 'check_column', 'check_detach', 'check_kind', 'check_others_of_sequence',
                'check_room_above', 'check_uses', 'check_unnamed_tag', 'may_move_tag', 'may_take_ids', 'column_maximum', 'check_snowflake_above', 'check_table', 'create_sequence', 'create_sequence_for',
                'call_with', 'default_of', 'default_tag', 'drop_identities', 'drop_sequences', 'free_sequence_name', 'function_of', 'generator_keep',
                'highest_id', 'highest_number', 'highest_of_tag', 'id_default', 'identity_sequence', 'kept_sequence',
                'kind_of_default', 'lock_relation', 'lock_table', 'progress_end', 'progress_enter', 'progress_tables', 'qualified_name', 'restore_identity', 'restore_sequence', 'resume_sequences',
                'seed_tag', 'sequence_bind', 'sequence_check_layout', 'sequence_check_owned', 'sequence_check_redirects', 'sequence_course', 'sequence_erase',
                'sequence_is_bound', 'sequence_move', 'sequence_obstacle', 'sequence_position', 'sequence_put',
                'sequence_reach', 'sequence_record', 'sequence_resume_above', 'sequence_unbind', 'sequences_of', 'set_default',
                'set_sequence', 'table_and_below', 'tag_of_default', 'tell_numbers_go_on', 'tell_replaced_defaults',
                'tell_other_servers', 'tell_shared_tag', 'attach_shared', 'is_default_of', 'others_of_sequence', 'shared_sequence', 'tell_other_of_sequence', 'tell_tables_without_identity', 'tell_tag_stays', 'unbind_sequences']) AS f), 'EXECUTE'),
        ('tags', 'TABLE snowflake_ids.received', 'SELECT'),
        ('tags', 'TABLE snowflake_ids.sequence_binding', 'SELECT'),
        ('tags', 'TABLE snowflake_ids.segment', 'SELECT, INSERT, UPDATE, DELETE'),
        ('tags', 'TABLE snowflake_ids.segment_restricted', 'SELECT, INSERT, UPDATE, DELETE'),
        ('tags', 'TABLE snowflake_ids.segment_privilege', 'SELECT, INSERT, UPDATE, DELETE'),
        ('generators', 'FUNCTION snowflake_ids.generator_create, snowflake_ids.generator_alter, snowflake_ids.generator_drop, '
            'snowflake_ids.layout_change', 'EXECUTE'),
        ('generators', 'FUNCTION snowflake_ids_internal.generator_taken, snowflake_ids_internal.generator_users, '
            'snowflake_ids_internal.generator_check_unused, snowflake_ids_internal.server_layout, '
            'snowflake_ids_internal.layout_change_check, snowflake_ids_internal.layout_change_own', 'EXECUTE'),
        ('generators', 'TABLE snowflake_ids.sequence_binding', 'SELECT'),
        ('generators', 'TABLE snowflake_ids.generator', 'INSERT, UPDATE, DELETE'),
        ('series', 'FUNCTION snowflake_ids.series_create', 'EXECUTE'),
        -- To restore the triggers of a dump.
        ('series', 'FUNCTION snowflake_ids_internal.series_fill', 'EXECUTE'),
        ('series', 'TABLE snowflake_ids.series', 'SELECT, INSERT, UPDATE, DELETE'),
        ('series', 'TABLE snowflake_ids.series_bigint', 'SELECT, INSERT, UPDATE, DELETE'),
        ('series', 'TABLE snowflake_ids.series_text', 'SELECT, INSERT, UPDATE, DELETE'),
        ('series', 'TABLE snowflake_ids.series_uuid', 'SELECT, INSERT, UPDATE, DELETE'),
        ('series', 'TABLE snowflake_ids.series_privilege', 'SELECT, INSERT, UPDATE, DELETE'),
        ('registry', 'FUNCTION snowflake_ids.use_registry', 'EXECUTE'),
        ('registry', 'FUNCTION snowflake_ids.use_local_registry', 'EXECUTE'),
        ('registry', 'FUNCTION snowflake_ids.worker_release, snowflake_ids.worker_release_former', 'EXECUTE'),
        ('registry', 'TABLE snowflake_ids.registry_server', 'SELECT'),
        ('registry', 'TABLE snowflake_ids.received', 'SELECT'),
        ('registry', 'TABLE snowflake_ids.worker_lease', 'SELECT'),
        ('state', 'FUNCTION snowflake_ids.state_reset', 'EXECUTE'),
        ('state', 'FUNCTION snowflake_ids.state_adopt', 'EXECUTE'),
        ('state', 'FUNCTION snowflake_ids.clock_accept', 'EXECUTE')
    ) AS o (of_part, object, privileges)
    WHERE o.of_part = administration_objects.part COLLATE "C";
    IF part IS NULL OR part COLLATE "C" NOT IN ('tags', 'generators', 'series', 'registry', 'state') THEN
        RAISE EXCEPTION 'unrecognized part of the administration: "%"', left(coalesce(part, 'null'), 128) USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'The parts are tags, generators, series, registry and state.';
    END IF;
END
$$;
CREATE OR REPLACE VIEW snowflake_ids.sequence_status AS
SELECT b.sequence, CASE WHEN NOT r.readable THEN 'unreadable' WHEN b.tag IS NULL THEN 'snowflake' ELSE 'segment' END AS kind,
       CASE WHEN r.readable THEN b.tag END AS tag, s.seqincrement AS increment,
       d.refobjid::regclass AS owner, a.attname AS owner_column, b.last_number, b.bound_at,
       CASE WHEN r.readable THEN b.generator END AS generator
FROM snowflake_ids.sequence_binding AS b CROSS JOIN LATERAL (SELECT CASE
        WHEN b.tag IS NULL AND b.generator IS NULL THEN true
        WHEN b.tag IS NULL THEN EXISTS (SELECT FROM snowflake_ids.generator AS g WHERE g.name = b.generator)
        ELSE b.generator IS NULL AND pg_catalog.octet_length(b.tag) <= 512 AND pg_catalog.length(b.tag) BETWEEN 1 AND 128
    END) AS r (readable)
    JOIN pg_catalog.pg_sequence AS s ON s.seqrelid = b.sequence
    LEFT JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = b.sequence
        AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.deptype IN ('a', 'i')
    LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence))
    AND CASE WHEN r.readable AND b.tag IS NOT NULL THEN snowflake_ids.has_segment_privilege(b.tag, 'SELECT') ELSE true END;
COMMENT ON COLUMN snowflake_ids.sequence_status.kind IS 'snowflake or segment: which ids it gives; unreadable: its row was written by hand, and it gives none';

/* Who may move a tag by a sequence that is bound to it. */
DROP FUNCTION snowflake_ids_internal.seed_tag(text, bigint, bigint);
CREATE FUNCTION snowflake_ids_internal.seed_tag(tag text, highest bigint, most bigint, owner oid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known snowflake_ids.segment;
BEGIN
    -- Asked twice: they may be given up until it is seen to that they stay.
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        IF snowflake_ids_internal.registry_seed(tag, highest) THEN
            PERFORM snowflake_ids_internal.tell_other_servers(tag, highest);
            RETURN;
        END IF;
    END IF;
    SELECT * INTO known FROM snowflake_ids.segment s WHERE s.tag = seed_tag.tag COLLATE "C";
    IF NOT FOUND AND highest >= most THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('no ids are left for segment tag "%s"', left(tag, 128)),
            DETAIL = format('The column and its sequence end at %s; the highest id in use is %s.', most, highest),
            HINT = 'Raise the MAXVALUE of the sequence, where it has one, or widen the column.';
    ELSIF NOT FOUND THEN
        -- From 1: RESTART of a sequence that is bound to it leads there again.
        PERFORM snowflake_ids.segment_create(tag, max_value => most);
        PERFORM snowflake_ids.segment_raise(tag, highest);
        IF NOT has_table_privilege(owner, 'snowflake_ids.segment', 'UPDATE') THEN
            INSERT INTO snowflake_ids.segment_privilege AS p (tag, grantee, privileges) VALUES (seed_tag.tag, owner, 'UPDATE')
            ON CONFLICT DO NOTHING;
        END IF;
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
    ELSIF known.max_value > most THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('segment tag "%s" has ids beyond the column or its sequence', tag),
            DETAIL = format('Its max_value is %s; the column and its sequence end at %s.', known.max_value, most),
            HINT = format('Lower it with SELECT snowflake_ids.segment_alter(%L, max_value => %s), or name another tag.',
                tag, most);
    ELSE
        PERFORM snowflake_ids.segment_raise(tag, highest);
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.seed_tag(text, bigint, bigint, oid) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_ids_internal.seed_tag IS 'makes a tag go on above an id, creating it where it is unknown';
/* The owner of a sequence goes on to move the tag that it alone is bound to. */
INSERT INTO snowflake_ids.segment_privilege AS p (tag, grantee, privileges)
SELECT b.tag, c.relowner, 'UPDATE' FROM snowflake_ids.sequence_binding AS b JOIN pg_class AS c ON c.oid = b.sequence AND c.relkind = 'S'
WHERE b.tag IS NOT NULL AND b.checked AND NOT has_table_privilege(c.relowner, 'snowflake_ids.segment', 'UPDATE')
    AND NOT EXISTS (SELECT FROM snowflake_ids.segment_restricted AS r WHERE r.tag = b.tag)
    AND NOT snowflake_ids_internal.sequence_tag_is_shared(b.sequence, b.tag)
ON CONFLICT DO NOTHING;

/* Who had the part "tags" could write the table, and has the functions instead that do. */
DO $$
DECLARE
    holder text;
    owner name := CASE WHEN current_setting('server_version_num')::integer >= 140000 THEN 'pg_database_owner'
        ELSE (SELECT pg_get_userbyid(d.datdba) FROM pg_database AS d WHERE d.datname = current_database()) END;
BEGIN
    FOR holder IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_class AS c, aclexplode(c.relacl) AS a
        WHERE c.oid = 'snowflake_ids.sequence_binding'::regclass AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON snowflake_ids.sequence_binding FROM %s', holder);
    END LOOP;
    FOR holder IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_proc AS p, aclexplode(p.proacl) AS a
        WHERE p.oid = 'snowflake_ids_internal.sequence_bind'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.sequence_forget_dropped FROM %s', holder);
        EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_ids_internal.sequence_record, snowflake_ids_internal.sequence_erase, '
            'snowflake_ids_internal.seed_tag TO %s', holder);
    END LOOP;
    EXECUTE format('GRANT INSERT ON snowflake_ids.sequence_binding TO %I', owner);
    -- Everybody may call them, and is told who may do what they do.
    EXECUTE format('REVOKE EXECUTE ON FUNCTION snowflake_ids.attach, snowflake_ids.detach, snowflake_ids.bind_sequence, snowflake_ids.unbind_sequence '
        'FROM %I', owner);
END
$$;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_check_unused(name text, change text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    users text;
BEGIN
    -- Neither is it attached meanwhile: that locks the series, too.
    PERFORM FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C" FOR UPDATE;
    SELECT string_agg(format('trigger %s on table %s depends on it', quote_ident(t.tgname), t.tgrelid::regclass), E'\n'
                      ORDER BY t.tgrelid::regclass::text COLLATE "C", t.tgname)
    INTO users
    FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
    WHERE t.tgfoid = 'snowflake_ids_internal.series_fill()'::regprocedure AND t.tgparentid = 0
        -- Triggers of a superuser's may have other arguments.
        AND CASE WHEN t.tgnargs = 3
            THEN substring(t.tgargs FROM 1 FOR position(decode('00', 'hex') IN t.tgargs) - 1) = convert_to(name, getdatabaseencoding())
            ELSE false END;
    IF users IS NOT NULL THEN
        RAISE dependent_objects_still_exist USING
            MESSAGE = format('cannot %s series "%s" because other objects depend on it', left(change, 16), left(name, 128)),
            DETAIL = left(users, 4000),
            HINT = 'Detach the columns first: snowflake_ids.series_detach.';
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_tag_is_shared(sequence oid, tag text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
BEGIN
    RETURN EXISTS (SELECT FROM snowflake_ids.sequence_binding AS b WHERE b.tag = tag COLLATE "C" AND b.sequence <> sequence)
        OR EXISTS (
            SELECT FROM (
                SELECT f.adrelid AS relation, c.relowner AS owner, pg_get_expr(f.adbin, f.adrelid) AS written
                FROM pg_attrdef AS f JOIN pg_class AS c ON c.oid = f.adrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
                UNION ALL SELECT 0::oid, t.typowner, pg_get_expr(t.typdefaultbin, 0) FROM pg_type AS t
                WHERE t.typtype = 'd' AND NOT pg_is_other_temp_schema(t.typnamespace)) AS f
            WHERE EXISTS (
                    SELECT FROM unnest(ARRAY['segment_nextval', 'segment_id', 'segment_nextval_text']) AS call (called)
                    WHERE strpos(f.written, snowflake_ids_internal.call_with(called, tag) COLLATE "C") > 0)
                -- Any role may name a tag in a default.
                AND snowflake_ids_internal.may_take_ids(f.owner, tag)
                AND f.relation NOT IN (
                    SELECT t FROM pg_depend AS d, snowflake_ids_internal.table_and_below(d.refobjid::regclass) AS t
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence AND d.refclassid = 'pg_class'::regclass
                        AND d.deptype IN ('a', 'i')));
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.attach_here(relation regclass, "column" name, kind text, tag text, sequence text,
    generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
DECLARE
    distributed boolean := snowflake_ids_internal.is_distributed(relation);
    propagation text;
    highest bigint;
    most bigint;
    expression text;
    former text;
    identities jsonb;
    shared regclass;
BEGIN
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'waiting for the table');
    PERFORM snowflake_ids_internal.lock_table(relation);
    PERFORM snowflake_ids_internal.check_column(relation, "column", kind);
    former := snowflake_ids_internal.default_of(relation, "column");
    IF snowflake_ids_internal.kind_of_default(former) IS DISTINCT FROM kind COLLATE "C" THEN
        PERFORM snowflake_ids_internal.check_uses(relation, "column", kind);
    END IF;
    IF NOT distributed THEN
        shared := snowflake_ids_internal.shared_sequence(relation, "column");
        IF shared IS NOT NULL THEN
            PERFORM snowflake_ids_internal.attach_shared(relation, "column", shared, kind, tag, generator, sequence);
            PERFORM snowflake_ids_internal.progress_end('attach');
            RETURN;
        END IF;
    END IF;
    IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
        -- That of its parent, which was attached first: one sequence served both. Both defaults may name a tag of another's.
        SELECT t.tag INTO tag
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, snowflake_ids_internal.tag_of_default(former) AS t (tag)
        WHERE i.inhrelid = relation AND snowflake_ids_internal.default_of(i.inhparent, "column") = former COLLATE "C"
            AND snowflake_ids_internal.may_move_tag(c.relowner, t.tag);
    END IF;
    IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
        tag := snowflake_ids_internal.default_tag(relation);
        PERFORM snowflake_ids_internal.check_unnamed_tag(relation, tag);
        PERFORM snowflake_ids_internal.tell_shared_tag(relation, "column", tag);
    END IF;
    expression := snowflake_ids_internal.id_default(kind, tag, generator);
    identities := snowflake_ids_internal.former_identities(relation, "column");
    PERFORM snowflake_ids_internal.check_tag_stays(relation, "column", tag, former) WHERE distributed;
    propagation := snowflake_ids_internal.propagate_nothing();
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'searching for the highest id');
    PERFORM snowflake_ids_internal.resume_sequences(relation, "column");
    highest := snowflake_ids_internal.highest_id(relation, "column");
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'changing defaults');
    IF kind COLLATE "C" = 'segment' THEN
        PERFORM snowflake_ids_internal.check_room_above(relation, "column", highest);
    ELSIF expression IS DISTINCT FROM former COLLATE "C" THEN
        PERFORM snowflake_ids_internal.check_snowflake_above(relation, "column", highest, expression);
    END IF;
    IF distributed THEN
        PERFORM snowflake_ids_internal.check_workers(relation, "column", kind, generator,
            CASE WHEN expression IS DISTINCT FROM former COLLATE "C" THEN highest END, expression, false);
        PERFORM snowflake_ids_internal.tell_replaced_defaults(relation, "column", expression);
        PERFORM snowflake_ids_internal.unbind_own(relation, "column", NULL);
        highest := snowflake_ids_internal.above_other_nodes(highest, former, expression);
    ELSE
        PERFORM snowflake_ids_internal.tell_replaced_defaults(relation, "column", expression);
        PERFORM snowflake_ids_internal.unbind_sequences(relation, "column", highest);
    END IF;
    PERFORM snowflake_ids_internal.drop_identities(relation, "column", sequence COLLATE "C" <> 'drop');
    PERFORM snowflake_ids_internal.set_default(relation, "column", 'SET DEFAULT ' || expression);
    -- A registry on another server keeps what it is told, even if this is rolled back: it is told after what may fail here,
    -- and before any node gives ids of the tag.
    IF kind COLLATE "C" = 'segment' THEN
        PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'raising the tag');
        SELECT least(snowflake_ids_internal.column_maximum(relation, "column"), min(s.seqmax)) INTO most
        FROM snowflake_ids_internal.sequences_of(relation, "column") o JOIN pg_sequence s ON s.seqrelid = o.sequence
        WHERE attach_here.sequence COLLATE "C" = 'redirect' AND o.owner IS NOT NULL AND s.seqincrement > 0
            -- One that ends where its type does is widened.
            AND s.seqmax <> CASE s.seqtypid WHEN 'smallint'::regtype THEN 32767 WHEN 'integer'::regtype THEN 2147483647 ELSE 0 END;
        PERFORM snowflake_ids_internal.seed_tag(tag, highest, most, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = relation));
    END IF;
    IF sequence COLLATE "C" = 'redirect' THEN
        PERFORM snowflake_ids_internal.bind_sequences(relation, "column", kind, tag, generator, identities);
    ELSIF sequence COLLATE "C" = 'drop' THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, "column");
    END IF;
    PERFORM snowflake_ids_internal.propagate(propagation) WHERE propagation IS NOT NULL;
    PERFORM snowflake_ids_internal.progress_end('attach');
END
$$;
/* Functions that changed. */
DROP FUNCTION snowflake_ids_internal.bind_sequences(regclass, name, text, text, text);
CREATE FUNCTION snowflake_ids_internal.bind_sequences(relation regclass, attribute name, kind text, tag text,
    generator text, identities jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned regclass;
    owner regclass;
    obstacle record;
    former record;
    drops boolean := false;
BEGIN
    FOR owned, owner IN SELECT s.sequence, s.owner FROM snowflake_ids_internal.sequences_of(relation, attribute) s
        WHERE s.owner IS NOT NULL
    LOOP
        SELECT * INTO former FROM snowflake_ids_internal.sequence_make_fit(owned);
        SELECT * INTO obstacle FROM snowflake_ids_internal.sequence_obstacle(owned);
        IF obstacle.message IS NULL THEN
            PERFORM snowflake_ids_internal.lock_relation(owned);
            PERFORM snowflake_ids_internal.check_others_of_sequence(owned, relation, attribute);
            PERFORM snowflake_ids_internal.sequence_bind(owned, kind, tag, generator,
                snowflake_ids_internal.column_maximum(relation, attribute));
            PERFORM snowflake_ids_internal.sequence_remember(owned, former.type, former.cycles, former.unlogged,
                identities ->> owner::oid::text);
        ELSE
            RAISE NOTICE USING MESSAGE = obstacle.message, DETAIL = obstacle.detail,
                HINT = 'It is dropped, and lastval does not know the column''s ids. To keep it unbound, attach with sequence => ''keep''.';
            drops := true;
        END IF;
    END LOOP;
    IF drops THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
    END IF;
END
$$;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.generator_check_row() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most integer := coalesce(current_setting('snowflake_ids.max_generators', true), '256');
BEGIN
    PERFORM snowflake_ids_internal.generator_check(NEW.name, NEW.layout, NEW.modulus, NEW.remainder, NEW.sequence_start,
        NEW.cache);
    IF TG_OP = 'INSERT' AND (SELECT count(*) >= most FROM snowflake_ids.generator) THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = 'too many generators',
            DETAIL = format('This database has as many as snowflake_ids.max_generators allows, which is %s.', most),
            HINT = 'Drop one with snowflake_ids.generator_drop, or raise snowflake_ids.max_generators, which takes a restart.';
    END IF;
    RETURN NEW;
END
$$;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids.generator_alter(
    name           text,
    modulus        integer DEFAULT NULL,
    remainder      integer DEFAULT NULL,
    sequence_start text    DEFAULT NULL,
    cache          integer DEFAULT NULL,
    new_name       text    DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    former record;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    SELECT * INTO former FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C" FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.generator_unknown(name);
    ELSIF (modulus IS NULL) <> (remainder IS NULL) AND NOT coalesce(modulus = 0, false) THEN
        PERFORM snowflake_ids_internal.generator_check(name, former.layout, modulus, remainder, NULL, NULL);
    ELSIF new_name IS NOT NULL AND new_name <> name COLLATE "C" THEN
        PERFORM snowflake_ids_internal.generator_check_unused(name, 'rename', false);
    END IF;
    UPDATE snowflake_ids.generator AS g
    SET name = coalesce(new_name, g.name),
        modulus = CASE WHEN modulus IS NULL THEN g.modulus ELSE nullif(modulus, 0) END,
        remainder = CASE WHEN modulus IS NULL THEN g.remainder WHEN modulus = 0 THEN NULL ELSE remainder END,
        sequence_start = CASE WHEN sequence_start IS NULL THEN g.sequence_start ELSE nullif(sequence_start COLLATE "C", 'default') END,
        cache = CASE WHEN cache IS NULL THEN g.cache ELSE nullif(cache, 0) END
    WHERE g.name = name COLLATE "C";
EXCEPTION WHEN unique_violation THEN
    PERFORM snowflake_ids_internal.generator_taken(new_name);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_add_trigger(series text, relation regclass, column_name text, key_column text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    -- Of a long name, what tells it from others is at its end.
    trigger_name name := 'snowflake_ids_fill_' || CASE WHEN octet_length(column_name) <= 44 THEN column_name ELSE md5(column_name) END;
BEGIN
    IF snowflake_ids_internal.is_distributed(relation) THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot attach distributed table %s to a series', relation),
            DETAIL = 'Citus has no triggers on distributed tables.',
            HINT = format('Distribute the series beside the table with snowflake_ids.series_distribute, and call series_nextval in the INSERT; '
                'or set a default that takes the key from the session, as series_nextval(%L, current_setting(...)) does.', left(series, 128));
    END IF;
    -- The server computes what a partition key is made of while it makes the trigger, with the rights that this runs with. Locked, so
    -- that no other partition comes meanwhile.
    PERFORM snowflake_ids_internal.lock_relation(t.relid) FROM pg_partition_tree(relation) AS t;
    IF EXISTS (SELECT FROM pg_partition_tree(relation) AS t JOIN pg_partitioned_table AS p ON p.partrelid = t.relid
            WHERE p.partexprs IS NOT NULL) THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot attach table %s, which is partitioned by an expression', relation),
            DETAIL = 'Its partition key may call functions of its owner.',
            HINT = 'Attach its partitions, or use snowflake_ids.series_nextval in the INSERT.';
    END IF;
    EXECUTE format('CREATE TRIGGER %I BEFORE INSERT ON %s FOR EACH ROW WHEN (NEW.%I IS NULL)
        EXECUTE FUNCTION snowflake_ids_internal.series_fill(%L, %L, %L)',
        trigger_name, relation, column_name, series, column_name, key_column);
    -- Names may change hands.
    IF NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = relation AND t.tgname = trigger_name COLLATE "C") THEN
        RAISE serialization_failure USING MESSAGE = format('table %s was changed meanwhile', relation), HINT = 'Try again.';
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.series_detach(relation regclass, "column" name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
    trigger_name name;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    trigger_name := snowflake_ids_internal.series_trigger_of(relation, "column");
    IF trigger_name IS NULL THEN
        RAISE undefined_object USING
            MESSAGE = format('column "%s" of table %s is not attached to a series', "column", relation),
            DETAIL = 'There is no trigger of the extension that fills it.',
            HINT = 'Of a column that was renamed, give the name that it had when it was attached.';
    END IF;
    EXECUTE format('DROP TRIGGER %I ON %s', trigger_name, relation);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.detach(relation regclass, "column" name, kind text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
DECLARE
    distributed boolean;
    propagation text;
    expression text;
    identities jsonb;
    highest bigint;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('detach');
    distributed := snowflake_ids_internal.is_distributed(relation);
    PERFORM snowflake_ids_internal.check_detach(relation, "column", kind);
    PERFORM snowflake_ids_internal.check_coordinator(relation);
    PERFORM snowflake_ids_internal.check_alone('detach', relation) WHERE distributed;
    PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'waiting for the table');
    PERFORM snowflake_ids_internal.lock_table(relation);
    PERFORM snowflake_ids_internal.check_column(relation, "column", 'segment');
    expression := snowflake_ids_internal.default_of(relation, "column");
    IF snowflake_ids_internal.kind_of_default(expression) IS NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" is not attached', "column", relation),
            DETAIL = CASE WHEN expression IS NULL THEN 'It has no default.'
                ELSE format('Its default is %s.', expression) END,
            HINT = coalesce((SELECT format('Its sequence gives the ids, for all that take numbers of it: SELECT snowflake_ids.unbind_sequence(%L);',
                    s.sequence) FROM snowflake_ids_internal.sequences_of(relation, "column") s
                WHERE snowflake_ids_internal.sequence_is_bound(s.sequence) LIMIT 1),
                'Only a default of snowflake_nextval() or segment_nextval(tag) is taken back.');
    END IF;
    identities := CASE WHEN distributed THEN '{}' ELSE snowflake_ids_internal.former_identities(relation, "column") END;
    kind := coalesce(kind, CASE WHEN identities ? relation::oid::text THEN 'identity' ELSE 'sequence' END);
    propagation := snowflake_ids_internal.propagate_nothing();
    IF distributed THEN
        PERFORM snowflake_ids_internal.check_workers(relation, "column", NULL, NULL, NULL, NULL, kind COLLATE "C" = 'identity');
        PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'waiting for other nodes');
        -- Before the highest id is looked for: from then on no worker takes one.
        PERFORM snowflake_ids_internal.detach_workers(relation, "column", kind, expression);
        highest := snowflake_ids_internal.highest_own_id(relation, "column", expression);
        PERFORM snowflake_ids_internal.unbind_own(relation, "column", highest);
    ELSE
        PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'searching for the highest id');
        PERFORM snowflake_ids_internal.resume_sequences(relation, "column");
        highest := snowflake_ids_internal.highest_id(relation, "column");
        PERFORM snowflake_ids_internal.unbind_sequences(relation, "column", highest);
    END IF;
    PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'changing defaults');
    IF kind COLLATE "C" = 'none' THEN
        PERFORM snowflake_ids_internal.set_default(relation, "column", 'DROP DEFAULT');
    ELSE
        PERFORM snowflake_ids_internal.check_room_above(relation, "column", highest);
        PERFORM snowflake_ids_internal.tell_numbers_go_on(relation, "column", expression, highest) WHERE NOT distributed;
        IF kind COLLATE "C" = 'sequence' THEN
            PERFORM snowflake_ids_internal.restore_sequence(relation, "column", highest);
        ELSE
            PERFORM snowflake_ids_internal.restore_identities(relation, "column", highest, identities);
        END IF;
    END IF;
    PERFORM snowflake_ids_internal.propagate(propagation) WHERE propagation IS NOT NULL;
    PERFORM snowflake_ids_internal.tell_tag_stays(expression);
    PERFORM snowflake_ids_internal.progress_end('detach');
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.administration_grant(part text, role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.administration_change('GRANT %1$s ON %2$s TO %3$I', part, role);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.administration_revoke(part text, role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.administration_change('REVOKE %1$s ON %2$s FROM %3$I', part, role);
END
$$;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_revoke(tag text, role name, privileges text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grantee oid := snowflake_ids_internal.segment_grantee(role);
BEGIN
    IF grantee = 0 THEN
        PERFORM snowflake_ids_internal.segment_restrict(tag);
    ELSIF NOT EXISTS (SELECT FROM snowflake_ids.segment_restricted AS r WHERE r.tag = segment_revoke.tag COLLATE "C") THEN
        RAISE NOTICE 'segment tag "%" is open to every role', tag USING
            DETAIL = 'It takes no USAGE before it is restricted.',
            HINT = format('To restrict it: SELECT snowflake_ids.segment_revoke(%L, ''public'', ''ALL'').', tag);
    END IF;
    PERFORM snowflake_ids_internal.segment_remove_privileges(tag, grantee, privileges);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_revoke(name text, role name, privileges text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    grantee_oid oid := snowflake_ids_internal.segment_grantee(role);
    series_id bigint;
    restricted boolean;
BEGIN
    SELECT s.id, s.restricted INTO series_id, restricted FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C";
    IF grantee_oid = 0 THEN
        series_id := (snowflake_ids_internal.series_restrict(name)).series_id;
    ELSIF NOT restricted THEN
        RAISE NOTICE 'series "%" is open to every role', left(name, 128) USING
            DETAIL = 'It takes no USAGE before it is restricted.',
            HINT = 'To restrict it, revoke ALL from public with snowflake_ids.series_revoke.';
    END IF;
    UPDATE snowflake_ids.series_privilege AS p
    SET privileges = snowflake_ids_internal.segment_privileges(p.privileges, '', privileges)
    WHERE p.series = series_id AND p.grantee = grantee_oid;
    DELETE FROM snowflake_ids.series_privilege AS p WHERE p.series = series_id AND p.privileges = '';
END
$$;
/* Gapless series of one server each. */
ALTER TABLE snowflake_ids.series ADD COLUMN scope text NOT NULL DEFAULT 'global';
COMMENT ON COLUMN snowflake_ids.series.scope IS
    'among which servers the numbers of a key follow on each other: global; node where each key is one server''s; shard where it is counted beside its rows';
CREATE FUNCTION snowflake_ids_internal.series_check_scope(kind text, scope text) RETURNS void
VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'series_check_scope_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.series_check_scope(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_ids_internal.series_check_scope(text, text) TO PUBLIC;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_check_row() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Numbers of the former kind, or section, are in memory.
    IF TG_OP = 'UPDATE' AND (NEW.kind, NEW.sections) IS DISTINCT FROM (OLD.kind, OLD.sections) THEN
        RAISE feature_not_supported USING
            MESSAGE = format('kind and sections of series "%s" cannot be changed', left(OLD.name, 128)),
            DETAIL = 'Numbers that it has given would come again.',
            HINT = 'Create another series, and set its keys above the numbers of this one with snowflake_ids.series_set.';
    END IF;
    -- Its sections would draw numbers of tags that are others', and take them along when it is deleted.
    IF TG_OP = 'INSERT' AND NEW.kind = 'monotonic' AND NOT has_table_privilege('snowflake_ids.segment', 'INSERT') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied to insert monotonic series "%s"', left(NEW.name, 128)),
            DETAIL = 'Its sections are segment tags, and you may not write to the table of those.',
            HINT = 'Create it with snowflake_ids.series_create.';
    END IF;
    PERFORM snowflake_ids_internal.series_check(NEW.name, NEW.kind, NEW.key_type, NEW.start, NEW.max_value, NEW.reset, NEW.time_zone,
        NEW.format, NEW.description, NEW.step, NEW.max_step, NEW.sections);
    PERFORM snowflake_ids_internal.series_check_scope(NEW.kind, NEW.scope);
    RETURN NEW;
END
$$;
/* Who could create series goes on to. */
ALTER FUNCTION snowflake_ids.series_create RENAME TO series_create_before;
CREATE FUNCTION snowflake_ids.series_create(
    name        text,
    kind        text    DEFAULT 'gapless',
    key_type    regtype DEFAULT 'bigint',
    start       bigint  DEFAULT 1,
    step        integer DEFAULT NULL,
    max_step    integer DEFAULT NULL,
    reset       text    DEFAULT NULL,
    time_zone   text    DEFAULT 'UTC',
    format      text    DEFAULT NULL,
    max_value   bigint  DEFAULT 9223372036854775807,
    description text    DEFAULT NULL,
    owner       name    DEFAULT NULL,
    sections    integer DEFAULT NULL,
    scope       text    DEFAULT 'global'
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    -- The type's name as it is written with these settings.
    type_name text := coalesce(key_type::text, '');
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF kind COLLATE "C" IN ('dense', 'monotonic') THEN
        step := coalesce(step, least(CASE WHEN kind COLLATE "C" = 'dense' THEN 10 ELSE 1000 END, max_step));
        max_step := coalesce(max_step, greatest(CASE WHEN kind COLLATE "C" = 'dense' THEN 10000 ELSE 1000000 END, step));
    END IF;
    IF kind COLLATE "C" = 'monotonic' THEN
        sections := coalesce(sections, 16);
    END IF;
    PERFORM snowflake_ids_internal.series_check(name, kind, type_name, start, max_value, reset, time_zone, format, description, step,
        max_step, sections);
    PERFORM snowflake_ids_internal.series_check_scope(kind, scope);
    IF scope COLLATE "C" = 'shard' THEN
        RAISE feature_not_supported USING
            MESSAGE = 'cannot create a series of scope "shard"',
            DETAIL = 'Its key table is made beside a distributed table.',
            HINT = 'Leave scope out, and call snowflake_ids.series_distribute.';
    END IF;
    PERFORM snowflake_ids_internal.series_check_home(kind) WHERE scope COLLATE "C" = 'global';
    INSERT INTO snowflake_ids.series (name, kind, key_type, start, max_value, reset, time_zone, format, description, step, max_step,
        sections, scope)
    VALUES (name, kind, type_name, start, max_value, lower(reset COLLATE "C"), time_zone, format, description, step, max_step, sections,
        scope)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.series_taken(name);
    END IF;
    IF kind COLLATE "C" = 'monotonic' THEN
        PERFORM snowflake_ids_internal.series_make_sections(name);
    END IF;
    IF owner IS NOT NULL THEN
        PERFORM snowflake_ids_internal.series_set_owner(name, owner);
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids.series_create IS 'creates a series; with an owner, for that role alone until it grants more';
REVOKE EXECUTE ON FUNCTION snowflake_ids.series_create FROM PUBLIC;
DO $$
DECLARE
    holder text;
BEGIN
    FOR holder IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_proc AS p, aclexplode(p.proacl) AS a
        WHERE p.oid = 'snowflake_ids.series_create_before'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_ids.series_create TO %s', holder);
    END LOOP;
END
$$;
DROP FUNCTION snowflake_ids.series_create_before;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.resume_sequences(relation regclass, attribute name) RETURNS void
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
            MESSAGE = format('sequence "%s" goes on above the column''s highest value', owned),
            DETAIL = 'It stood at its end, as DROP EXTENSION leaves a bound sequence, and a dump of the table alone restores one.';
        PERFORM snowflake_ids_internal.lock_relation(owned);
        PERFORM snowflake_ids_internal.sequence_put(owned, greatest(stored, terms.seqstart),
            coalesce(stored >= terms.seqstart, false));
    END LOOP;
END
$$;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_others_of_sequence(sequence regclass, relation regclass, attribute name)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other record;
BEGIN
    FOR other IN SELECT * FROM snowflake_ids_internal.others_of_sequence(sequence, relation, attribute) LOOP
        IF other.most < snowflake_ids_internal.column_maximum(relation, attribute) THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('column "%s" of relation "%s" takes ids of sequence "%s", too, and cannot hold them',
                    other.other_attribute, other.other, sequence),
                DETAIL = format('It is %s, whose maximum is %s.', other.type, other.most),
                HINT = 'Widen that column first.';
        END IF;
        PERFORM snowflake_ids_internal.tell_other_of_sequence(sequence, other.other, other.other_attribute);
    END LOOP;
END
$$;
CREATE FUNCTION snowflake_ids_internal.others_of_sequence(sequence regclass, relation regclass, attribute name)
RETURNS TABLE (other regclass, other_attribute name, type regtype, most bigint)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH named (relation, number) AS (
        SELECT f.adrelid, f.adnum FROM pg_depend d JOIN pg_attrdef f ON f.oid = d.objid
        WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = $1
        UNION
        SELECT d.refobjid, d.refobjsubid::smallint FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = $1 AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
            AND d.refobjsubid > 0
    ), used AS (
        SELECT n.relation::regclass AS relation, a.attname AS attribute, snowflake_ids_internal.base_type(a.atttypid) AS type
        FROM named n JOIN pg_attribute a ON a.attrelid = n.relation AND a.attnum = n.number
            JOIN pg_class c ON c.oid = n.relation
        WHERE (n.relation NOT IN (SELECT snowflake_ids_internal.table_and_below($2)) OR a.attname <> $3 COLLATE "C")
            -- Any role may name a sequence in a default, by its oid.
            AND has_sequence_privilege(c.relowner, $1, 'USAGE') AND NOT pg_is_other_temp_schema(c.relnamespace)
    )
    SELECT u.relation, u.attribute, u.type, snowflake_ids_internal.type_maximum(u.type)
    FROM used u
    ORDER BY 4, u.relation::text, u.attribute
$$;
CREATE FUNCTION snowflake_ids_internal.is_default_of(expression text, sequence regclass) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
    SELECT expression COLLATE "C" = format('nextval(''%s''::regclass)', replace($2::text, '''', ''''''))
$$;
CREATE FUNCTION snowflake_ids_internal.shared_sequence(relation regclass, attribute name) RETURNS regclass
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.sequence FROM snowflake_ids_internal.sequences_of($1, $2) s
    WHERE snowflake_ids_internal.is_default_of(snowflake_ids_internal.default_of($1, $2), s.sequence)
        AND (s.owner IS NULL OR snowflake_ids_internal.sequence_is_bound(s.sequence)
            OR EXISTS (SELECT FROM snowflake_ids_internal.others_of_sequence(s.sequence, $1, $2)))
$$;
CREATE FUNCTION snowflake_ids_internal.attach_shared(relation regclass, attribute name, shared regclass, kind text, tag text,
    generator text, sequence text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    bound snowflake_ids.sequence_binding;
    highest bigint;
    most bigint;
    obstacle record;
    other record;
    former record;
    holders text;
BEGIN
    IF sequence COLLATE "C" <> 'redirect' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" is not only that of column "%s" of relation "%s"', shared, attribute, relation),
            DETAIL = 'Numbers of its own would come beside the column''s ids.',
            HINT = format('Leave sequence => %L out, which binds the sequence.', left(sequence, 128));
    END IF;
    FOR other IN SELECT b AS member FROM snowflake_ids_internal.table_and_below(relation) b LOOP
        IF NOT snowflake_ids_internal.is_default_of(snowflake_ids_internal.default_of(other.member, attribute), shared) THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('column "%s" of relation "%s" does not take its ids from sequence "%s"', attribute, other.member, shared),
                DETAIL = format('Column "%s" of relation "%s" does, as others do: the sequence is bound, and no default changed.',
                    attribute, relation),
                HINT = 'Give it the same default before, or drop its default.';
        END IF;
    END LOOP;
    PERFORM snowflake_ids_internal.sequence_check_redirects();
    PERFORM snowflake_ids_internal.sequence_check_owned(shared);
    PERFORM snowflake_ids_internal.lock_relation(shared);
    PERFORM snowflake_ids_internal.sequence_check_owned(shared);
    -- A superuser may be calling, for a table whose owner has named a sequence of another's.
    IF NOT EXISTS (SELECT FROM pg_class t, pg_class s WHERE t.oid = relation AND s.oid = shared AND pg_has_role(t.relowner, s.relowner, 'USAGE')) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('sequence "%s" is not the table owner''s to bind', shared),
            DETAIL = format('Column "%s" of relation "%s" takes numbers of it, and others do.', attribute, relation),
            HINT = 'Have its owner bind it with snowflake_ids.bind_sequence.';
    END IF;
    SELECT least(snowflake_ids_internal.column_maximum(relation, attribute), min(o.most)) INTO most
    FROM snowflake_ids_internal.others_of_sequence(shared, relation, attribute) o;
    SELECT * INTO bound FROM snowflake_ids.sequence_binding b
    WHERE b.sequence = shared AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(shared));
    IF FOUND AND (bound.tag IS NULL) <> (kind COLLATE "C" = 'snowflake') OR tag <> bound.tag COLLATE "C"
        OR FOUND AND kind COLLATE "C" = 'snowflake' AND generator IS DISTINCT FROM bound.generator COLLATE "C"
    THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" is bound otherwise', shared),
            DETAIL = CASE WHEN bound.tag IS NOT NULL THEN format('It gives ids of segment tag "%s".', bound.tag)
                WHEN bound.generator IS NOT NULL THEN format('It gives ids of generator "%s".', bound.generator)
                ELSE 'It gives snowflake ids.' END,
            HINT = format('Attach the column as that, or first SELECT snowflake_ids.unbind_sequence(%L);', shared);
    END IF;
    IF kind COLLATE "C" = 'snowflake' THEN
        PERFORM snowflake_ids_internal.check_others_of_sequence(shared, relation, attribute);
    ELSE
        FOR other IN SELECT * FROM snowflake_ids_internal.others_of_sequence(shared, relation, attribute) LOOP
            PERFORM snowflake_ids_internal.tell_other_of_sequence(shared, other.other, other.other_attribute);
        END LOOP;
    END IF;
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'searching for the highest id');
    highest := snowflake_ids_internal.highest_id(relation, attribute);
    IF bound.sequence IS NULL THEN
        -- Its columns say where it ends then.
        SELECT * INTO former FROM snowflake_ids_internal.sequence_make_fit(shared);
        SELECT * INTO obstacle FROM snowflake_ids_internal.sequence_obstacle(shared);
        IF obstacle.message IS NOT NULL THEN
            RAISE invalid_parameter_value USING MESSAGE = obstacle.message, DETAIL = obstacle.detail, HINT = obstacle.hint;
        END IF;
        PERFORM snowflake_ids_internal.advance_sequence(shared, highest);
        PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'raising the tag');
        IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
            tag := snowflake_ids_internal.default_tag(shared);
            PERFORM snowflake_ids_internal.check_unnamed_tag(shared, tag);
        END IF;
        PERFORM snowflake_ids_internal.sequence_bind(shared, kind, tag, generator, most);
        PERFORM snowflake_ids_internal.sequence_remember(shared, former.type, former.cycles, former.unlogged, NULL);
    ELSIF bound.tag IS NOT NULL THEN
        tag := bound.tag;
        PERFORM snowflake_ids_internal.seed_tag(tag, highest, most, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = shared));
    ELSE
        PERFORM snowflake_ids_internal.check_snowflake_above(relation, attribute, highest,
            snowflake_ids_internal.id_default(kind, NULL, generator));
    END IF;
    RAISE NOTICE USING
        MESSAGE = format('sequence "%s" gives the ids, and the default of column "%s" of relation "%s" stays', shared, attribute, relation),
        DETAIL = 'The column does not have it for itself.';
    SELECT string_agg(DISTINCT quote_ident(pg_get_userbyid(a.grantee)), ', ') INTO holders
    FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = shared AND a.privilege_type IN ('USAGE', 'UPDATE')
        AND a.grantee NOT IN (0, c.relowner) AND EXISTS (SELECT FROM snowflake_ids.segment_restricted r WHERE r.tag = attach_shared.tag);
    IF holders IS NOT NULL THEN
        RAISE NOTICE USING
            MESSAGE = format('roles that may use sequence "%s" may need privileges on segment tag "%s"', shared, left(tag, 128)),
            DETAIL = format('The tag is restricted. These roles have rights on the sequence: %s.', holders),
            HINT = 'Grant them USAGE with snowflake_ids.segment_grant.';
    END IF;
END
$$;
DROP FUNCTION snowflake_ids_internal.tell_shared_tag(regclass, name, text);
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
COMMENT ON FUNCTION snowflake_ids_internal.others_of_sequence IS
    'the columns outside of a table and those below it that use a sequence';
COMMENT ON FUNCTION snowflake_ids_internal.is_default_of IS 'whether a default is nextval of a sequence, and nothing else';
COMMENT ON FUNCTION snowflake_ids_internal.shared_sequence IS
    'the sequence of a column''s default, where the column does not have it for itself; else null';
COMMENT ON FUNCTION snowflake_ids_internal.attach_shared IS 'attaches a column by binding the sequence that it shares';
COMMENT ON FUNCTION snowflake_ids_internal.tell_shared_tag IS
    'a notice of another column that takes ids by the same default';
COMMENT ON FUNCTION snowflake_ids_internal.tell_other_of_sequence IS 'a notice of another column that a sequence is for';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.others_of_sequence, snowflake_ids_internal.is_default_of,
    snowflake_ids_internal.shared_sequence, snowflake_ids_internal.attach_shared, snowflake_ids_internal.tell_shared_tag,
    snowflake_ids_internal.tell_other_of_sequence FROM PUBLIC;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_column(relation regclass, attribute name, kind text) RETURNS void
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
                format('Widen it, which rewrites the table, and likewise the columns that refer to it: '
                    'ALTER TABLE %s ALTER COLUMN %I TYPE bigint.', relation, attribute)
                || ' Or attach it with kind => ''segment''.'
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
            DETAIL = format('Its values are those of table %s.', other.of),
            HINT = 'Attach the column that it refers to.';
    END IF;
    SELECT b AS member, snowflake_ids_internal.default_of(b, attribute) AS expression INTO other
    FROM unnest(members) b, pg_attribute a, pg_attrdef f, pg_depend d, pg_class s
    WHERE a.attrelid = b AND a.attname = attribute COLLATE "C" AND f.adrelid = b AND f.adnum = a.attnum
        AND d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid
        AND s.relkind = 'S' AND NOT snowflake_ids_internal.is_default_of(snowflake_ids_internal.default_of(b, attribute), s.oid::regclass)
    LIMIT 1;
    IF FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('default of column "%s" of relation "%s" is more than a number of a sequence', attribute, other.member),
            DETAIL = format('It is %s.', other.expression),
            HINT = 'Bind the sequence with snowflake_ids.bind_sequence, or drop the default first.';
    END IF;
    FOR other IN
        SELECT c.conrelid::regclass AS relation, a.attname AS attribute, a.atttypid::regtype AS type,
            snowflake_ids_internal.type_maximum(snowflake_ids_internal.base_type(a.atttypid)) AS most
        FROM pg_constraint c CROSS JOIN LATERAL unnest(c.conkey, c.confkey) AS k (own, other)
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.own
            JOIN pg_attribute r ON r.attrelid = c.confrelid AND r.attnum = k.other AND r.attname = check_uses.attribute COLLATE "C"
        WHERE c.contype = 'f' AND c.conparentid = 0 AND c.confrelid = ANY (members)
            AND snowflake_ids_internal.base_type(a.atttypid) IN ('smallint'::regtype, 'integer'::regtype)
        ORDER BY 1, 2
    LOOP
        CONTINUE WHEN other.most >= most;
        IF kind COLLATE "C" = 'snowflake' THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('column "%s" of relation "%s" refers to the column, and cannot hold its ids', other.attribute, other.relation),
                DETAIL = format('It is %s, whose maximum is %s.', other.type, other.most),
                HINT = format('Widen it first: ALTER TABLE %s ALTER COLUMN %I TYPE bigint.', other.relation, other.attribute);
        END IF;
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" refers to the column, and holds ids up to %s', other.attribute, other.relation, other.most),
            HINT = 'Widen it before ids come so far.';
    END LOOP;
    FOR other IN
        SELECT c.conname, c.conrelid::regclass AS relation, pg_get_constraintdef(c.oid) AS definition
        FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attname = attribute COLLATE "C"
        WHERE c.contype = 'c' AND c.conrelid = ANY (members) AND c.conkey = ARRAY[a.attnum] AND c.coninhcount = 0
        ORDER BY 2, 1
    LOOP
        RAISE NOTICE USING
            MESSAGE = format('constraint "%s" of relation "%s" checks the ids to come', other.conname, other.relation),
            DETAIL = left(other.definition, 1000);
    END LOOP;
    FOR other IN
        SELECT c.conname, c.contypid::regtype AS domain, pg_get_constraintdef(c.oid) AS definition
        FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = relation AND a.attname = attribute COLLATE "C" AND a.atttypid = c.contypid
        WHERE c.contype = 'c' ORDER BY 1
    LOOP
        RAISE NOTICE USING
            MESSAGE = format('constraint "%s" of domain %s checks the ids to come', other.conname, other.domain),
            DETAIL = left(other.definition, 1000);
    END LOOP;
    FOR other IN
        SELECT t.tgname, t.tgrelid::regclass AS relation, s.sequence
        FROM pg_trigger t JOIN snowflake_ids_internal.sequences_of(relation, attribute) s ON s.owner = t.tgrelid
            JOIN pg_attribute a ON a.attrelid = t.tgrelid AND a.attname = attribute COLLATE "C" AND NOT a.atthasdef AND a.attidentity = ''
        -- For each row, before an INSERT.
        WHERE NOT t.tgisinternal AND t.tgtype::integer & 7 = 7
        ORDER BY 2, 1
    LOOP
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" has no default, and may be filled by trigger "%s"', attribute, other.relation,
                other.tgname),
            DETAIL = format('It owns sequence "%s", and gets a default now, too.', other.sequence),
            HINT = format('Where the trigger calls the sequence, do this instead: SELECT snowflake_ids.bind_sequence(%L, %L);', other.sequence,
                left(kind, 128));
    END LOOP;
    IF EXISTS (SELECT FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attname = attribute COLLATE "C"
            WHERE p.partrelid = relation AND p.partstrat = 'r' AND p.partattrs[0] = a.attnum AND p.partdefid = 0)
        AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = relation AND pg_get_expr(c.relpartbound, c.oid) LIKE '%TO (MAXVALUE%')
    THEN
        RAISE NOTICE USING
            MESSAGE = format('relation "%s" has partitions by ranges of the column, and none for all ids to come', relation),
            HINT = 'Make a partition that ends at MAXVALUE, or a default one.';
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.column_maximum(relation regclass, attribute name) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.type_maximum(snowflake_ids_internal.column_type(relation, attribute))
$$;
COMMENT ON FUNCTION snowflake_ids_internal.check_uses IS
    'fails where a column''s use does not go with the ids to come, and names what may not';
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_report() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT json_build_object('datacenter_id', s.datacenter_id, 'worker_id', s.worker_id, 'layout', s.layout, 'state', s.state,
        'identity', coalesce(r.identity, snowflake_ids_internal.registry_identity()),
        'timeline', coalesce(r.timeline, snowflake_ids_internal.registry_timeline()::text), 'registry', r.server,
        'leased_from', CASE WHEN s.scope = 'this server only' THEN s.leased_from END,
        'defaults', snowflake_ids_internal.citus_defaults(),
        'generators', (SELECT md5(coalesce(string_agg(format('%s: %s', g.name, g.layout), E'\n' ORDER BY g.name), ''))
            FROM snowflake_ids.generator AS g),
        'rights', md5(snowflake_ids_internal.citus_rights()::text),
        -- Who may use a distributed one, Citus tells.
        'series', (SELECT md5(coalesce(string_agg((CASE WHEN w ->> 'scope' = 'shard' THEN w - '{step,max_step,privileges}'::text[]
                ELSE w - '{id,step,max_step,description}'::text[] END)::text, E'\n'), ''))
            FROM jsonb_array_elements(snowflake_ids_internal.citus_series()) AS w),
        'failure', (SELECT json_build_object('server', h.server, 'at', h.last_failure, 'error', left(h.error, 1000))
            FROM snowflake_ids.registry_status AS h WHERE h.state = 'failing' ORDER BY h.position LIMIT 1))::text
    FROM snowflake_ids.status AS s,
         (SELECT string_agg(identity, ',' ORDER BY position) AS identity, string_agg(timeline::text, ',' ORDER BY position) AS timeline,
                 string_agg(server, ',' ORDER BY position) AS server
          FROM snowflake_ids.registry_server) AS r
$$;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.highest_id(relation regclass, attribute name) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    members regclass[] := ARRAY(SELECT b FROM snowflake_ids_internal.table_and_below(relation) b);
    member regclass;
    looked_at bigint := 0;
    stored bigint;
    numbered bigint;
    tagged bigint;
BEGIN
    FOREACH member IN ARRAY members LOOP
        PERFORM snowflake_ids_internal.progress_tables(looked_at, cardinality(members));
        BEGIN
            stored := greatest(stored,
                snowflake_ids_internal.as_owner(member, format('SELECT max(%I) FROM ONLY %s', attribute, member)));
        EXCEPTION WHEN undefined_function THEN
            -- What an index computes is planned with it.
            RAISE undefined_function USING
                MESSAGE = SQLERRM,
                DETAIL = format('An index of table %s computes it: %s. It is found by a search_path, which is pg_catalog here.', member,
                    (SELECT coalesce(string_agg(i.indexrelid::regclass::text, ', '), 'none') FROM pg_index i
                     WHERE i.indrelid = member AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))),
                HINT = 'Give the functions of the index a search_path of their own: ALTER FUNCTION ... SET search_path = ...;';
        END;
        looked_at := looked_at + 1;
    END LOOP;
    SELECT max(snowflake_ids_internal.highest_number(s.sequence)) INTO numbered
    FROM snowflake_ids_internal.sequences_of(relation, attribute) s;
    SELECT max(snowflake_ids_internal.highest_of_tag(t)) INTO tagged
    FROM (SELECT DISTINCT c.relowner, snowflake_ids_internal.tag_of_default(snowflake_ids_internal.default_of(b, attribute COLLATE "C")) AS t
        FROM snowflake_ids_internal.table_and_below(relation) b JOIN pg_class c ON c.oid = b) tags
    -- Any role may name a tag in a default. How far another's is, is not told.
    WHERE t IS NOT NULL AND snowflake_ids_internal.may_take_ids(relowner, t);
    RETURN greatest(stored, numbered, tagged, 0);
END
$$;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids.bind_sequence(sequence regclass, kind text DEFAULT 'snowflake', tag text DEFAULT NULL,
    generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    obstacle record;
    propagation text;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('bind_sequence');
    PERFORM snowflake_ids_internal.sequence_check_redirects();
    IF sequence IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'sequence must not be null';
    END IF;
    PERFORM snowflake_ids_internal.check_kind(kind, tag, generator);
    PERFORM snowflake_ids_internal.sequence_check_owned(sequence);
    PERFORM snowflake_ids_internal.lock_relation(sequence);
    PERFORM snowflake_ids_internal.sequence_check_owned(sequence);
    IF to_regclass('pg_catalog.pg_dist_node') IS NOT NULL AND EXISTS (
        SELECT FROM pg_depend AS d LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
        WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
                AND snowflake_ids_internal.is_distributed(d.refobjid::regclass)
            OR d.refclassid = 'pg_class'::regclass AND d.refobjid = sequence AND snowflake_ids_internal.is_distributed(f.adrelid::regclass))
    THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot bind sequence "%s", which a distributed table uses', sequence),
            DETAIL = 'Each node of the cluster has a sequence of its own for that, and counts in a range of its own.',
            HINT = 'Attach the column with snowflake_ids.attach, on the coordinator.';
    ELSIF snowflake_ids_internal.sequence_is_bound(sequence) THEN
        RAISE duplicate_object USING
            MESSAGE = format('sequence "%s" is already bound', sequence),
            DETAIL = (SELECT CASE WHEN b.generator IS NOT NULL THEN format('It gives ids of generator "%s".', b.generator)
                WHEN b.tag IS NULL THEN 'It gives snowflake ids.'
                ELSE format('It gives ids of segment tag "%s".', b.tag) END
                FROM snowflake_ids.sequence_binding AS b WHERE b.sequence = bind_sequence.sequence),
            HINT = format('To bind it otherwise, first SELECT snowflake_ids.unbind_sequence(%L);', sequence);
    END IF;
    SELECT * INTO obstacle FROM snowflake_ids_internal.sequence_obstacle(sequence);
    IF obstacle.message IS NOT NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = obstacle.message, DETAIL = obstacle.detail, HINT = obstacle.hint;
    END IF;
    IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
        tag := snowflake_ids_internal.default_tag(sequence);
        PERFORM snowflake_ids_internal.check_unnamed_tag(sequence, tag);
    END IF;
    propagation := snowflake_ids_internal.propagate_nothing();
    PERFORM snowflake_ids_internal.sequence_bind(sequence, kind, tag, generator);
    PERFORM snowflake_ids_internal.propagate(propagation) WHERE propagation IS NOT NULL;
END
$$;
CREATE FUNCTION snowflake_ids_internal.may_move_tag(role oid, tag text) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT has_table_privilege($1, 'snowflake_ids.segment', 'UPDATE') OR EXISTS (SELECT FROM snowflake_ids.segment_privilege p
        WHERE p.tag = $2 COLLATE "C" AND (p.grantee = 0 OR pg_has_role($1, p.grantee::oid, 'USAGE'))
            AND string_to_array(p.privileges, ',') && ARRAY['UPDATE', 'OWNER'])
$$;
CREATE FUNCTION snowflake_ids_internal.check_unnamed_tag(relation regclass, tag text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM snowflake_ids.segment s WHERE s.tag = check_unnamed_tag.tag COLLATE "C")
        AND NOT (SELECT snowflake_ids_internal.may_move_tag(c.relowner, check_unnamed_tag.tag) FROM pg_class c WHERE c.oid = relation)
    THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('segment tag "%s" is not the owner''s to move', left(tag, 128)),
            DETAIL = format('It exists, and is called as "%s" is, whose owner has no privilege UPDATE on it.', relation),
            HINT = 'If it is meant, name the tag; else name another one.';
    END IF;
END
$$;
CREATE FUNCTION snowflake_ids_internal.may_take_ids(role oid, tag text) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM snowflake_ids.segment_restricted r WHERE r.tag = $2 COLLATE "C")
        OR has_table_privilege($1, 'snowflake_ids.segment', 'UPDATE') OR EXISTS (SELECT FROM snowflake_ids.segment_privilege p
        WHERE p.tag = $2 COLLATE "C" AND (p.grantee = 0 OR pg_has_role($1, p.grantee::oid, 'USAGE'))
            AND string_to_array(p.privileges, ',') && ARRAY['USAGE', 'UPDATE', 'OWNER'])
$$;
COMMENT ON FUNCTION snowflake_ids_internal.may_move_tag IS 'whether a role may move a tag';
COMMENT ON FUNCTION snowflake_ids_internal.check_unnamed_tag IS
    'fails where a tag that was not named exists, and the owner of a relation may not move it';
COMMENT ON FUNCTION snowflake_ids_internal.may_take_ids IS 'whether a role may take ids of a tag';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.check_uses, snowflake_ids_internal.may_move_tag,
    snowflake_ids_internal.may_take_ids, snowflake_ids_internal.check_unnamed_tag FROM PUBLIC;
/* Who had the part "tags" attaches columns. Some may have been attached so that a number comes twice. */
DO $$
DECLARE
    holder text;
    found text;
BEGIN
    FOR holder IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_proc AS p, aclexplode(p.proacl) AS a
        WHERE p.oid = 'snowflake_ids_internal.sequence_bind'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_ids_internal.others_of_sequence, snowflake_ids_internal.is_default_of, '
            'snowflake_ids_internal.shared_sequence, snowflake_ids_internal.attach_shared, snowflake_ids_internal.tell_shared_tag, '
            'snowflake_ids_internal.tell_other_of_sequence, snowflake_ids_internal.check_uses, '
            'snowflake_ids_internal.may_move_tag, snowflake_ids_internal.may_take_ids, snowflake_ids_internal.check_unnamed_tag TO %s', holder);
    END LOOP;
    SELECT string_agg(format('column %I of table %s and of its parent %s', a.attname, i.inhrelid::regclass, i.inhparent::regclass), ', ')
    INTO found
    FROM pg_inherits AS i JOIN pg_attribute AS a ON a.attrelid = i.inhrelid AND a.attnum > 0
        JOIN pg_attribute AS b ON b.attrelid = i.inhparent AND b.attname = a.attname
        JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        JOIN pg_attrdef AS e ON e.adrelid = b.attrelid AND e.adnum = b.attnum
    WHERE starts_with(pg_get_expr(d.adbin, d.adrelid), 'segment_nextval(') AND starts_with(pg_get_expr(e.adbin, e.adrelid), 'segment_nextval(')
        AND pg_get_expr(d.adbin, d.adrelid) <> pg_get_expr(e.adbin, e.adrelid);
    IF found IS NOT NULL THEN
        RAISE NOTICE 'some columns have other segment tags than their parents, and may give the same ids' USING
            DETAIL = format('These: %s.', found),
            HINT = 'Where one sequence served both, attach the child with the tag of the parent.';
    END IF;
    SELECT string_agg(s.oid::regclass::text, ', ') INTO found
    FROM pg_class AS s JOIN pg_sequence AS q ON q.seqrelid = s.oid
    WHERE EXISTS (SELECT FROM pg_depend AS d JOIN pg_attrdef AS f ON f.oid = d.objid JOIN pg_class AS c ON c.oid = f.adrelid
            WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_proc'::regclass
                AND d.refobjid = 'pg_catalog.segment_nextval(text)'::regprocedure AND c.relnamespace = s.relnamespace)
        AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid)
        AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = s.oid AND d.deptype IN ('a', 'i', 'e'))
        AND NOT EXISTS (SELECT FROM snowflake_ids.sequence_binding AS b WHERE b.sequence = s.oid);
    IF found IS NOT NULL THEN
        RAISE NOTICE 'some sequences belong to no column beside attached ones, and may give ids that tables have' USING
            DETAIL = format('These: %s.', found),
            HINT = 'Where functions or triggers call one for a column that was attached, bind it to the tag of that column with '
                'snowflake_ids.bind_sequence.';
    END IF;
END
$$;
ALTER VIEW snowflake_ids.sequence_status SET (security_barrier);
/* Functions that changed. */
CREATE FUNCTION snowflake_ids_internal.sequence_make_fit(sequence regclass, OUT type regtype, OUT cycles boolean, OUT unlogged boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    change text := format('ALTER SEQUENCE %s ', snowflake_ids_internal.qualified_name(sequence));
BEGIN
    SELECT s.seqtypid, s.seqcycle, c.relpersistence = 'u' INTO type, cycles, unlogged
    FROM pg_sequence AS s JOIN pg_class AS c ON c.oid = s.seqrelid WHERE s.seqrelid = sequence;
    IF type <> 'bigint'::regtype THEN
        PERFORM snowflake_ids_internal.as_owner(sequence, change || 'AS bigint');
    END IF;
    IF cycles THEN
        PERFORM snowflake_ids_internal.as_owner(sequence, change || 'NO CYCLE');
    END IF;
    IF unlogged THEN
        PERFORM snowflake_ids_internal.as_owner(sequence, change || 'SET LOGGED');
    END IF;
END
$$;
CREATE FUNCTION snowflake_ids_internal.sequence_make_former(sequence regclass, type regtype, cycles boolean,
    unlogged boolean, number bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    change text := format('ALTER SEQUENCE %s ', snowflake_ids_internal.qualified_name(sequence));
    type_then regtype := coalesce(type, (SELECT snowflake_ids_internal.base_type(a.atttypid)
        FROM pg_depend AS d JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
        WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence AND d.refclassid = 'pg_class'::regclass
            AND d.deptype IN ('a', 'i') LIMIT 1));
BEGIN
    IF type_then <> 'bigint'::regtype THEN
        IF number <= snowflake_ids_internal.type_maximum(type_then) THEN
            PERFORM snowflake_ids_internal.as_owner(sequence, change || 'AS ' || type_then);
        ELSE
            RAISE NOTICE USING
                MESSAGE = format('sequence "%s" stays of type bigint', sequence),
                DETAIL = format('It was of type %s, and goes on at %s.', type_then, number);
        END IF;
    END IF;
    IF cycles THEN
        PERFORM snowflake_ids_internal.as_owner(sequence, change || 'CYCLE');
    END IF;
    IF unlogged THEN
        PERFORM snowflake_ids_internal.as_owner(sequence, change || 'SET UNLOGGED');
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_detach(relation regclass, attribute name, kind text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF relation IS NULL OR attribute IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'relation and column must not be null';
    ELSIF kind COLLATE "C" NOT IN ('sequence', 'identity', 'none') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unrecognized kind "%s"', left(kind, 128)),
            HINT = 'Known kinds are sequence, identity and none.';
    END IF;
END
$$;
CREATE FUNCTION snowflake_ids_internal.former_identities(relation regclass, attribute name) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned record;
    identity "char";
    identities jsonb := '{}';
BEGIN
    FOR owned IN SELECT s.sequence, s.owner, a.attidentity
        FROM snowflake_ids_internal.sequences_of(relation, attribute) s
            JOIN pg_attribute a ON a.attrelid = s.owner AND a.attname = attribute COLLATE "C"
    LOOP
        identity := owned.attidentity;
        IF identity = '' THEN
            SELECT b.identity INTO identity FROM snowflake_ids.sequence_binding b WHERE b.sequence = owned.sequence;
        END IF;
        IF identity IN ('a', 'd') THEN
            identities := identities || jsonb_build_object(owned.owner::oid, identity);
        END IF;
    END LOOP;
    RETURN identities;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.drop_identities(relation regclass, attribute name, keep_sequence boolean)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    member regclass;
    sequence regclass;
    sequence_name text;
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
        SELECT c.relacl, obj_description(c.oid, 'pg_class') INTO rights, described FROM pg_class c WHERE c.oid = sequence;
        PERFORM snowflake_ids_internal.as_owner(member,
            format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', member, attribute));
        IF keep_sequence THEN
            made := snowflake_ids_internal.create_sequence(member, attribute, sequence_name, course.options);
            PERFORM snowflake_ids_internal.set_sequence(made, course.last_value, course.is_called);
            PERFORM snowflake_ids_internal.set_rights(made, rights, described);
        END IF;
    END LOOP;
END
$$;
CREATE FUNCTION snowflake_ids_internal.set_rights(sequence regclass, rights aclitem[], described text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    on_sequence text := format('ON SEQUENCE %s ', snowflake_ids_internal.qualified_name(sequence));
    has aclitem[];
    as_made aclitem[];
    a record;
BEGIN
    IF octet_length(described) <= 8000 THEN
        PERFORM snowflake_ids_internal.as_owner(sequence, format('COMMENT %s IS %L', on_sequence, described));
    END IF;
    SELECT coalesce(c.relacl, d.acl), d.acl INTO has, as_made
    FROM pg_class c, acldefault('s', c.relowner) AS d (acl) WHERE c.oid = sequence;
    rights := coalesce(rights, as_made);
    IF has @> rights AND rights @> has THEN
        RETURN;
    END IF;
    FOR a IN SELECT DISTINCT CASE e.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS role
        FROM aclexplode(has) e LEFT JOIN pg_roles r ON r.oid = e.grantee
    LOOP
        PERFORM snowflake_ids_internal.as_owner(sequence, format('REVOKE ALL %sFROM %s', on_sequence, a.role));
    END LOOP;
    FOR a IN SELECT CASE e.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS role, e.privilege_type, e.is_grantable
        FROM aclexplode(rights) e LEFT JOIN pg_roles r ON r.oid = e.grantee WHERE e.grantee = 0 OR r.rolname IS NOT NULL
    LOOP
        PERFORM snowflake_ids_internal.as_owner(sequence,
            format('GRANT %s %sTO %s%s', a.privilege_type, on_sequence, a.role, CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END));
    END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.restore_sequence(relation regclass, attribute name, highest bigint) RETURNS void
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
CREATE FUNCTION snowflake_ids_internal.restore_identities(relation regclass, attribute name, highest bigint, identities jsonb)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    member regclass;
    identity text;
BEGIN
    PERFORM snowflake_ids_internal.set_default(relation, attribute, 'DROP DEFAULT');
    FOR member, identity IN
        SELECT b, coalesce(identities ->> b::oid::text, 'd')
        FROM snowflake_ids_internal.table_and_below(relation) WITH ORDINALITY t (b, place)
        WHERE b = relation OR identities ? b::oid::text ORDER BY place DESC
    LOOP
        PERFORM snowflake_ids_internal.restore_identity(member, attribute, highest, identity = 'a');
    END LOOP;
    PERFORM snowflake_ids_internal.tell_tables_without_identity(relation, attribute);
END
$$;
DROP FUNCTION snowflake_ids_internal.restore_identity(regclass, name, bigint);
CREATE FUNCTION snowflake_ids_internal.restore_identity(relation regclass, attribute name, highest bigint, always boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept regclass := snowflake_ids_internal.kept_sequence(relation, attribute, highest);
    sequence regclass;
    course record;
    rights aclitem[];
    described text;
BEGIN
    IF NOT (SELECT a.attnotnull FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C") THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" must be NOT NULL to be an identity',
                attribute, relation),
            HINT = format('Set it NOT NULL first: ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', relation, attribute);
    END IF;
    IF kept IS NULL THEN
        SELECT NULL AS options INTO course;
    ELSE
        SELECT * INTO course FROM snowflake_ids_internal.sequence_course(kept);
        SELECT c.relacl, obj_description(c.oid, 'pg_class') INTO rights, described FROM pg_class c WHERE c.oid = kept;
        PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
    END IF;
    -- With the caller's rights: it makes a sequence where the owner need not be allowed to, and reads no row.
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY %s', relation, attribute,
        CASE WHEN always THEN 'ALWAYS' ELSE 'BY DEFAULT' END, '(' || course.options || ')');
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
DROP FUNCTION snowflake_ids_internal.kept_sequence(regclass, name);
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.detach_worker(relation_name text, attribute name, kind text, sequence_name text,
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
COMMENT ON FUNCTION snowflake_ids_internal.base_type IS 'the type that a domain is of; else the type itself';
COMMENT ON FUNCTION snowflake_ids_internal.type_maximum IS 'the highest number that a type can hold';
COMMENT ON FUNCTION snowflake_ids_internal.column_type IS 'the type of a column, or of what its domain is of';
COMMENT ON FUNCTION snowflake_ids_internal.former_identities IS
    'the identities of a column and of those below it, as they are, or were before their sequences were bound';
COMMENT ON FUNCTION snowflake_ids_internal.set_rights IS 'gives a sequence the rights and the comment that another one had';
COMMENT ON FUNCTION snowflake_ids_internal.restore_identities IS
    'makes a column an identity that goes on above an id, and those below it that were one';
COMMENT ON FUNCTION snowflake_ids_internal.restore_identity IS 'makes a column an identity that goes on above an id';
COMMENT ON FUNCTION snowflake_ids_internal.kept_sequence IS
    'the sequence that a column owns, of a type that holds the numbers above an id; null where it has none';
COMMENT ON FUNCTION snowflake_ids_internal.bind_sequences IS
    'has the sequences that a column and those below it own give the ids of its default';
COMMENT ON FUNCTION snowflake_ids_internal.check_detach IS 'fails where the arguments of detach are not right';
COMMENT ON FUNCTION snowflake_ids_internal.drop_identities IS
    'turns identity columns of a table and of those below it into plain ones';
COMMENT ON FUNCTION snowflake_ids_internal.restore_sequence IS
    'makes a column take its default from its sequence, kept or new, above an id';
COMMENT ON FUNCTION snowflake_ids.detach IS
    'takes an attached column''s default back to what it was: its sequence or identity; or to one that is named, or none';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.sequence_remember, snowflake_ids_internal.base_type, snowflake_ids_internal.type_maximum, snowflake_ids_internal.column_type, snowflake_ids_internal.former_identities,
    snowflake_ids_internal.set_rights, snowflake_ids_internal.sequence_make_fit, snowflake_ids_internal.sequence_make_former, snowflake_ids_internal.restore_identities, snowflake_ids_internal.restore_identity,
    snowflake_ids_internal.kept_sequence, snowflake_ids_internal.bind_sequences FROM PUBLIC;
DO $$
DECLARE
    holder text;
BEGIN
    FOR holder IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_proc AS p, aclexplode(p.proacl) AS a
        WHERE p.oid = 'snowflake_ids_internal.sequence_bind'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION '
            'snowflake_ids_internal.sequence_remember, snowflake_ids_internal.base_type, snowflake_ids_internal.type_maximum, '
            'snowflake_ids_internal.column_type, snowflake_ids_internal.former_identities, snowflake_ids_internal.set_rights, '
            'snowflake_ids_internal.sequence_make_fit, snowflake_ids_internal.sequence_make_former, snowflake_ids_internal.restore_identities, '
            'snowflake_ids_internal.restore_identity, snowflake_ids_internal.kept_sequence, snowflake_ids_internal.bind_sequences TO %s', holder);
    END LOOP;
END
$$;
/* Functions that changed. */
CREATE FUNCTION snowflake_ids.worker_release_former() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.worker_check_registry();
    UPDATE snowflake_ids.worker_lease AS w SET former_until = clock_timestamp() WHERE w.former_until > clock_timestamp();
END
$$;
ALTER TABLE snowflake_ids.worker_lease ADD COLUMN former_until timestamptz;
COMMENT ON COLUMN snowflake_ids.worker_lease.former_until IS
    'its holder had it of a former registry in the place of this one, whose other leases may last until then';
COMMENT ON FUNCTION snowflake_ids.worker_release_former IS
    'says that no server issues ids under a lease of a former registry that this one does not know';
REVOKE EXECUTE ON FUNCTION snowflake_ids.worker_release_former FROM PUBLIC;
DO $$
DECLARE
    holder text;
BEGIN
    FOR holder IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_proc AS p, aclexplode(p.proacl) AS a
        WHERE p.oid = 'snowflake_ids.worker_release'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_ids.worker_release_former TO %s', holder);
    END LOOP;
END
$$;
/* Functions that changed. */
CREATE FUNCTION snowflake_ids_internal.citus_defaults() RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
DECLARE
    defaults text;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE $query$
            SELECT md5(coalesce(string_agg(format('%s.%s: %s', p.logicalrelid, a.attname, w.written), E'\n'
                ORDER BY p.logicalrelid::text COLLATE "C", a.attname), ''))
            FROM pg_catalog.pg_dist_partition AS p JOIN pg_attribute AS a ON a.attrelid = p.logicalrelid AND a.atthasdef,
                LATERAL (SELECT snowflake_ids_internal.default_of(p.logicalrelid, a.attname)) AS w (written)
            WHERE snowflake_ids_internal.kind_of_default(w.written) IS NOT NULL$query$
        INTO defaults;
    END IF;
    RETURN defaults;
END
$$;

/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_restrict(tag text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_new boolean;
BEGIN
    PERFORM FROM snowflake_ids.segment AS s WHERE s.tag = segment_restrict.tag COLLATE "C" FOR KEY SHARE;
    IF NOT FOUND AND NOT EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        PERFORM snowflake_ids_internal.segment_unknown(tag);
    END IF;
    -- What is left of roles that were dropped.
    DELETE FROM snowflake_ids.segment_privilege AS p
    WHERE p.tag = segment_restrict.tag COLLATE "C" AND p.grantee <> 0 AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = p.grantee);
    INSERT INTO snowflake_ids.segment_restricted AS r (tag) VALUES (segment_restrict.tag) ON CONFLICT DO NOTHING;
    is_new := FOUND;
    IF snowflake_ids_internal.has_workers() THEN
        RAISE NOTICE 'rights on segment tag "%" stay as they are on other nodes of the cluster', left(tag, 128) USING
            HINT = 'To pass them on, CALL snowflake_ids.use_citus() on the coordinator afterwards.';
    END IF;
    RETURN is_new;
END
$$;
CREATE FUNCTION snowflake_ids_internal.citus_rights() RETURNS jsonb
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_array(r.tag, p.grantee::text, p.privileges) ORDER BY r.tag, p.grantee::text COLLATE "C"), '[]')
    FROM snowflake_ids.segment_restricted AS r LEFT JOIN snowflake_ids.segment_privilege AS p ON p.tag = r.tag
$$;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids.unbind_sequence(sequence regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    propagation text;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('unbind_sequence');
    IF sequence IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'sequence must not be null';
    END IF;
    PERFORM snowflake_ids_internal.sequence_check_owned(sequence);
    PERFORM snowflake_ids_internal.lock_relation(sequence);
    PERFORM snowflake_ids_internal.sequence_check_owned(sequence);
    IF NOT snowflake_ids_internal.sequence_is_bound(sequence) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" is not bound', sequence),
            DETAIL = 'It gives numbers of its own.',
            HINT = 'snowflake_ids.sequence_status has the sequences that are bound.';
    END IF;
    propagation := snowflake_ids_internal.propagate_nothing();
    PERFORM snowflake_ids_internal.sequence_unbind(sequence, 0);
    PERFORM snowflake_ids_internal.propagate(propagation) WHERE propagation IS NOT NULL;
END
$$;
CREATE FUNCTION snowflake_ids_internal.propagate_nothing() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN snowflake_ids_internal.propagate('off') END
$$;
COMMENT ON FUNCTION snowflake_ids_internal.propagate_nothing IS
    'has Citus pass nothing on that is altered here, where there is Citus; gives the former setting';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.propagate_nothing FROM PUBLIC;
DO $$
DECLARE
    holder text;
BEGIN
    FOR holder IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_proc AS p, aclexplode(p.proacl) AS a
        WHERE p.oid = 'snowflake_ids_internal.sequence_bind'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_ids_internal.propagate_nothing TO %s', holder);
    END LOOP;
END
$$;
/* Functions that changed. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_drop(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM snowflake_ids_internal.series_check_unused(name, 'drop');
    EXECUTE coalesce((SELECT format('DROP TABLE IF EXISTS %s', snowflake_ids_internal.series_key_table(s.id))
        FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C" AND s.scope = 'shard'), 'SELECT');
    DELETE FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C";
END
$$;
CREATE FUNCTION snowflake_ids_internal.series_key_table(series bigint) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT 'snowflake_ids.series_keys_' || lpad(to_hex(series), 16, '0') $$;
CREATE FUNCTION snowflake_ids_internal.series_check_coordinator() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF snowflake_ids_internal.node_group() <> 0 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'this node is a worker of a Citus cluster',
            DETAIL = 'A distributed series is changed on the coordinator, which tells the others.',
            HINT = 'Connect to the coordinator, and call the function there.';
    END IF;
END
$$;
CREATE FUNCTION snowflake_ids_internal.series_pass_on(series bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    keys regclass := to_regclass(snowflake_ids_internal.series_key_table(series));
    grantee record;
BEGIN
    IF keys IS NOT NULL THEN
        FOR grantee IN
            SELECT coalesce(quote_ident(r.rolname), 'PUBLIC') AS name, bool_or(p.privileges <> 'SELECT') AS writes,
                bool_or(p.series IS NOT NULL) AS reads
            FROM (SELECT x.grantee FROM pg_class AS c, aclexplode(c.relacl) AS x WHERE c.oid = keys AND x.grantee <> c.relowner
                  UNION SELECT g.grantee FROM snowflake_ids.series_privilege AS g WHERE g.series = $1) AS g (grantee)
                LEFT JOIN pg_roles AS r ON r.oid = g.grantee
                LEFT JOIN snowflake_ids.series_privilege AS p ON p.series = $1 AND p.grantee = g.grantee
            WHERE g.grantee = 0 OR r.oid IS NOT NULL
            GROUP BY 1 ORDER BY 1
        LOOP
            EXECUTE format('REVOKE ALL ON %s FROM %s', keys, grantee.name);
            IF grantee.reads THEN
                EXECUTE format('GRANT %s ON %s TO %s', CASE WHEN grantee.writes THEN 'SELECT, INSERT, UPDATE' ELSE 'SELECT' END, keys,
                    grantee.name);
            END IF;
        END LOOP;
    END IF;
    IF to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN
        PERFORM snowflake_ids_internal.citus_run_on_workers(
            format('SELECT snowflake_ids_internal.citus_take(%L)', snowflake_ids_internal.citus_definitions()));
    END IF;
END
$$;
CREATE FUNCTION snowflake_ids_internal.series_add_shards(name text, beside regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    table_name text := snowflake_ids_internal.qualified_name(beside);
    new_id bigint := snowflake_ids_internal.random_number();
    keys text := snowflake_ids_internal.series_key_table(new_id);
    series snowflake_ids.series;
    of_key record;
BEGIN
    PERFORM snowflake_ids_internal.citus_check();
    PERFORM snowflake_ids_internal.series_check_coordinator();
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot distribute a series in a %s transaction', current_setting('transaction_isolation')),
            DETAIL = 'In an older snapshot the newest counters may be missing.',
            HINT = 'Use a transaction of isolation level read committed.';
    END IF;
    -- Nothing is attached to it, and no key of any series counts, until the transaction ends.
    IF snowflake_ids_internal.in_transaction_block() THEN
        RAISE active_sql_transaction USING
            MESSAGE = 'cannot distribute a series in a transaction block',
            DETAIL = 'Gapless series give no numbers until the transaction ends.',
            HINT = 'Call snowflake_ids.series_distribute outside of BEGIN and COMMIT, as a statement of its own.';
    END IF;
    PERFORM set_config('lock_timeout', snowflake_ids_internal.bounded_lock_timeout(), true),
        snowflake_ids_internal.series_check_unused(name, 'distribute');
    LOCK TABLE snowflake_ids.series_bigint, snowflake_ids.series_text, snowflake_ids.series_uuid IN SHARE ROW EXCLUSIVE MODE;
    SELECT s.* INTO series FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C";
    IF series.kind <> 'gapless' THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot distribute series "%s", which is %s', left(name, 128), series.kind),
            DETAIL = 'Nodes draw its numbers from one registry.',
            HINT = 'Use it on all nodes as it is.';
    ELSIF series.scope <> 'global' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('series "%s" has scope "%s"', left(name, 128), series.scope),
            DETAIL = 'A series that counts in the tables of the coordinator can be distributed.',
            HINT = 'Create another one, and set its keys with snowflake_ids.series_set.';
    ELSIF NOT series.restricted THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('series "%s" is open to every role', left(name, 128)),
            DETAIL = 'Who takes numbers of a distributed series writes to its key table, with rights of its own.',
            HINT = 'Grant USAGE to the roles that number with snowflake_ids.series_grant.';
    END IF;
    EXECUTE format('LOCK TABLE %s IN ACCESS SHARE MODE', table_name);
    IF snowflake_ids_internal.qualified_name(beside) <> table_name THEN
        RAISE serialization_failure USING MESSAGE = format('table %s was changed meanwhile', table_name), HINT = 'Try again.';
    END IF;
    EXECUTE $query$
        SELECT a.atttypid AS type, CASE WHEN a.attcollation <> 0 THEN (SELECT format(' COLLATE %I.%I', n.nspname, l.collname)
            FROM pg_collation AS l JOIN pg_namespace AS n ON n.oid = l.collnamespace WHERE l.oid = a.attcollation) END AS collation
        FROM pg_dist_partition AS p
            JOIN pg_attribute AS a ON a.attrelid = p.logicalrelid AND a.attname = column_to_column_name(p.logicalrelid, p.partkey)
        WHERE p.logicalrelid = $1 AND p.partmethod = 'h'$query$
    INTO of_key USING beside;
    IF of_key.type IS NULL THEN
        RAISE wrong_object_type USING
            MESSAGE = format('table %s is not distributed by a column', table_name),
            HINT = 'Give the distributed table that has the keys in its distribution column.';
    ELSIF series.key_type <> (CASE WHEN of_key.type IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN 'bigint'
            WHEN of_key.type IN ('text'::regtype, 'varchar'::regtype) THEN 'text'
            WHEN of_key.type = 'uuid'::regtype THEN 'uuid' ELSE '' END) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('table %s is distributed by a column of type %s', table_name, format_type(of_key.type, NULL)),
            DETAIL = format('Keys of series "%s" are of type %s.', left(name, 128), series.key_type),
            HINT = 'Create a series whose keys are of that type.';
    END IF;
    EXECUTE format('CREATE TABLE %s (key %s%s PRIMARY KEY, last_value bigint NOT NULL, period date) WITH (fillfactor = 50)',
        keys, format_type(of_key.type, NULL), of_key.collation);
    EXECUTE $query$SELECT create_distributed_table($1, 'key', colocate_with => $2)$query$ USING keys::regclass, table_name;
    EXECUTE format('INSERT INTO %s (key, last_value, period) SELECT k.key, k.last_value, k.period FROM snowflake_ids.series_%s AS k
        WHERE k.series = $1', keys, series.key_type) USING series.id;
    UPDATE snowflake_ids.series AS s SET scope = 'shard', id = new_id WHERE s.id = series.id;
    UPDATE snowflake_ids.series_privilege AS p SET series = new_id WHERE p.series = series.id;
    EXECUTE format('DELETE FROM snowflake_ids.series_%s AS k WHERE k.series = $1', series.key_type) USING series.id;
    PERFORM snowflake_ids_internal.series_pass_on(new_id);
END
$$;
CREATE FUNCTION snowflake_ids.series_distribute(series text, colocate_with regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.series_make_shards(series, colocate_with);
END
$$;
CREATE FUNCTION snowflake_ids_internal.citus_series() RETURNS jsonb
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(jsonb_agg(to_jsonb(s) || jsonb_build_object('privileges',
        (SELECT coalesce(jsonb_agg(jsonb_build_array(p.grantee::text, p.privileges) ORDER BY p.grantee::text COLLATE "C"), '[]')
         FROM snowflake_ids.series_privilege AS p WHERE p.series = s.id)) ORDER BY s.name), '[]')
    FROM snowflake_ids.series AS s WHERE s.kind <> 'gapless' OR s.scope = 'shard'
$$;
CREATE FUNCTION snowflake_ids_internal.citus_definitions() RETURNS jsonb
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object('generators', (SELECT coalesce(jsonb_agg(g), '[]') FROM snowflake_ids.generator AS g),
        'rights', snowflake_ids_internal.citus_rights(), 'series', snowflake_ids_internal.citus_series())
$$;
CREATE FUNCTION snowflake_ids_internal.citus_take(definitions jsonb) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rights jsonb := definitions -> 'rights';
    listed jsonb := definitions -> 'series';
    made text;
BEGIN
    INSERT INTO snowflake_ids.generator
    SELECT g.* FROM jsonb_populate_recordset(NULL::snowflake_ids.generator, definitions -> 'generators') AS g
    ON CONFLICT (name) DO NOTHING;

    INSERT INTO snowflake_ids.segment_restricted AS r (tag)
    SELECT DISTINCT g ->> 0 FROM jsonb_array_elements(rights) AS g ON CONFLICT DO NOTHING;
    DELETE FROM snowflake_ids.segment_privilege AS p
    WHERE p.tag IN (SELECT g ->> 0 FROM jsonb_array_elements(rights) AS g) AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(rights) AS g WHERE g ->> 0 = p.tag AND g ->> 1 = p.grantee::text);
    INSERT INTO snowflake_ids.segment_privilege AS p (tag, grantee, privileges)
    SELECT w.tag, w.grantee, w.privileges
    FROM (SELECT g ->> 0, CASE WHEN g ->> 1 = '-' THEN 0::regrole ELSE to_regrole(g ->> 1) END, g ->> 2
          FROM jsonb_array_elements(rights) AS g) AS w (tag, grantee, privileges)
    WHERE w.grantee IS NOT NULL
    ON CONFLICT (tag, grantee) DO UPDATE SET privileges = excluded.privileges WHERE p.privileges <> excluded.privileges;

    -- Of distributed series there are those of the coordinator, and no others.
    DELETE FROM snowflake_ids.series AS s
    WHERE s.scope = 'shard' AND NOT EXISTS (SELECT FROM jsonb_array_elements(listed) AS w WHERE (w ->> 'id')::bigint = s.id);
    UPDATE snowflake_ids.series AS s
    SET name = w.name, max_value = w.max_value, time_zone = w.time_zone, format = w.format, description = w.description
    FROM jsonb_populate_recordset(NULL::snowflake_ids.series, listed) AS w
    WHERE s.scope = 'shard' AND w.id = s.id AND (s.name, s.max_value, s.time_zone, s.format, s.description)
        IS DISTINCT FROM (w.name, w.max_value, w.time_zone, w.format, w.description);
    FOR made IN
        INSERT INTO snowflake_ids.series AS s
        SELECT w.* FROM jsonb_array_elements(listed) AS e,
            jsonb_populate_record(NULL::snowflake_ids.series, CASE WHEN e ->> 'scope' = 'shard' THEN e
                ELSE e || jsonb_build_object('id', snowflake_ids_internal.random_number()) END) AS w
        ON CONFLICT DO NOTHING RETURNING CASE WHEN s.kind = 'monotonic' THEN s.name END
    LOOP
        PERFORM snowflake_ids_internal.series_make_sections(made) WHERE made IS NOT NULL;
    END LOOP;
    UPDATE snowflake_ids.series AS s SET restricted = true
    FROM jsonb_array_elements(listed) AS w WHERE w ->> 'name' = s.name AND (w ->> 'restricted')::boolean AND NOT s.restricted;
    DELETE FROM snowflake_ids.series_privilege AS p
    USING snowflake_ids.series AS s, jsonb_array_elements(listed) AS w
    WHERE p.series = s.id AND w ->> 'name' = s.name AND (w ->> 'restricted')::boolean
        AND NOT EXISTS (SELECT FROM jsonb_array_elements(w -> 'privileges') AS g WHERE g ->> 0 = p.grantee::text);
    INSERT INTO snowflake_ids.series_privilege AS p (series, grantee, privileges)
    SELECT w.series, w.grantee, w.privileges
    FROM (SELECT s.id, CASE WHEN g ->> 0 = '-' THEN 0::regrole ELSE to_regrole(g ->> 0) END, g ->> 1
          FROM jsonb_array_elements(listed) AS w JOIN snowflake_ids.series AS s ON s.name = w ->> 'name',
              jsonb_array_elements(w -> 'privileges') AS g) AS w (series, grantee, privileges)
    WHERE w.grantee IS NOT NULL
    ON CONFLICT (series, grantee) DO UPDATE SET privileges = excluded.privileges WHERE p.privileges <> excluded.privileges;
    RETURN '';
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_join() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_local_group') IS NULL THEN
        RETURN;
    ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_dist_local_group AS g WHERE g.groupid <> 0) THEN
        RETURN;
    ELSIF NOT snowflake_ids_internal.citus_may_join() THEN
        RAISE EXCEPTION 'another database leases the worker id of this server';
    END IF;
    PERFORM snowflake_ids.use_registry('citus_coordinator');
    -- Tables of the cluster come next, whose defaults may name what is defined there.
    BEGIN
        PERFORM snowflake_ids_internal.citus_take(r.result::jsonb)
        FROM pg_catalog.run_command_on_coordinator('SELECT snowflake_ids_internal.citus_definitions()') AS r WHERE r.success;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'generators, series and rights of the cluster are not on this worker yet' USING
            DETAIL = SQLERRM || '.',
            HINT = 'On the coordinator: CALL snowflake_ids.use_citus().';
    END;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'this worker of a Citus cluster uses no registry yet, and gives no ids' USING
        DETAIL = SQLERRM || '.',
        HINT = 'On the coordinator: CALL snowflake_ids.use_citus().';
END
$$;

CREATE FUNCTION snowflake_ids_internal.series_make_shards(series text, beside oid) RETURNS void
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'series_make_shards_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.series_make_shards(text, oid), snowflake_ids.series_distribute(text, regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_ids_internal.series_make_shards(text, oid), snowflake_ids.series_distribute(text, regclass) TO PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.citus_defaults, snowflake_ids_internal.citus_rights, snowflake_ids_internal.citus_series,
    snowflake_ids_internal.citus_definitions, snowflake_ids_internal.citus_take, snowflake_ids_internal.series_key_table,
    snowflake_ids_internal.series_check_coordinator, snowflake_ids_internal.series_pass_on,
    snowflake_ids_internal.series_add_shards FROM PUBLIC;
COMMENT ON FUNCTION snowflake_ids.series_distribute IS
    'has a gapless series count on the shards of a distributed table, the counter of a key beside its rows; Citus alone';

/* Functions that changed. */
CREATE FUNCTION snowflake_ids_internal.citus_run(command text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    message text;
    detail  text;
    hint    text;
BEGIN
    EXECUTE command;
    RETURN '';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE EXCEPTION '%', concat_ws(' ', message || '.', nullif(detail, ''), nullif(hint, '')) USING ERRCODE = SQLSTATE;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_run_on_workers(command text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    failed text;
    failures bigint;
BEGIN
    SELECT count(*), string_agg(format('node %s (%s:%s): %s', n.nodeid, r.nodename, r.nodeport, left(coalesce(r.result, 'no answer'), 1000)), E'\n'
                                ORDER BY n.nodeid)
    INTO failures, failed
    FROM pg_catalog.run_command_on_workers(format('SELECT snowflake_ids_internal.citus_run(%L)', command)) AS r
        LEFT JOIN pg_catalog.pg_dist_node AS n USING (nodename, nodeport)
    WHERE r.success IS NOT TRUE;
    IF failures > 0 THEN
        RAISE EXCEPTION '% of the cluster''s workers failed', failures USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = failed,
            HINT = 'Mend that, and do the same again: what other nodes did stays as it is, or is done once more.';
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_use(server name, identity text, timeline bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    used  record;
    found json;
BEGIN
    SELECT string_agg(r.identity, ',') AS identity, string_agg(r.server, ',') AS server INTO used FROM snowflake_ids.registry_server AS r;
    IF used.identity <> identity COLLATE "C" THEN
        RAISE EXCEPTION 'it uses another registry, "%"', used.server USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    -- What is there now: the name may lead elsewhere than on the coordinator, or to a former primary.
    found := snowflake_ids_internal.registry_look(coalesce(used.server, server));
    IF found ->> 'identity' <> identity COLLATE "C" THEN
        RAISE EXCEPTION 'registry "%" is another one here than on the coordinator', server USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF (found ->> 'timeline')::bigint < timeline THEN
        RAISE EXCEPTION 'registry "%" is a former primary here: it is on timeline %, and timeline % was seen', server, found ->> 'timeline', timeline
            USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF used.server IS NOT NULL THEN
        UPDATE snowflake_ids.registry_server AS r SET timeline = (found ->> 'timeline')::integer
        WHERE r.identity = identity COLLATE "C" AND r.timeline < (found ->> 'timeline')::integer;
        RETURN NULL;
    END IF;
    -- Another session may be at it.
    PERFORM set_config('lock_timeout', '20s', true);
    PERFORM snowflake_ids.use_registry(server);
    RETURN server;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.attach_coordinator(relation regclass, attribute name, kind text, tag text,
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
/* Functions that changed. */
CREATE FUNCTION snowflake_ids_internal.check_manages_tags(function text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT has_function_privilege('snowflake_ids_internal.sequence_bind'::regproc, 'EXECUTE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for function %s', left(function, 32)),
            DETAIL = format('Role %s does not manage segment tags in this database.', quote_ident(current_user)),
            HINT = format('The owner of the database or a superuser allows it by SELECT snowflake_ids.administration_grant(''tags'', %L).',
                current_user);
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.attach(relation regclass, "column" name, kind text DEFAULT 'snowflake',
    tag text DEFAULT NULL, sequence text DEFAULT 'redirect', generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('attach');
    PERFORM snowflake_ids_internal.check_attach(relation, "column", kind, tag, sequence, generator);
    PERFORM snowflake_ids_internal.check_coordinator(relation);
    IF NOT snowflake_ids_internal.is_distributed(relation) THEN
        PERFORM snowflake_ids_internal.attach_here(relation, "column", kind, tag, sequence, generator);
        RETURN;
    END IF;
    -- No worker gives ids of a tag before the tag, and what the coordinator gives, are such that none comes twice.
    PERFORM snowflake_ids_internal.check_alone('attach', relation);
    PERFORM snowflake_ids_internal.attach_coordinator(relation, "column", kind, tag, sequence, generator);
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'waiting for other nodes');
    PERFORM snowflake_ids_internal.attach_workers(relation, "column", kind, tag, sequence, generator);
    PERFORM snowflake_ids_internal.progress_end('attach');
END
$$;

REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.citus_run FROM PUBLIC;
-- Who may not call them is told how to get there.
GRANT EXECUTE ON FUNCTION snowflake_ids_internal.check_manages_tags(text), snowflake_ids.attach(regclass, name, text, text, text, text),
    snowflake_ids.detach(regclass, name, text), snowflake_ids.bind_sequence(regclass, text, text, text),
    snowflake_ids.unbind_sequence(regclass) TO PUBLIC;
DO $$
DECLARE
    holder text;
BEGIN
    FOR holder IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_proc AS p, aclexplode(p.proacl) AS a
        WHERE p.oid = 'snowflake_ids_internal.sequence_bind'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_ids_internal.citus_run TO %s', holder);
    END LOOP;
END
$$;

/* Functions keep the extension by one of a schema that nobody can plant functions in, before they name anything. Comes last: it changes
   what functions say by now. */
CREATE FUNCTION snowflake_extension_keep() RETURNS void
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'extension_keep_wrapper';
COMMENT ON FUNCTION snowflake_extension_keep() IS 'keeps the extension from being dropped until the transaction ends: for its own functions';
DO $$
DECLARE
    old  text := 'PERFORM snowflake_ids_internal.extension_keep();';
    kept text := 'PERFORM pg_catalog.snowflake_extension_keep();';
    -- What stood before it in one of them.
    initial text := 'first bigint := snowflake_ids_internal.segment_bigint(''start'', start);';
    statement text;
BEGIN
    FOR statement IN
        SELECT pg_get_functiondef(p.oid)
        FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
        WHERE p.pronamespace IN ('snowflake_ids'::regnamespace, 'snowflake_ids_internal'::regnamespace) AND strpos(p.prosrc, old) > 0
    LOOP
        IF strpos(statement, initial) > 0 THEN
            statement := replace(replace(statement, initial, 'first bigint;'), old,
                old || E'\n    first := snowflake_ids_internal.segment_bigint(''start'', start);');
        END IF;
        EXECUTE replace(replace(statement, 'seen       snowflake_ids.worker_lease;', 'seen       record;'), old, kept);
    END LOOP;
    -- This one did not keep it, and superusers call it.
    EXECUTE regexp_replace(pg_get_functiondef('snowflake_ids.layout_change(text,text)'::regprocedure), E'\nBEGIN\n',
        E'\nBEGIN\n    ' || kept || E'\n');
END
$$;
DROP FUNCTION snowflake_ids_internal.extension_keep();
