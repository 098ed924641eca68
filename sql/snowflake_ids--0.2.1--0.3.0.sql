/* From 0.2.1 to 0.3.0. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* There are no dense series any more: they are gapless, above all that was reserved, which is what their counters say. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_check_row() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Dumps of version 0.2 contain the kind dense. The counters of such a series hold the highest reserved number.
    IF NEW.kind = 'dense' THEN
        NEW.kind := 'gapless';
        NEW.step := NULL;
        NEW.max_step := NULL;
    END IF;
    -- Numbers of the former kind or of former sections may still be in memory.
    IF TG_OP = 'UPDATE' AND OLD.kind <> 'dense' AND (NEW.kind, NEW.sections) IS DISTINCT FROM (OLD.kind, OLD.sections) THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot change kind or sections of series "%s"', left(OLD.name, 128)),
            DETAIL = 'The series would give some of its numbers again.',
            HINT = 'Create another series. Call snowflake_ids.series_set on it for each key, with the last number of the key in this series, or a higher number.';
    END IF;
    -- Sections of a monotonic series are tags. By its name, the series could use and later drop other roles' tags.
    IF TG_OP = 'INSERT' AND NEW.kind = 'monotonic' AND NOT has_table_privilege('snowflake_ids.segment', 'INSERT') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied to insert monotonic series "%s"', left(NEW.name, 128)),
            DETAIL = 'The sections of the series are segment tags, and the current role may not insert into snowflake_ids.segment.',
            HINT = 'Create it with snowflake_ids.series_create.';
    END IF;
    PERFORM snowflake_ids_internal.series_check(NEW.name, NEW.kind, NEW.key_type, NEW.start, NEW.max_value, NEW.reset, NEW.time_zone,
        NEW.format, NEW.description, NEW.step, NEW.max_step, NEW.sections);
    PERFORM snowflake_ids_internal.series_check_scope(NEW.kind, NEW.scope);
    IF TG_OP = 'UPDATE' AND OLD.kind = 'monotonic' AND OLD.name <> NEW.name THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot rename series "%s"', left(OLD.name, 128)),
            DETAIL = 'The sections of a monotonic series are segment tags that are named after it.',
            HINT = 'Create another series, with a start above the numbers of this one.';
    END IF;
    RETURN NEW;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.series_create(
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
    -- The type's name as this function's search_path writes it.
    type_name text := coalesce(key_type::text, '');
    registries text[];
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF kind COLLATE "C" = 'dense' THEN
        RAISE feature_not_supported USING
            MESSAGE = 'series of kind "dense" are not supported',
            DETAIL = 'Their numbers came from memory, with gaps where a transaction was rolled back or the server died.',
            HINT = 'Omit kind for a gapless series, whose calls for one key wait for each other. Create a segment tag for each key '
                'with many concurrent calls. Set kind to ''monotonic'' if numbers only have to grow.';
    ELSIF kind COLLATE "C" = 'monotonic' THEN
        step := coalesce(step, least(1000, max_step));
        max_step := coalesce(max_step, greatest(1000000, step));
        sections := coalesce(sections, 16);
    END IF;
    PERFORM snowflake_ids_internal.series_check(name, kind, type_name, start, max_value, reset, time_zone, format, description, step,
        max_step, sections);
    PERFORM snowflake_ids_internal.series_check_scope(kind, scope);
    IF scope COLLATE "C" = 'shard' THEN
        RAISE feature_not_supported USING
            MESSAGE = 'cannot create a series of scope "shard"',
            DETAIL = 'The key table of such a series is created for a distributed table.',
            HINT = 'Create the series without a scope, then call snowflake_ids.series_distribute.';
    END IF;
    -- Fails if other servers also give numbers of this series. The lock keeps the answer valid until the transaction ends.
    IF scope COLLATE "C" = 'global' THEN
        LOCK TABLE snowflake_ids.registry_server IN ROW EXCLUSIVE MODE;
        SELECT array_agg(r.server ORDER BY r.position) INTO registries FROM snowflake_ids.registry_server AS r;
        PERFORM snowflake_ids_internal.series_refuse(kind, registries[1], cardinality(registries) - 1);
    END IF;
    INSERT INTO snowflake_ids.series (name, kind, key_type, start, max_value, reset, time_zone, format, description, step, max_step,
        sections, scope)
    VALUES (name, kind, type_name, start, max_value, lower(reset COLLATE "C"), time_zone, format, description, step, max_step, sections,
        scope)
    ON CONFLICT DO NOTHING;
    PERFORM snowflake_ids_internal.series_taken(name) WHERE NOT FOUND;
    PERFORM snowflake_ids_internal.series_make_sections(name) WHERE kind COLLATE "C" = 'monotonic';
    PERFORM snowflake_ids_internal.series_set_owner(name, owner) WHERE owner IS NOT NULL;
END
$$;
/* The counter of a gapless series' key follows the numbers that rows bring, with a second trigger on columns that are attached from now on. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_check_unused(name text, change text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    users text;
BEGIN
    -- The lock also keeps other sessions from attaching the series meanwhile.
    PERFORM FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C" FOR UPDATE;
    SELECT string_agg(format('trigger %s on table %s uses the series', quote_ident(t.tgname), t.tgrelid::regclass), E'\n'
                      ORDER BY t.tgrelid::regclass::text COLLATE "C", t.tgname)
    INTO users
    FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
    WHERE t.tgfoid = 'snowflake_ids_internal.series_fill()'::regprocedure AND t.tgparentid = 0
        AND NOT starts_with(t.tgname, '~snowflake_ids_raise_')
        -- Triggers that a superuser created may have other arguments.
        AND CASE WHEN t.tgnargs = 3
            THEN substring(t.tgargs FROM 1 FOR position(decode('00', 'hex') IN t.tgargs) - 1) = convert_to(name, getdatabaseencoding())
            ELSE false END;
    IF users IS NOT NULL THEN
        RAISE dependent_objects_still_exist USING
            MESSAGE = format('cannot %s series "%s" because other objects depend on it', left(change, 16), left(name, 128)),
            DETAIL = left(users, 4000),
            HINT = 'Detach the columns first with snowflake_ids.series_detach.';
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_add_trigger(series text, relation regclass, column_name text, key_column text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    -- Long names may differ only at their end, so a hash replaces a long name.
    trigger_name name := 'snowflake_ids_fill_' || CASE WHEN octet_length(column_name) <= 44 THEN column_name ELSE md5(column_name) END;
BEGIN
    IF snowflake_ids_internal.is_distributed(relation) THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot attach distributed table %s to a series', relation),
            DETAIL = 'Citus does not support triggers on distributed tables.',
            HINT = format('First distribute the series with snowflake_ids.series_distribute. Then call series_nextval in the INSERT, '
                'or set a default that reads the key from a setting: series_nextval(%L, current_setting(...)).', left(series, 128));
    END IF;
    -- Creating a trigger evaluates the expressions of partition keys with the rights of this function. The locks keep other
    -- sessions from adding partitions meanwhile.
    PERFORM snowflake_ids_internal.lock_relation(t.relid) FROM pg_partition_tree(relation) AS t;
    IF EXISTS (SELECT FROM pg_partition_tree(relation) AS t JOIN pg_partitioned_table AS p ON p.partrelid = t.relid
            WHERE p.partexprs IS NOT NULL) THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot attach table %s, which is partitioned by an expression', relation),
            DETAIL = 'The partition key may call functions of the table''s owner.',
            HINT = 'Attach its partitions, or use snowflake_ids.series_nextval in the INSERT.';
    END IF;
    EXECUTE format('CREATE TRIGGER %I BEFORE INSERT ON %s FOR EACH ROW WHEN (NEW.%I IS NULL)
        EXECUTE FUNCTION snowflake_ids_internal.series_fill(%L, %L, %L)',
        trigger_name, relation, column_name, series, column_name, key_column);
    -- Triggers run in the order of their names. This trigger must run last, because other triggers may change the row's key or
    -- skip the row. Then the counter of the original key must not move.
    IF EXISTS (SELECT FROM snowflake_ids.series AS s JOIN pg_attribute AS a ON a.attrelid = relation AND a.attname = column_name COLLATE "C"
            WHERE s.name = series COLLATE "C" AND s.kind = 'gapless' AND s.reset IS NULL
                AND a.atttypid IN ('int8'::regtype, 'int4'::regtype, 'int2'::regtype)) THEN
        EXECUTE format('CREATE TRIGGER %I BEFORE INSERT ON %s FOR EACH ROW WHEN (NEW.%I IS NOT NULL)
            EXECUTE FUNCTION snowflake_ids_internal.series_fill(%L, %L, %L)',
            '~snowflake_ids_raise_' || CASE WHEN octet_length(column_name) <= 42 THEN column_name ELSE md5(column_name) END,
            relation, column_name, series, column_name, key_column);
    END IF;
    -- Another table may have the table's name by now.
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
            DETAIL = 'No trigger of snowflake_ids fills the column.',
            HINT = 'If the column was renamed, give the name that it had when it was attached.';
    END IF;
    WHILE trigger_name IS NOT NULL LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', trigger_name, relation);
        trigger_name := snowflake_ids_internal.series_trigger_of(relation, "column");
    END LOOP;
END
$$;
DROP TRIGGER series_recounted ON snowflake_ids.series;
DO $$
DECLARE
    former text;
BEGIN
    SELECT string_agg(format('%L', left(s.name, 128)), ', ' ORDER BY s.name) INTO former FROM snowflake_ids.series AS s WHERE s.kind = 'dense';
    IF former IS NULL THEN
        RETURN;
    END IF;
    UPDATE snowflake_ids.series SET kind = 'gapless', step = NULL, max_step = NULL WHERE kind = 'dense';
    RAISE NOTICE 'dense series are gapless from now on: %', left(former, 1000) USING
        DETAIL = 'Their numbers go on above all that were reserved. Calls of one key wait for each other until the transaction ends, and two that '
            'take keys in opposite order can deadlock (40P01).',
        HINT = 'Create a segment tag for each key that many call at once.';
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        RAISE NOTICE 'former dense series give no numbers in this database, which draws from a registry' USING
            DETAIL = 'Each node would count for itself.',
            HINT = 'Where each key is on one node, UPDATE snowflake_ids.series SET scope = ''node'' for them, and set their keys above the numbers that '
                'all nodes gave; else number at the registry.';
    END IF;
END
$$;

CREATE OR REPLACE VIEW snowflake_ids.metric_series AS
SELECT current_database()::text AS database, k.kind, count(s.id)::double precision AS defined
FROM (VALUES ('gapless'), ('monotonic')) AS k (kind) LEFT JOIN snowflake_ids.series AS s ON s.kind = k.kind
GROUP BY k.kind;
COMMENT ON COLUMN snowflake_ids.metric_series.kind IS 'gapless or monotonic';
COMMENT ON COLUMN snowflake_ids.series_status.kind IS 'gapless or monotonic';
COMMENT ON COLUMN snowflake_ids.series_key.last_value IS
    'the last number of the key';

/* What is told of the server as a whole. */
CREATE FUNCTION snowflake_ids_internal."launcher_runs"() RETURNS bool
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'launcher_runs_wrapper';
CREATE FUNCTION snowflake_ids_internal."presets"() RETURNS SETOF TEXT
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'presets_wrapper';
CREATE FUNCTION snowflake_ids_internal."layout_parts"(
	"generator" text
) RETURNS TABLE (
	"layout" TEXT,
	"largest" bigint,
	"highest" bigint,
	"now" bigint,
	"epoch" bigint,
	"unit" bigint,
	"ticks" INT,
	"datacenter" INT,
	"worker" INT,
	"rollback" INT,
	"sequence" INT,
	"ticks_shift" INT,
	"datacenter_shift" INT,
	"worker_shift" INT,
	"rollback_shift" INT,
	"sequence_shift" INT
)
VOLATILE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'layout_parts_wrapper';
CREATE FUNCTION snowflake_ids_internal."page_of"(
	"report" text
) RETURNS text
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'page_of_wrapper';
-- The worst first; of those that stand alike, the one that waited most.
CREATE FUNCTION snowflake_ids_internal.tags_by_standing() RETURNS TABLE (number bigint, standing text, tag jsonb)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH tags AS (
        SELECT t.*, t.current_first IS NOT NULL AS is_in_memory, t.used >= 1 AND t.next_first IS NULL AS is_dry
        FROM snowflake_ids.segment_status AS t
    ), stands AS (
        SELECT CASE WHEN t.trouble IS NOT NULL AND (NOT t.is_in_memory OR t.is_dry) THEN 1
            WHEN t.trouble IS NOT NULL THEN 2
            WHEN t.exhausted_at <= now() + interval '30 days' THEN 3
            WHEN t.is_dry THEN 4
            WHEN t.exhausted_at <= now() + interval '1 year' THEN 5
            WHEN t.is_in_memory THEN 6
            ELSE 7 END AS place, t.*
        FROM tags AS t
    )
    SELECT row_number() OVER (ORDER BY s.place, s.waits DESC, s.ids_issued DESC, s.database, s.tag),
        (ARRAY['without ids', 'refills fail', 'ends soon', 'waits for a refill', 'ends this year', 'fine', 'idle'])[s.place],
        jsonb_strip_nulls(to_jsonb(s)) - '{place,is_in_memory,is_dry}'::text[]
    FROM stands AS s
$$;

CREATE FUNCTION snowflake_ids_internal."failed_calls"() RETURNS bigint
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'failed_calls_wrapper';

CREATE FUNCTION snowflake_ids_internal.attention()
RETURNS TABLE (severity text, subject text, problem text, action text, since timestamptz)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    s record;
    places record;
    drift_limit interval := current_setting('snowflake_ids.max_drift', true)::interval;
    lease_duration interval := current_setting('snowflake_ids.lease_duration', true)::interval;
    lease_left interval;
    -- True if no ids are issued because the server has no lease, and the registry that gives leases does not answer.
    lacks_lease boolean;
BEGIN
    IF NOT snowflake_ids_internal.is_preloaded() THEN
        RETURN QUERY SELECT 'alarm', 'server', 'snowflake_ids was not loaded when the server started',
            'Add snowflake_ids to shared_preload_libraries, and restart the server: ids are only decoded until then '
            '(docs/errors.md, "Snowflake ids").', NULL::timestamptz;
        RETURN;
    END IF;
    SELECT * INTO s FROM snowflake_ids.status;
    SELECT p.places, p.places_in_use INTO places FROM snowflake_ids_internal.segment_totals() AS p;
    lease_left := s.lease_expires_at - now();
    lacks_lease := (s.state LIKE '%worker id%' OR s.state LIKE '%lease%') AND s.state NOT LIKE '%data directory%' AND EXISTS (SELECT FROM snowflake_ids.registry_status AS r
        WHERE r.position = 0 AND r.state = 'failing');
    RETURN QUERY
    WITH tags AS (
        SELECT * FROM snowflake_ids_internal.tags_by_standing()
    ), ends (subject, years_left) AS (
        SELECT 'server', s.years_left
        UNION ALL SELECT format('generator %s', g.name), g.years_left FROM snowflake_ids.generator_status AS g
    ), failing AS (
        SELECT r.server, r.error, r.last_answer FROM snowflake_ids.registry_status AS r WHERE r.state = 'failing'
    -- The consequences of a registry that does not answer are reported in the registry's row.
    ), follows AS (
        SELECT string_agg(c.what, '; ') AS what FROM (
            SELECT format('tag %s is without ids', min(t.tag ->> 'tag')) || CASE WHEN count(*) > 1 THEN format(' (%s more tags)', count(*) - 1) ELSE '' END
            FROM tags AS t WHERE t.standing = 'without ids' AND t.tag ->> 'trouble' LIKE 'registry:%' HAVING count(*) > 0
            UNION ALL SELECT format('this server issues no snowflake ids: %s', s.state) WHERE lacks_lease
        ) AS c (what)
    ), found (severity, subject, problem, action, since) AS (
        SELECT 'note', 'server', 'this server is a standby, which issues no ids',
            'Connect to the primary for ids; after a promotion this server issues them (docs/operations.md, "Standbys and promotion").',
            NULL::timestamptz
        WHERE s.state = 'in recovery'
        UNION ALL
        SELECT 'alarm', 'server', format('this server issues no snowflake ids: %s', s.state),
            CASE WHEN s.state LIKE '%state%' OR s.state LIKE '%data directory%' THEN 'Do not delete the state file; find the cause, then call the function that '
                    'the document names (docs/errors.md, "The state file").'
                WHEN s.state LIKE '%lease%' OR s.state LIKE '%worker id%'
                THEN 'See the server''s log for why the lease was not renewed (docs/operations.md, "Worker ids").'
                WHEN s.state LIKE '%clock%' THEN 'Ids go on once the clock has caught up; there are ways out where it was ahead by '
                    'mistake (docs/operations.md, "Clocks").'
                ELSE 'Call snowflake_nextval(): the HINT of its error says what to do (docs/errors.md, "Snowflake ids").' END, NULL
        WHERE s.state NOT IN ('ready', 'idle', 'in recovery')
            AND NOT lacks_lease
        UNION ALL
        SELECT 'alarm', 'clock', format('the clock is %s ahead, and is not followed', s.clock_ahead),
            'Set the clock back; if it is right, SELECT snowflake_ids.clock_accept() (docs/operations.md, "Clocks").', NULL
        WHERE s.clock_ahead > interval '0'
        UNION ALL
        -- The rows above already report a server that issues no ids.
        SELECT CASE WHEN s.drift >= drift_limit THEN 'alarm' ELSE 'warning' END, 'clock',
            format('ids are %s ahead of the clock; from %s (max_drift) on, calls wait or fail', s.drift, drift_limit),
            'Set the clock right if it was stepped back; else take ids more slowly (docs/operations.md, "Clocks").', NULL
        WHERE s.drift > drift_limit / 2 AND s.state IN ('ready', 'idle')
        UNION ALL
        SELECT 'warning', 'clock', format('the clock was stepped in the last hour, %s times', sum(h.steps_back + h.steps_forward)),
            'Find what sets the clock, and let one service slew it (docs/operations.md, "Clocks").', min(h.sampled_at)
        FROM snowflake_ids.status_history AS h WHERE h.steps_back + h.steps_forward > 0 HAVING count(*) > 0
        UNION ALL
        SELECT CASE WHEN lease_left < lease_duration / 10 THEN 'alarm' ELSE 'warning' END, 'worker id',
            format('the lease of the worker id ends in %s, and is not renewed',
                date_trunc('second', greatest(lease_left, interval '0'))),
            'Make sure that the registry can be reached; see the server''s log for the reason (docs/operations.md, "Worker ids").', NULL
        WHERE lease_left < lease_duration / 2
        UNION ALL
        SELECT 'alarm', format('registry %s', f.server),
            concat_ws('; ', 'the registry does not answer' || coalesce(': ' || f.error, ''), w.what),
            'Restart or reconnect the registry: ids are issued until the buffers and the lease are used up (docs/registry.md, "What happens when").',
            f.last_answer
        FROM failing AS f, follows AS w
        UNION ALL
        SELECT CASE WHEN t.standing IN ('without ids', 'ends soon') THEN 'alarm' ELSE 'warning' END,
            format('tag %s', t.tag ->> 'tag'),
            CASE t.standing WHEN 'without ids' THEN 'the tag is without ids, and refills fail: ' || (t.tag ->> 'trouble')
                WHEN 'refills fail' THEN 'refills fail: ' || (t.tag ->> 'trouble')
                ELSE format('the tag is used up at %s, at the pace since its first use',
                    date_trunc('second', (t.tag ->> 'exhausted_at')::timestamptz)) END
                || CASE WHEN c.more > 0 THEN format(' (%s more tags)', c.more) ELSE '' END,
            CASE WHEN t.standing LIKE 'ends%' THEN 'Raise max_value, or begin a new tag (docs/operations.md, "Troubles").'
                ELSE 'Do what the column trouble of segment_status asks for (docs/operations.md, "Troubles").' END, NULL
        FROM (SELECT t.standing, min(t.number) AS first, count(*) - 1 AS more FROM tags AS t
            WHERE t.standing IN ('without ids', 'refills fail', 'ends soon', 'ends this year')
                AND NOT (t.tag ->> 'trouble' LIKE 'registry:%' AND EXISTS (SELECT FROM failing)) IS TRUE
            GROUP BY t.standing) AS c
            JOIN tags AS t ON t.number = c.first
        UNION ALL
        SELECT 'warning', 'launcher', 'the launcher, which starts the workers that refill tags, does not run',
            'Free a slot of max_worker_processes; the launcher restarts within a second (docs/operations.md, "Troubles").', NULL
        WHERE s.state <> 'in recovery' AND NOT snowflake_ids_internal.launcher_runs()
        UNION ALL
        SELECT 'warning', 'readers', format('process %s holds snowflake_safe_id() back by an open transaction', a.pid),
            'Commit it, or end it with pg_terminate_backend (docs/outbox.md, "Readers that stand still").', a.xact_start
        FROM snowflake_ids_internal.safe_id_holders() AS h (pid) JOIN pg_stat_activity AS a USING (pid)
        WHERE a.xact_start < now() - interval '1 minute'
        UNION ALL
        SELECT 'warning', 'readers', format('prepared transaction "%s" may hold snowflake_safe_id() back', p.gid),
            'COMMIT PREPARED or ROLLBACK PREPARED (docs/outbox.md, "Readers that stand still").', p.prepared
        FROM snowflake_ids_internal.safe_id_holders() AS h (pid) JOIN pg_prepared_xacts AS p ON h.pid = 0
        WHERE p.prepared < now() - interval '1 minute'
        UNION ALL
        SELECT 'warning', 'tags', format('%s of %s slots for tags are in use', places.places_in_use, places.places),
            'Raise snowflake_ids.max_tags, and restart the server, where metric_server counts many misses '
            '(docs/operations.md, "Places for tags").', NULL
        WHERE places.places_in_use * 10 >= places.places * 9
        UNION ALL
        SELECT CASE WHEN e.years_left < 1 THEN 'alarm' ELSE 'warning' END, e.subject,
            format('the layout ends in %s years', e.years_left),
            'Change the layout; snowflake_ids.layout_check says from when new ids are above the old ones (docs/layouts.md, "Changing it").', NULL
        FROM ends AS e WHERE e.years_left < 5
        UNION ALL
        SELECT 'warning', format('generator %s', g.name), format('the generator does not fit this server: %s', g.state),
            'Give the generator a layout with a wider worker, or the server another worker id (docs/errors.md, "Named generators").',
            NULL
        FROM snowflake_ids.generator_status AS g WHERE NOT g.fits
    )
    SELECT f.severity, f.subject, f.problem, f.action, f.since FROM found AS f
    ORDER BY array_position(ARRAY['alarm', 'warning', 'note'], f.severity), f.subject;
END
$$;

CREATE VIEW snowflake_ids.attention AS
SELECT a.severity, a.subject, a.problem, a.action, a.since FROM snowflake_ids_internal.attention() AS a;
COMMENT ON VIEW snowflake_ids.attention IS 'problems that need attention, the worst first';
GRANT SELECT ON snowflake_ids.attention TO PUBLIC;

CREATE FUNCTION snowflake_ids.report() RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET timezone = 'UTC' SET datestyle = 'ISO' SET intervalstyle = 'postgres' AS $$
DECLARE
    s record;
    told jsonb;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    told := jsonb_build_object('at', clock_timestamp(),
        'trouble', (SELECT coalesce(jsonb_agg(a), '[]') FROM snowflake_ids.attention AS a),
        'identity', jsonb_build_object('cluster_name', current_setting('cluster_name'), 'database', current_database(),
            'address', host(inet_server_addr()), 'port', current_setting('port')::integer,
            'role', current_user, 'postgres', current_setting('server_version'),
            'extension', (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'snowflake_ids'),
            'system_identifier', snowflake_ids_internal.system_identifier()::text, 'timeline', snowflake_ids_internal.timeline(),
            'is_standby', pg_is_in_recovery()));
    IF NOT snowflake_ids_internal.is_preloaded() THEN
        RETURN told;
    END IF;
    SELECT * INTO s FROM snowflake_ids.status;
    RETURN told || jsonb_build_object(
        'identity', told -> 'identity' || jsonb_build_object('state', s.state, 'worker_id', s.worker_id, 'datacenter_id', s.datacenter_id,
            'rollback', s.rollback, 'scope', s.scope, 'layout', s.layout, 'years_left', s.years_left, 'last_id', s.last_id,
            'last_timestamp', s.last_timestamp, 'ids_issued', s.ids_issued, 'full_ticks', s.full_ticks, 'switches', s.switches,
            'failed_calls', snowflake_ids_internal.failed_calls(),
            'high_water_mark', s.high_water_mark, 'reservations', s.reservations, 'reserved_by_callers', s.reserved_by_callers),
        'leases', CASE WHEN s.lease_expires_at IS NULL THEN '[]' ELSE jsonb_build_array(jsonb_build_object('worker_id', s.worker_id,
            'datacenter_id', s.datacenter_id, 'leased_from', s.leased_from, 'expires_at', s.lease_expires_at)) END,
        'clock', jsonb_build_object('drift', s.drift, 'steps_back', s.steps_back, 'largest_step_back', s.largest_step_back,
            'steps_forward', s.steps_forward, 'clock_ahead', s.clock_ahead, 'max_drift', current_setting('snowflake_ids.max_drift')),
        'history', (SELECT coalesce(jsonb_agg(h ORDER BY h.sampled_at), '[]') FROM snowflake_ids.status_history AS h),
        'sample_interval', extract(epoch FROM current_setting('snowflake_ids.sample_interval')::interval),
        -- The first 50 tags are reported in full, the other tags only by name.
        'tags', (WITH tags AS (SELECT * FROM snowflake_ids_internal.tags_by_standing())
            SELECT jsonb_build_object('total', coalesce(sum(c.tags), 0),
                'standings', coalesce(jsonb_object_agg(c.standing, c.tags), '{}'),
                'places', (SELECT jsonb_build_object('taken', p.places_in_use, 'all', p.places)
                    FROM snowflake_ids_internal.segment_totals() AS p),
                'rows', (SELECT coalesce(jsonb_agg(CASE WHEN t.number <= 50 THEN t.tag
                        ELSE jsonb_build_object('database', t.tag -> 'database', 'tag', t.tag -> 'tag', 'used', t.tag -> 'used') END
                    || jsonb_build_object('standing', t.standing) ORDER BY t.number), '[]') FROM tags AS t WHERE t.number <= 1000))
            FROM (SELECT t.standing, count(*) AS tags FROM tags AS t GROUP BY t.standing) AS c),
        'generators', (SELECT coalesce(jsonb_agg(g ORDER BY g.name), '[]') FROM snowflake_ids.generator_status AS g),
        -- Counting a series' keys reads up to 10,000 rows, so the report contains only 20 series.
        'series', (SELECT coalesce(jsonb_agg(e ORDER BY e.name), '[]') FROM snowflake_ids.series_status AS e
            WHERE e.name = ANY (ARRAY(SELECT f.name FROM snowflake_ids.series_status AS f ORDER BY f.name LIMIT 20))),
        'registries', (SELECT coalesce(jsonb_agg(r ORDER BY r.position), '[]') FROM snowflake_ids.registry_status AS r),
        'sequences', (SELECT coalesce(jsonb_agg(b), '[]')
            FROM (SELECT * FROM snowflake_ids.sequence_status AS b ORDER BY b.sequence LIMIT 50) AS b));
END
$$;
COMMENT ON FUNCTION snowflake_ids.report IS 'all views of this server and this database that the caller may see, as one document';

CREATE OR REPLACE FUNCTION snowflake_ids.status_page() RETURNS snowflake_ids."text/html"
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    told jsonb;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    told := snowflake_ids.report();
    RETURN snowflake_ids_internal.page_of((told || jsonb_build_object('layouts',
        (SELECT jsonb_agg(to_jsonb(p) || jsonb_build_object('of', l.name, 'in_use', l.in_use))
            FROM (SELECT 'this server', NULL, true UNION ALL
                SELECT format('generator %s', g ->> 'name'), g ->> 'layout', true
                FROM jsonb_array_elements(told -> 'generators') AS g UNION ALL
                SELECT s, s, false FROM snowflake_ids_internal.presets() AS s) AS l (name, layout, in_use),
                snowflake_ids_internal.layout_parts(l.layout) AS p)))::text);
END
$$;
COMMENT ON FUNCTION snowflake_ids.status_page IS 'a page of HTML about this server, with the views that the caller may see';
REVOKE EXECUTE ON FUNCTION
    snowflake_ids.report(),
    snowflake_ids_internal.attention(),
    snowflake_ids_internal.failed_calls(),
    snowflake_ids_internal.launcher_runs(),
    snowflake_ids_internal.layout_parts(text),
    snowflake_ids_internal.page_of(text),
    snowflake_ids_internal.presets(),
    snowflake_ids_internal.tags_by_standing()
FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    snowflake_ids.report(),
    snowflake_ids_internal.attention(),
    snowflake_ids_internal.failed_calls(),
    snowflake_ids_internal.launcher_runs(),
    snowflake_ids_internal.layout_parts(text),
    snowflake_ids_internal.page_of(text),
    snowflake_ids_internal.presets(),
    snowflake_ids_internal.tags_by_standing()
TO PUBLIC;

/* Audits are written in SQL. */
CREATE FUNCTION snowflake_ids_internal."audit_tag"(
	"tag" text
) RETURNS TABLE (
	"increment" bigint,
	"remainder" bigint,
	"highest" bigint
)
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'audit_tag_wrapper';
CREATE FUNCTION snowflake_ids_internal."lock_to_read"(
	"relation" oid
) RETURNS void
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'lock_to_read_wrapper';
CREATE FUNCTION snowflake_ids_internal."read_as_owner"(
	"relation" oid,
	"query" text
) RETURNS text
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'read_as_owner_wrapper';
CREATE FUNCTION snowflake_ids_internal.audit_check(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind "char";
    type oid;
BEGIN
    SELECT c.relkind, a.atttypid INTO kind, type FROM pg_class c
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = attribute COLLATE "C" AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.oid = relation;
    IF relation IS NULL OR attribute IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'table and column must not be null';
    ELSIF kind IS NULL THEN
        RAISE undefined_table USING MESSAGE = format('relation with OID %s does not exist', relation::oid);
    ELSIF kind NOT IN ('r', 'p', 'f') THEN
        RAISE wrong_object_type USING
            MESSAGE = format('"%s" is not a table', relation),
            DETAIL = 'Only ordinary, partitioned and foreign tables can be audited.',
            HINT = 'Name the table that has the rows.';
    ELSIF type IS NULL THEN
        RAISE undefined_column USING
            MESSAGE = format('column "%s" of relation "%s" does not exist', attribute, relation);
    ELSIF NOT has_column_privilege(relation, attribute, 'SELECT') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for table %s', relation),
            DETAIL = format('Reading column "%s" requires the SELECT privilege.', attribute),
            HINT = 'Ask the owner of the table to grant SELECT on it.';
    ELSIF snowflake_ids_internal.base_type(type) NOT IN ('bigint'::regtype, 'integer'::regtype, 'smallint'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column "%s" of relation "%s" is of type %s', attribute, relation, format_type(type, NULL)),
            DETAIL = 'Ids are bigint, integer or smallint.',
            HINT = 'Name a column of type bigint, integer or smallint.';
    END IF;
END
$$;

-- A view is read with its owner's user mapping, whoever reads it.
CREATE FUNCTION snowflake_ids_internal.audit_connect(number integer, connection text, relation regclass, attribute name) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    server pg_foreign_server;
    source text := format('snowflake_ids_audit_%s', number);
BEGIN
    SELECT * INTO server FROM pg_foreign_server s WHERE s.srvname = connection COLLATE "C";
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('foreign server "%s" does not exist', coalesce(left(connection, 128), 'null')),
            HINT = 'Create it with CREATE SERVER and CREATE USER MAPPING, after CREATE EXTENSION postgres_fdw.';
    END IF;
    -- The owner of a foreign server chooses its host, and can create a user mapping for a superuser.
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user)
        AND NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.oid = server.srvowner) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('foreign server "%s" must belong to a superuser', connection),
            DETAIL = 'Its owner decides where a superuser would connect, and as which role.',
            HINT = 'Change its owner with ALTER SERVER ... OWNER TO, or call audit as a role that is not a superuser.';
    END IF;
    EXECUTE (SELECT format('CREATE FOREIGN TABLE pg_temp.%I (id bigint OPTIONS (column_name %L)) SERVER %I '
            'OPTIONS (schema_name %L, table_name %L, fetch_size ''10000'')',
            source || '_table', attribute, connection, n.nspname, c.relname)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation);
    EXECUTE format('CREATE TEMPORARY VIEW %I AS SELECT id FROM pg_temp.%I', source, source || '_table');
    EXECUTE format('GRANT SELECT ON pg_temp.%I TO PUBLIC', source);
    RETURN format('SELECT id, %s::bigint << 32 FROM pg_temp.%I', number, source);
END
$$;

CREATE FUNCTION snowflake_ids_internal.audit_time(micros bigint) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT regexp_replace(to_char(timestamp 'epoch' + $1 * interval '1 microsecond', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '[.]?0*$', 'Z')
$$;

CREATE OR REPLACE FUNCTION snowflake_ids.audit("table" regclass, "column" name, generator text DEFAULT NULL,
    connections text[] DEFAULT NULL, tag text DEFAULT NULL, max_findings integer DEFAULT 10000)
RETURNS TABLE (finding text, is_fault boolean, id bigint, count bigint, datacenter_id integer, worker_id integer,
    day date, detail text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 100000 ROWS 100
SET search_path = pg_catalog, pg_temp SET row_security = off SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
#variable_conflict use_column
DECLARE
    named text[];
    layout record;
    numbers record;
    sources text;
    findings text;
    answer jsonb;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF max_findings IS NULL OR max_findings NOT BETWEEN 1 AND 100000 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'max_findings is out of range', DETAIL = 'It must be 1 to 100000.';
    ELSIF cardinality(connections) > 64 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'connections has too many elements',
            DETAIL = format('%s connections are given; the limit is 64.', cardinality(connections));
    ELSIF generator IS NOT NULL AND tag IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'cannot specify both generator and tag', DETAIL = 'The ids come from a generator or from a segment tag, not from both.';
    END IF;
    -- The table may have changed before it was locked.
    PERFORM snowflake_ids_internal.audit_check("table", "column");
    PERFORM snowflake_ids_internal.lock_to_read("table");
    PERFORM snowflake_ids_internal.audit_check("table", "column");
    PERFORM snowflake_ids_internal.progress_enter('audit', "table", 'reading ids');
    IF generator IS NULL AND tag IS NULL THEN
        SELECT regexp_match(e.expression COLLATE "C", '^(segment|snowflake)_(?:nextval|id)\(''((?:[^'']|'''')*)''(?:::text)?\)$') INTO named
        FROM (SELECT pg_get_expr(d.adbin, d.adrelid)
            FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
            WHERE d.adrelid = "table" AND a.attname = "column" COLLATE "C") AS e (expression)
        WHERE octet_length(e.expression) <= 4096;
        generator := CASE WHEN named[1] = 'snowflake' THEN replace(named[2], '''''', '''') END;
        tag := CASE WHEN named[1] = 'segment' THEN replace(named[2], '''''', '''') END;
    END IF;
    sources := format('SELECT x.%I::bigint, %s::bigint FROM %s AS x', "column",
            CASE WHEN has_table_privilege("table", 'SELECT') THEN 'x.tableoid' ELSE '0' END,
            snowflake_ids_internal.qualified_name("table"))
        || coalesce((SELECT string_agg(' UNION ALL '
                || snowflake_ids_internal.audit_connect(o.number::integer, o.connection, "table", "column"), '')
            FROM unnest(connections) WITH ORDINALITY AS o (connection, number)), '');
    SELECT * INTO layout FROM snowflake_ids_internal.layout_parts(generator);
    SELECT * INTO numbers FROM snowflake_ids_internal.audit_tag(tag);
    IF tag IS NULL THEN
        findings := format($sql$
            parts (id, day, datacenter, worker) AS NOT MATERIALIZED (
                SELECT i.id, (%1$s + (i.id >> %3$s) * %2$s) / 86400000000,
                    i.id >> %4$s & (1::bigint << %5$s) - 1, i.id >> %6$s & (1::bigint << %7$s) - 1
                FROM ids AS i WHERE i.id BETWEEN 0 AND %8$s
            ), counts AS (
                SELECT p.day, p.datacenter, p.worker, count(*) AS rows, min(p.id) AS first, max(p.id) AS last
                FROM parts AS p GROUP BY GROUPING SETS ((p.day), (p.datacenter, p.worker))
            ), found AS (
                SELECT i.id, count(*) AS rows, i.id NOT BETWEEN 0 AND %8$s AS is_unfit, i.id BETWEEN %9$s + 1 AND %8$s AS is_future
                FROM ids AS i WHERE i.id IS NOT NULL GROUP BY i.id HAVING count(*) > 1 OR i.id NOT BETWEEN 0 AND %9$s
            ), more AS (
                SELECT 1 AS part, 'day' AS finding, NULL::bigint AS id, c.rows, c.day, c.datacenter, c.worker,
                    NULL::bigint AS first, NULL::bigint AS last
                FROM counts AS c WHERE c.day IS NOT NULL
                UNION ALL
                SELECT 2, 'worker', NULL, c.rows, NULL, c.datacenter, c.worker,
                    %1$s + (c.first >> %3$s) * %2$s, %1$s + (c.last >> %3$s) * %2$s
                FROM counts AS c WHERE c.worker IS NOT NULL
            )$sql$, layout.epoch, layout.unit, layout.ticks_shift, layout.datacenter_shift, layout.datacenter,
            layout.worker_shift, layout.worker, layout.largest, layout.highest);
    ELSE
        findings := format($sql$
            found AS (
                SELECT i.id, count(*) AS rows, i.id < 0 OR i.id %% %1$s <> %2$s AS is_unfit,
                    i.id > %3$s AND i.id %% %1$s = %2$s AS is_future
                FROM ids AS i WHERE i.id IS NOT NULL GROUP BY i.id
                HAVING count(*) > 1 OR i.id NOT BETWEEN 0 AND %3$s OR i.id %% %1$s <> %2$s
            ), more AS (
                SELECT 0 AS part, 'gap' AS finding, n.before + %1$s AS id, (n.id - n.before) / %1$s - 1 AS rows, NULL::bigint AS day,
                    NULL::bigint AS datacenter, NULL::bigint AS worker, n.before + %1$s AS first, n.id - %1$s AS last
                FROM (SELECT i.id, lag(i.id) OVER (ORDER BY i.id) AS before FROM ids AS i
                    WHERE i.id BETWEEN 0 AND %3$s AND i.id %% %1$s = %2$s) AS n
                WHERE n.id - n.before > %1$s
            )$sql$, numbers.increment, numbers.remainder, coalesce(numbers.highest, 9223372036854775807));
    END IF;
    answer := snowflake_ids_internal.read_as_owner("table", format($sql$
        WITH ids (id, place) AS NOT MATERIALIZED (%1$s), %2$s, total AS (
            SELECT count(*) AS rows, count(i.id) AS ids FROM ids AS i
        ), findings AS (
            SELECT 0 AS part, 'duplicate' AS finding, f.id, f.rows, NULL::bigint AS day, NULL::bigint AS datacenter,
                NULL::bigint AS worker, NULL::bigint AS first, NULL::bigint AS last
            FROM found AS f WHERE f.rows > 1
            UNION ALL
            SELECT 0, CASE WHEN f.is_unfit THEN 'unfit' ELSE 'future' END, f.id, f.rows, NULL, NULL, NULL, NULL, NULL
            FROM found AS f WHERE f.is_unfit OR f.is_future
            UNION ALL
            SELECT * FROM more
        ), numbered AS (
            SELECT a.*, count(*) OVER (PARTITION BY a.finding) AS of_all,
                row_number() OVER (PARTITION BY a.finding ORDER BY a.id, a.day, a.datacenter, a.worker) AS number
            FROM findings AS a
        ), listed AS (
            SELECT * FROM numbered AS n WHERE n.number <= %3$s
        ), places AS (
            SELECT p.id, jsonb_agg(jsonb_build_array(p.place, p.rows) ORDER BY p.place) AS places
            FROM (SELECT i.id, i.place, count(*) AS rows FROM ids AS i
                WHERE i.id IN (SELECT l.id FROM listed AS l WHERE l.part = 0 AND l.finding <> 'gap') GROUP BY i.id, i.place) AS p
            GROUP BY p.id
        )
        SELECT jsonb_agg(to_jsonb(f) ORDER BY f.part, f.id, f.finding, f.day, f.datacenter, f.worker)::text FROM (
            SELECT l.part, l.finding, l.id, l.rows, l.day, l.datacenter, l.worker, l.first, l.last, p.places
            FROM listed AS l LEFT JOIN places AS p ON p.id = l.id AND l.finding <> 'gap'
            UNION ALL
            SELECT 3, 'null', NULL, t.rows - t.ids, NULL, NULL, NULL, NULL, NULL, NULL FROM total AS t WHERE t.rows > t.ids
            UNION ALL
            SELECT 4, 'total', NULL, t.rows, NULL, NULL, NULL, NULL, NULL, NULL FROM total AS t
            UNION ALL
            SELECT 5, 'unlisted ' || n.finding, NULL, n.of_all - %3$s, NULL, NULL, NULL, NULL, NULL, NULL
            FROM numbered AS n WHERE n.number = %3$s AND n.of_all > %3$s
        ) AS f$sql$, sources, findings, max_findings))::jsonb;
    FOR number IN 1 .. coalesce(cardinality(connections), 0) LOOP
        EXECUTE format('DROP VIEW pg_temp.%I', 'snowflake_ids_audit_' || number);
        EXECUTE format('DROP FOREIGN TABLE pg_temp.%I', 'snowflake_ids_audit_' || number || '_table');
    END LOOP;
    -- The layout's and the tag's state is read last, so that ids that were issued during the audit are not reported as faults.
    SELECT * INTO layout FROM snowflake_ids_internal.layout_parts(generator);
    SELECT * INTO numbers FROM snowflake_ids_internal.audit_tag(tag);
    PERFORM snowflake_ids_internal.progress_end('audit');
    RETURN QUERY SELECT split_part(f.finding, ' ', 1), f.finding ~ '^(unlisted )?(duplicate|future|unfit)$', f.id, f.rows,
        f.datacenter, f.worker, date '1970-01-01' + f.day,
        nullif(concat_ws(' ', CASE split_part(f.finding, ' ', 1)
            WHEN 'unfit' THEN CASE WHEN f.id < 0 THEN 'It is negative; ids are 0 or more.'
                WHEN tag IS NULL THEN format('The largest id of layout "%s" is %s.', layout.layout, layout.largest)
                ELSE format('Ids of the tag leave %s when divided by %s.', numbers.remainder, numbers.increment) END
            WHEN 'future' THEN CASE WHEN tag IS NULL THEN format('Its timestamp is %s, and the clock stands at %s.',
                    snowflake_ids_internal.audit_time(layout.epoch + (f.id >> layout.ticks_shift) * layout.unit),
                    snowflake_ids_internal.audit_time(layout.now))
                ELSE format('The highest id reserved of the tag is %s.', numbers.highest) END
            WHEN 'gap' THEN format('No row has an id from %s to %s.', f.first, f.last)
            WHEN 'worker' THEN format('From %s to %s.',
                snowflake_ids_internal.audit_time(f.first), snowflake_ids_internal.audit_time(f.last))
            WHEN 'unlisted' THEN format('Further findings "%s" are not listed.', split_part(f.finding, ' ', 2)) END,
            'In ' || (SELECT string_agg(p.name || CASE WHEN p.rows > 1 THEN format(' (%s rows)', p.rows) ELSE '' END, ', '
                    ORDER BY p.number)
                FROM (SELECT least(o.number, 9), CASE WHEN least(o.number, 9) = 9 THEN 'elsewhere'
                        WHEN min(o.place) >> 32 > 0 THEN format('connection %s', min(o.place) >> 32)
                        ELSE snowflake_ids_internal.qualified_name(coalesce(nullif(min(o.place), 0)::oid, "table")) END, sum(o.rows)
                    FROM (SELECT w.number, (w.pair ->> 0)::bigint, (w.pair ->> 1)::bigint
                        FROM jsonb_array_elements(f.places) WITH ORDINALITY AS w (pair, number)) AS o (number, place, rows)
                    GROUP BY 1) AS p (number, name, rows)) || '.'), '')
    FROM ROWS FROM (jsonb_to_recordset(answer) AS (finding text, id bigint, rows bigint, day integer, datacenter integer,
        worker integer, first bigint, last bigint, places jsonb)) WITH ORDINALITY AS f
    WHERE f.finding <> 'future'
        OR f.id > CASE WHEN tag IS NULL THEN layout.highest ELSE coalesce(numbers.highest, 9223372036854775807) END
    ORDER BY f.ordinality;
END
$$;
COMMENT ON FUNCTION snowflake_ids.audit IS 'faults in the ids of a table, on this and other servers, and the number of ids for each node and day';
REVOKE EXECUTE ON FUNCTION
    snowflake_ids_internal.audit_check(regclass, name),
    snowflake_ids_internal.audit_connect(integer, text, regclass, name),
    snowflake_ids_internal.audit_tag(text),
    snowflake_ids_internal.audit_time(bigint),
    snowflake_ids_internal.base_type(oid),
    snowflake_ids_internal.lock_to_read(oid),
    snowflake_ids_internal.qualified_name(regclass),
    snowflake_ids_internal.read_as_owner(oid, text),
    snowflake_ids_internal.progress_enter(text, oid, text),
    snowflake_ids_internal.progress_end(text)
FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    snowflake_ids_internal.audit_check(regclass, name),
    snowflake_ids_internal.audit_connect(integer, text, regclass, name),
    snowflake_ids_internal.audit_tag(text),
    snowflake_ids_internal.audit_time(bigint),
    snowflake_ids_internal.base_type(oid),
    snowflake_ids_internal.lock_to_read(oid),
    snowflake_ids_internal.qualified_name(regclass),
    snowflake_ids_internal.read_as_owner(oid, text),
    snowflake_ids_internal.progress_enter(text, oid, text),
    snowflake_ids_internal.progress_end(text)
TO PUBLIC;
COMMENT ON COLUMN snowflake_ids.attention.severity IS 'alarm, warning or note';
COMMENT ON COLUMN snowflake_ids.attention.subject IS 'server, clock, worker id or launcher, or the name of a registry, tag or generator';
COMMENT ON COLUMN snowflake_ids.attention.problem IS 'the problem';
COMMENT ON COLUMN snowflake_ids.attention.action IS 'the remedy, and the section of the documentation that explains it';
COMMENT ON COLUMN snowflake_ids.attention.since IS 'the beginning of the problem, if it is known';
COMMENT ON COLUMN snowflake_ids.progress.rows_done IS 'always null; kept for views that were made with earlier releases';
COMMENT ON COLUMN snowflake_ids.progress.rows_total IS 'always null; kept for views that were made with earlier releases';

/* Where worker ids come from. */
CREATE FUNCTION snowflake_ids_internal."worker_note_chosen"() RETURNS VOID
STRICT VOLATILE PARALLEL UNSAFE 
LANGUAGE c
AS 'MODULE_PATHNAME', 'worker_note_chosen_wrapper';
CREATE FUNCTION snowflake_ids_internal."worker_choose_another"(
	"datacenter_id" INT,
	"worker_id" INT
) RETURNS bool
VOLATILE PARALLEL UNSAFE 
LANGUAGE c
AS 'MODULE_PATHNAME', 'worker_choose_another_wrapper';
/* A server without a registry chooses its worker id itself, and what it knows of that is in a file. A standby that is promoted
   without a copy of the file knows this much. */
CREATE TABLE snowflake_ids.worker_chosen (
    datacenter_id     integer     NOT NULL,
    worker_id         integer     NOT NULL,
    system_identifier bigint      NOT NULL,
    timeline          integer     NOT NULL,
    home              text        NOT NULL,
    chosen_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (system_identifier, datacenter_id, worker_id)
);
COMMENT ON TABLE snowflake_ids.worker_chosen IS 'the first worker id that this server chose, if it had no registry when the extension was created';
COMMENT ON COLUMN snowflake_ids.worker_chosen.system_identifier IS 'the cluster, as pg_control_system() shows it';
COMMENT ON COLUMN snowflake_ids.worker_chosen.home IS 'the creation time of the data directory, which differs in each copy';
SELECT snowflake_ids_internal.worker_note_chosen();

REVOKE EXECUTE ON FUNCTION
    snowflake_ids_internal.worker_note_chosen(),
    snowflake_ids_internal.worker_choose_another(integer, integer)
FROM PUBLIC;
CREATE FUNCTION snowflake_ids_internal.registry_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'registry_changed_trigger';
REVOKE EXECUTE ON FUNCTION
    snowflake_ids_internal.registry_changed()
FROM PUBLIC;
CREATE OR REPLACE FUNCTION snowflake_ids.worker_release(
    worker_id      integer,
    datacenter_id  integer DEFAULT NULL,
    holder_is_down boolean DEFAULT false
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    datacenter integer;
    seen       record;
    free_from  timestamptz;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.worker_check_registry();
    IF worker_id IS NULL THEN
        RAISE EXCEPTION 'worker_id must not be null' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'It says which worker id to give up.';
    END IF;
    datacenter := coalesce(datacenter_id, current_setting('snowflake_ids.datacenter_id')::integer);
    SELECT w.* INTO seen FROM snowflake_ids.worker_lease AS w
    WHERE w.datacenter_id = datacenter AND w.worker_id = worker_release.worker_id FOR UPDATE;
    IF NOT FOUND AND snowflake_ids_internal.worker_choose_another(datacenter, worker_id) THEN
        RETURN;
    ELSIF NOT FOUND THEN
        RAISE EXCEPTION 'worker id % of datacenter % is not leased', worker_id, datacenter USING
            ERRCODE = 'undefined_object',
            DETAIL = 'There is no row for this worker id in snowflake_ids.worker_lease.',
            HINT = 'To release a worker id of another datacenter, SELECT snowflake_ids.worker_release(worker_id, datacenter_id).';
    END IF;
    -- This server's own lease ends at once. Another holder may still be running: it keeps its lease until the expiry time, but
    -- cannot renew it.
    free_from := snowflake_ids_internal.worker_give_up(datacenter, worker_id, seen.token);
    IF free_from IS NULL AND holder_is_down THEN
        free_from := greatest(clock_timestamp(), seen.last_time, seen.renewed_at) + current_setting('snowflake_ids.max_drift')::interval
                     + current_setting('snowflake_ids.max_clock_skew')::interval;
    END IF;
    UPDATE snowflake_ids.worker_lease AS w
    SET token = NULL, expires_at = least(w.expires_at, free_from),
        released_at = coalesce(w.released_at, clock_timestamp())
    WHERE w.datacenter_id = datacenter AND w.worker_id = worker_release.worker_id;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_hold(leases jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') <> 'remote_apply';
    INSERT INTO snowflake_ids.worker_lease AS w (datacenter_id, worker_id, token, expires_at, host, port)
    -- A longer lease is cut to this server's lease duration. Two nodes without a registry may have chosen the same worker id;
    -- only one of them keeps it.
    SELECT DISTINCT ON (l.datacenter_id, l.worker_id) l.datacenter_id, l.worker_id, l.token,
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
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE OF position, server, identity OR TRUNCATE ON snowflake_ids.registry_server
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.registry_changed();
CREATE TRIGGER registry_changed AFTER INSERT ON snowflake_ids.worker_lease
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.registry_changed();

ALTER TABLE snowflake_ids.registry_server ENABLE ALWAYS TRIGGER registry_changed;
ALTER TABLE snowflake_ids.worker_lease ENABLE ALWAYS TRIGGER registry_changed;
CREATE TRIGGER worker_chosen_applied BEFORE INSERT OR UPDATE OR DELETE ON snowflake_ids.worker_chosen
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.keep_from_replication();
CREATE TRIGGER worker_chosen_applied_truncate BEFORE TRUNCATE ON snowflake_ids.worker_chosen
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.keep_from_replication();
ALTER TABLE snowflake_ids.worker_chosen ENABLE REPLICA TRIGGER worker_chosen_applied, ENABLE REPLICA TRIGGER worker_chosen_applied_truncate;

CREATE  FUNCTION "snowflake_min_uuid"(
	"at" timestamp with time zone 
) RETURNS uuid 
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c 
AS 'MODULE_PATHNAME', 'snowflake_min_uuid_wrapper';

COMMENT ON FUNCTION snowflake_min_uuid(timestamptz) IS 'the smallest UUID of version 7 in the millisecond that an instant lies in';

CREATE FUNCTION snowflake_between(id bigint, "from" timestamptz, "to" timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT id OPERATOR(pg_catalog.>=) pg_catalog.snowflake_min_id("from") AND id OPERATOR(pg_catalog.<) pg_catalog.snowflake_min_id("to")
$$;

COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS 'true if an id was generated at or after "from" and before "to", to the tick';

CREATE FUNCTION snowflake_between(id bigint, "from" timestamptz, "to" timestamptz, layout text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT id OPERATOR(pg_catalog.>=) pg_catalog.snowflake_min_id("from", layout)
        AND id OPERATOR(pg_catalog.<) pg_catalog.snowflake_min_id("to", layout)
$$;

COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, text) IS 'true if an id of a layout or generator was generated at or after "from" and before "to", to the tick';

CREATE FUNCTION snowflake_between(id uuid, "from" timestamptz, "to" timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT id OPERATOR(pg_catalog.>=) pg_catalog.snowflake_min_uuid("from") AND id OPERATOR(pg_catalog.<) pg_catalog.snowflake_min_uuid("to")
$$;

COMMENT ON FUNCTION snowflake_between(uuid, timestamptz, timestamptz) IS 'true if a UUID of version 7 was generated at or after "from" and before "to", to the millisecond';

CREATE  FUNCTION "snowflake_interval"(
	"span" interval 
) RETURNS bigint 
STRICT STABLE PARALLEL SAFE 
LANGUAGE c 
AS 'MODULE_PATHNAME', 'interval_of_wrapper';

CREATE  FUNCTION "snowflake_interval"(
	"span" interval, 
	"layout" text 
) RETURNS bigint 
IMMUTABLE STRICT PARALLEL SAFE 
LANGUAGE c 
AS 'MODULE_PATHNAME', 'interval_of_layout_wrapper';

COMMENT ON FUNCTION snowflake_interval(interval) IS 'the difference between two ids whose times are an interval apart';

COMMENT ON FUNCTION snowflake_interval(interval, text) IS 'the difference between two ids of a layout or generator whose times are an interval apart';

CREATE FUNCTION snowflake_ids_internal.columns_of_tag(tag text) RETURNS TABLE (relation regclass, attribute name)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.adrelid::regclass, a.attname
    FROM pg_depend p
    JOIN pg_attrdef d ON d.oid = p.objid
    JOIN pg_class c ON c.oid = d.adrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
    JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE p.classid = 'pg_attrdef'::regclass AND p.refclassid = 'pg_proc'::regclass
        AND p.refobjid = ANY (ARRAY['segment_nextval(text)', 'segment_id(text)']::regprocedure[])
        -- Printing a default fails if another session meanwhile drops an object that the default names.
        AND CASE WHEN NOT EXISTS (SELECT FROM pg_depend o WHERE o.classid = 'pg_attrdef'::regclass AND o.objid = d.oid
                AND o.refobjid NOT IN (p.refobjid, d.adrelid) AND o.refclassid <> 'pg_type'::regclass)
            -- Many columns may be attached. This test excludes most of them cheaply.
            THEN strpos(pg_get_expr(d.adbin, 0), snowflake_ids_internal.call_with('', tag) COLLATE "C") > 0
                AND snowflake_ids_internal.default_of(d.adrelid, a.attname)
                    = snowflake_ids_internal.id_default('segment', tag) COLLATE "C" END
    ORDER BY d.adrelid, d.adnum
$$;


CREATE FUNCTION snowflake_ids_internal.column_with_ids(tag text, OUT relation text, OUT attribute text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.qualified_name(coalesce(pg_partition_root(c.relation), c.relation)), c.attribute::text
    FROM snowflake_ids_internal.columns_of_tag(tag) c WHERE pg_relation_size(c.relation) > 0
    ORDER BY 1 LIMIT 1
$$;


REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.columns_of_tag(text), snowflake_ids_internal.column_with_ids(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.seed_tag(tag text, highest bigint, most bigint, owner oid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known snowflake_ids.segment;
    widest bigint;
BEGIN
    -- registry_seed asks again under a lock, because the registries may be given up after this check.
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        IF snowflake_ids_internal.registry_seed(tag, highest) THEN
            IF highest > 0 THEN
                RAISE NOTICE USING
                    MESSAGE = format('other servers may still give ids of segment tag "%s" up to %s', tag, highest),
                    DETAIL = 'They reserved these ids before the registry learned of the ids of the column.',
                    HINT = format('On each other server that uses the registry: SELECT snowflake_ids.segment_discard(%L);', tag);
            END IF;
            RETURN;
        END IF;
    END IF;
    SELECT * INTO known FROM snowflake_ids.segment s WHERE s.tag = seed_tag.tag COLLATE "C";
    -- A limit equal to the maximum of a narrower type was set by attach, when the column had that type.
    IF known.max_value IN (32767, 2147483647) AND known.max_value < most THEN
        SELECT least(most, min(snowflake_ids_internal.column_maximum(c.relation, c.attribute))) INTO widest
        FROM snowflake_ids_internal.columns_of_tag(tag) AS c;
        IF widest > known.max_value THEN
            PERFORM snowflake_ids.segment_alter(tag, max_value => widest);
            known.max_value := widest;
        END IF;
    END IF;
    IF known.tag IS NULL AND highest >= most THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('no ids are left for segment tag "%s"', left(tag, 128)),
            DETAIL = format('The column and its sequence can hold ids up to %s; the highest id in use is %s.', most, highest),
            HINT = 'Raise MAXVALUE of the sequence, if there is one, or change the column to a wider type.';
    ELSIF known.tag IS NULL THEN
        -- The tag starts at 1, because a RESTART of a bound sequence returns to the tag's start.
        PERFORM snowflake_ids.segment_create(tag, max_value => most);
        PERFORM snowflake_ids.segment_raise(tag, highest);
        IF NOT has_table_privilege(owner, 'snowflake_ids.segment', 'UPDATE') THEN
            INSERT INTO snowflake_ids.segment_privilege AS p (tag, grantee, privileges) VALUES (seed_tag.tag, owner, 'UPDATE')
            ON CONFLICT DO NOTHING;
        END IF;
    ELSIF known.reset IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('segment tag "%s" starts again every %s', tag, known.reset),
            DETAIL = 'The ids of the column would repeat.',
            HINT = 'Attach with a tag that has no reset, or omit the argument tag to create a new tag.';
    ELSIF known.max_value <= highest THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('max_value of segment tag "%s" is below the highest id of the column', tag),
            DETAIL = format('Its max_value is %s; the highest id of the column is %s.', known.max_value, highest),
            HINT = 'Raise max_value with snowflake_ids.segment_alter, or attach with another tag.';
    ELSIF known.max_value > most THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('max_value of segment tag "%s" is above the maximum of the column or its sequence', tag),
            DETAIL = format('Its max_value is %s; the column and its sequence end at %s.', known.max_value, most),
            HINT = format('Lower it with SELECT snowflake_ids.segment_alter(%L, max_value => %s), or name another tag.', tag, most);
    ELSE
        PERFORM snowflake_ids.segment_raise(tag, highest);
    END IF;
END
$$;

/* What attach, detach, sequences, series and Citus are made of, in fewer functions. */
DROP TRIGGER sequence_follow ON snowflake_ids.segment;
DROP TRIGGER series_keep_name ON snowflake_ids.series;
DROP FUNCTION
    snowflake_ids_internal.above_other_nodes,
    snowflake_ids_internal.attach_coordinator,
    snowflake_ids_internal.attach_workers,
    snowflake_ids_internal.check_attach,
    snowflake_ids_internal.check_detach,
    snowflake_ids_internal.check_others_of_sequence,
    snowflake_ids_internal.check_preloaded,
    snowflake_ids_internal.check_tag_stays,
    snowflake_ids_internal.citus_refuse_move,
    snowflake_ids_internal.citus_rights,
    snowflake_ids_internal.citus_series,
    snowflake_ids_internal.function_of,
    snowflake_ids_internal.generator_users,
    snowflake_ids_internal.highest_own_id,
    snowflake_ids_internal.highest_stored,
    snowflake_ids_internal.propagate,
    snowflake_ids_internal.propagate_nothing,
    snowflake_ids_internal.reached_by_groups,
    snowflake_ids_internal.registry_place,
    snowflake_ids_internal.restore_identity,
    snowflake_ids_internal.sequence_follow,
    snowflake_ids_internal.sequence_obstacle,
    snowflake_ids_internal.series_check_home,
    snowflake_ids_internal.series_keep_name,
    snowflake_ids_internal.tell_numbers_go_on,
    snowflake_ids_internal.tell_other_of_sequence,
    snowflake_ids_internal.tell_other_servers,
    snowflake_ids_internal.tell_tables_without_identity;
CREATE OR REPLACE FUNCTION snowflake_ids.attach(relation regclass, "column" name, kind text DEFAULT 'snowflake',
    tag text DEFAULT NULL, sequence text DEFAULT 'redirect', generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    done record;
    failed jsonb;
    unchecked record;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('attach');
    IF relation IS NULL OR "column" IS NULL OR sequence IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'relation, column, kind and sequence must not be null';
    ELSIF sequence COLLATE "C" NOT IN ('redirect', 'keep', 'drop') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unrecognized value for sequence: "%s"', left(sequence, 128)),
            HINT = 'Known values are redirect, keep and drop.';
    END IF;
    PERFORM snowflake_ids_internal.check_kind(kind, tag, generator);
    PERFORM snowflake_ids_internal.sequence_check_redirects() WHERE sequence COLLATE "C" = 'redirect';
    PERFORM snowflake_ids_internal.check_coordinator(relation);
    IF NOT snowflake_ids_internal.is_distributed(relation) THEN
        PERFORM snowflake_ids_internal.attach_here(relation, "column", kind, tag, sequence, generator);
        RETURN;
    END IF;
    -- The tag and the coordinator are changed first, so that no worker repeats an id of the coordinator.
    -- A separate session changes the coordinator, and commits before the workers are changed.
    -- A later failure does not undo this change.
    PERFORM snowflake_ids_internal.check_alone('attach', relation);
    SELECT r.success, r.result INTO done FROM pg_catalog.run_command_on_coordinator(format(
        'SELECT snowflake_ids_internal.attach_in_session(%L, %L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), "column", kind, tag, sequence, generator,
        snowflake_ids_internal.bounded_lock_timeout())) AS r;
    IF done.success IS NOT TRUE THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'could not change the coordinator in a separate session',
            DETAIL = left(coalesce(done.result, 'No answer.'), 1000),
            HINT = 'Correct the cause, and repeat the call; no worker has been changed.';
    ELSIF done.result <> '' THEN
        failed := done.result;
        RAISE EXCEPTION USING
            ERRCODE = failed ->> 'code',
            MESSAGE = failed ->> 'message',
            DETAIL = coalesce(nullif(failed ->> 'detail', ''), format('The coordinator reported this for table "%s".', relation)),
            HINT = coalesce(nullif(failed ->> 'hint', ''), 'Correct the cause, and repeat the call; no worker has been changed.');
    END IF;
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'waiting for other nodes');
    tag := CASE WHEN kind COLLATE "C" = 'segment' THEN coalesce(tag, snowflake_ids_internal.default_tag(relation)) END;
    PERFORM snowflake_ids_internal.citus_run_on_workers(format(
        'SELECT snowflake_ids_internal.attach_worker(%L, %L, %L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), "column", snowflake_ids_internal.id_default(kind, tag, generator),
        kind, tag, sequence, generator, snowflake_ids_internal.bounded_lock_timeout()));
    PERFORM snowflake_ids_internal.progress_end('attach');
    FOR unchecked IN SELECT * FROM snowflake_ids_internal.citus_keys(relation) LOOP
        RAISE NOTICE USING
            MESSAGE = format('Citus does not check key "%s" of relation "%s" across shards', unchecked.key, relation),
            DETAIL = coalesce(upper(left(unchecked.fault, 1)) || substr(unchecked.fault, 2) || '.',
                'Its ids are unique as long as no statement sets them itself.'),
            HINT = CASE WHEN unchecked.fault IS NULL THEN 'Leave the column out of each INSERT and UPDATE.'
                ELSE upper(left(unchecked.hint, 1)) || substr(unchecked.hint, 2) || '.' END;
    END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.attach_here(relation regclass, "column" name, kind text, tag text, sequence text,
    generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
DECLARE
    distributed boolean := snowflake_ids_internal.is_distributed(relation);
    known text;
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
    PERFORM snowflake_ids_internal.check_uses(relation, "column", kind)
    WHERE snowflake_ids_internal.kind_of_default(former) IS DISTINCT FROM kind COLLATE "C";
    IF NOT distributed THEN
        shared := snowflake_ids_internal.shared_sequence(relation, "column");
        IF shared IS NOT NULL THEN
            PERFORM snowflake_ids_internal.attach_shared(relation, "column", shared, kind, tag, generator, sequence);
            PERFORM snowflake_ids_internal.progress_end('attach');
            RETURN;
        END IF;
    END IF;
    IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
        -- If the parent was attached first, and one sequence served both tables, the parent's tag is used. Both defaults may
        -- name another role's tag, so the table's owner needs the right to move the tag.
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
    -- A node gives ids of the former tag until the node learns of the change. The new tag could give the same ids.
    known := CASE WHEN distributed THEN snowflake_ids_internal.tag_of_default(former) END;
    IF tag <> known COLLATE "C" THEN
        RAISE feature_not_supported USING
            MESSAGE = format('column "%s" of relation "%s" already takes ids of tag "%s"', "column", relation, known),
            DETAIL = 'While nodes change to the new tag one after another, both tags could give the same ids.',
            HINT = format('First SELECT snowflake_ids.detach(%L, %L). Then attach the column to the new tag.', relation, "column");
    END IF;
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'searching for the highest id');
    PERFORM snowflake_ids_internal.resume_sequences(relation, "column");
    highest := snowflake_ids_internal.highest_id(relation, "column");
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'changing defaults');
    IF kind COLLATE "C" = 'segment' THEN
        PERFORM snowflake_ids_internal.check_room_above(relation, "column", highest);
    ELSIF expression IS DISTINCT FROM former COLLATE "C" THEN
        PERFORM snowflake_ids_internal.check_snowflake_above(relation, "column", highest, expression);
    END IF;
    PERFORM snowflake_ids_internal.check_workers(relation, "column", kind, generator,
        CASE WHEN expression IS DISTINCT FROM former COLLATE "C" THEN highest END, expression, false) WHERE distributed;
    PERFORM snowflake_ids_internal.tell_replaced_defaults(relation, "column", expression);
    IF distributed THEN
        PERFORM snowflake_ids_internal.unbind_own(relation, "column", NULL);
        -- The tag gives ids as soon as the coordinator is changed.
        -- Other nodes still use their former defaults then, and some of their ids are not stored yet.
        -- The tag begins above these ids if they may be in its range.
        IF highest >= 1::bigint << 48 AND former IS DISTINCT FROM expression COLLATE "C" THEN
            highest := least(9223372036854775807, highest::numeric + (1::bigint
                << CASE snowflake_ids_internal.kind_of_default(former) COLLATE "C" WHEN 'snowflake' THEN 42 ELSE 36 END));
        END IF;
    ELSE
        PERFORM snowflake_ids_internal.unbind_sequences(relation, "column", highest);
    END IF;
    PERFORM snowflake_ids_internal.drop_identities(relation, "column", sequence COLLATE "C" <> 'drop');
    PERFORM snowflake_ids_internal.set_default(relation, "column", 'SET DEFAULT ' || expression);
    -- A registry on another server keeps its change even if this transaction is rolled back. So the tag is raised there after
    -- all steps that may fail here, and before any node gives ids of the tag.
    IF kind COLLATE "C" = 'segment' THEN
        PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'raising the tag');
        SELECT least(snowflake_ids_internal.column_maximum(relation, "column"), min(s.seqmax)) INTO most
        FROM snowflake_ids_internal.sequences_of(relation, "column") o JOIN pg_sequence s ON s.seqrelid = o.sequence
        WHERE attach_here.sequence COLLATE "C" = 'redirect' AND o.owner IS NOT NULL AND s.seqincrement > 0
            -- A sequence that ends at its type's maximum is widened.
            AND s.seqmax <> snowflake_ids_internal.type_maximum(s.seqtypid);
        PERFORM snowflake_ids_internal.seed_tag(tag, highest, most, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = relation));
    END IF;
    IF sequence COLLATE "C" = 'redirect' THEN
        PERFORM snowflake_ids_internal.bind_sequences(relation, "column", kind, tag, generator, identities);
    ELSIF sequence COLLATE "C" = 'drop' THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, "column");
    END IF;
    PERFORM snowflake_ids_internal.progress_end('attach');
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.detach(relation regclass, "column" name, kind text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
DECLARE
    distributed boolean;
    expression text;
    identities jsonb;
    highest bigint;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('detach');
    distributed := snowflake_ids_internal.is_distributed(relation);
    IF relation IS NULL OR "column" IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'relation and column must not be null';
    ELSIF kind COLLATE "C" NOT IN ('sequence', 'identity', 'none') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unrecognized kind "%s"', left(kind, 128)),
            HINT = 'Known kinds are sequence, identity and none.';
    END IF;
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
            HINT = coalesce((SELECT format('To unbind the sequence of the column, for all columns that use the sequence: SELECT snowflake_ids.unbind_sequence(%L);',
                    s.sequence) FROM snowflake_ids_internal.sequences_of(relation, "column") s
                WHERE snowflake_ids_internal.sequence_is_bound(s.sequence) LIMIT 1),
                'Detach only columns whose default is snowflake_nextval() or segment_nextval(tag).');
    END IF;
    identities := CASE WHEN distributed THEN '{}' ELSE snowflake_ids_internal.former_identities(relation, "column") END;
    IF kind IS NULL AND identities ? relation::oid::text AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = relation
        AND a.attname = "column" COLLATE "C" AND a.atttypid <> ALL (ARRAY['bigint', 'integer', 'smallint']::regtype[]))
    THEN
        kind := 'sequence';
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" was an identity and gets the default of its sequence', "column", relation),
            DETAIL = 'An identity column must be of type bigint, integer or smallint.';
    END IF;
    kind := coalesce(kind, CASE WHEN identities ? relation::oid::text THEN 'identity' ELSE 'sequence' END);
    IF distributed THEN
        PERFORM snowflake_ids_internal.check_workers(relation, "column", NULL, NULL, NULL, NULL, kind COLLATE "C" = 'identity');
        PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'waiting for other nodes');
        -- Workers first: afterwards no worker takes an id, so the highest id stays the highest.
        PERFORM snowflake_ids_internal.detach_workers(relation, "column", kind, expression);
        highest := coalesce(snowflake_ids_internal.highest_of_group(0, relation, "column", expression), 0);
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
        IF NOT distributed AND highest > 0 AND snowflake_ids_internal.kind_of_default(expression) COLLATE "C" = 'snowflake' THEN
            RAISE NOTICE USING
                MESSAGE = format('column "%s" of relation "%s" continues from its highest id', "column", relation),
                DETAIL = format('The highest id is %s. Snowflake ids that are in the column stay.', highest);
        END IF;
        IF kind COLLATE "C" = 'sequence' THEN
            PERFORM snowflake_ids_internal.restore_sequence(relation, "column", highest);
        ELSE
            PERFORM snowflake_ids_internal.restore_identities(relation, "column", highest, identities);
        END IF;
    END IF;
    PERFORM snowflake_ids_internal.tell_tag_stays(expression);
    PERFORM snowflake_ids_internal.progress_end('detach');
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.set_default(relation regclass, attribute name, change text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.as_owner(m, format('ALTER TABLE ONLY %s ALTER COLUMN %I %s', m, attribute, change))
    FROM unnest(ARRAY(SELECT snowflake_ids_internal.table_and_below(relation))) m;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.set_rights(sequence regclass, rights aclitem[], described text) RETURNS void
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
CREATE FUNCTION snowflake_ids_internal.check_others_of_sequence(sequence regclass, relation regclass, attribute name, most bigint)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other record;
BEGIN
    FOR other IN SELECT * FROM snowflake_ids_internal.others_of_sequence(sequence, relation, attribute) LOOP
        IF other.most < check_others_of_sequence.most THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('sequence "%s" also serves column "%s" of relation "%s", which cannot hold the ids',
                    sequence, other.other_attribute, other.other),
                DETAIL = format('The maximum of type %s is %s.', other.type, other.most),
                HINT = 'Change that column to a wider type first.';
        END IF;
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" also gets ids', other.other_attribute, other.other),
            DETAIL = format('It takes them from sequence "%s".', sequence);
    END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.bind_sequences(relation regclass, attribute name, kind text, tag text,
    generator text, identities jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned regclass;
    owner regclass;
    obstacle record;
    former record;
    most bigint := snowflake_ids_internal.column_maximum(relation, attribute);
    drops boolean := false;
BEGIN
    FOR owned, owner IN SELECT s.sequence, s.owner FROM snowflake_ids_internal.sequences_of(relation, attribute) s
        WHERE s.owner IS NOT NULL
    LOOP
        SELECT * INTO former FROM snowflake_ids_internal.sequence_make_fit(owned);
        SELECT * INTO obstacle FROM snowflake_ids_internal.sequence_obstacle(owned);
        IF obstacle.message IS NULL THEN
            PERFORM snowflake_ids_internal.lock_relation(owned);
            PERFORM snowflake_ids_internal.check_others_of_sequence(owned, relation, attribute, most);
            PERFORM snowflake_ids_internal.sequence_bind(owned, kind, tag, generator, most);
            PERFORM snowflake_ids_internal.sequence_remember(owned, former.type, former.cycles, former.unlogged,
                identities ->> owner::oid::text);
        ELSE
            RAISE NOTICE USING MESSAGE = obstacle.message, DETAIL = obstacle.detail,
                HINT = 'The sequence is dropped, and lastval() does not see the ids of the column. To keep the sequence, attach with sequence => ''keep''.';
            drops := true;
        END IF;
    END LOOP;
    PERFORM snowflake_ids_internal.drop_sequences(relation, attribute) WHERE drops;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.unbind_sequences(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.lock_relation(s), snowflake_ids_internal.sequence_unbind(s, highest)
    FROM unnest(ARRAY(SELECT o.sequence FROM snowflake_ids_internal.sequences_of(relation, attribute) o
        WHERE o.owner IS NOT NULL AND snowflake_ids_internal.sequence_is_bound(o.sequence))) s;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.restore_identities(relation regclass, attribute name, highest bigint, identities jsonb)
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_kind(kind text, tag text, generator text) RETURNS void
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.lock_table(relation regclass) RETURNS void
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_table(relation regclass, VARIADIC kinds "char"[]) RETURNS void
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_uses(relation regclass, attribute name, kind text) RETURNS void
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_course(sequence regclass, OUT options text, OUT last_value bigint, OUT is_called boolean)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('INCREMENT BY %s MINVALUE %s MAXVALUE %s START WITH %s CACHE %s %s', s.seqincrement, s.seqmin, s.seqmax, s.seqstart,
        s.seqcache, CASE WHEN s.seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END), p.last_value, p.is_called
    FROM pg_sequence s, snowflake_ids_internal.sequence_position($1) p WHERE s.seqrelid = $1
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.highest_number(sequence regclass) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bound snowflake_ids.sequence_binding;
    highest bigint;
BEGIN
    SELECT * INTO bound FROM snowflake_ids.sequence_binding b WHERE b.sequence = highest_number.sequence
        AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence));
    IF FOUND AND bound.tag IS NULL THEN
        EXECUTE format('SELECT %s', snowflake_ids_internal.id_default('snowflake', NULL, bound.generator)) INTO highest;
    ELSIF NOT FOUND THEN
        SELECT CASE WHEN NOT p.is_called THEN p.last_value - 1
            WHEN s.seqincrement < 0 THEN greatest(s.seqstart, p.last_value)
            ELSE p.last_value END
        INTO highest FROM pg_sequence s, snowflake_ids_internal.sequence_position(sequence) p WHERE s.seqrelid = sequence;
    ELSIF EXISTS (SELECT FROM snowflake_ids.registry_server) OR EXISTS (SELECT FROM snowflake_ids.segment s WHERE s.tag = bound.tag) THEN
        highest := snowflake_ids_internal.highest_of_tag(bound.tag);
    ELSE
        -- Only the tag tells which ids the sequence has given.
        RAISE undefined_object USING
            MESSAGE = format('segment tag "%s" of sequence "%s" does not exist', bound.tag, sequence),
            DETAIL = 'The sequence has given ids of this tag, and must continue above them.',
            HINT = format('Create the tag again, above all ids that are in use: SELECT snowflake_ids.segment_create(%L, start => ...);', bound.tag);
    END IF;
    RETURN greatest(highest, bound.last_number);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.highest_id(relation regclass, attribute name) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    members regclass[] := ARRAY(SELECT b FROM snowflake_ids_internal.table_and_below(relation) b);
    member regclass;
    looked_at bigint;
    stored bigint;
BEGIN
    FOR member, looked_at IN SELECT m, place - 1 FROM unnest(members) WITH ORDINALITY t (m, place) LOOP
        PERFORM snowflake_ids_internal.progress_tables(looked_at, cardinality(members));
        BEGIN
            stored := greatest(stored,
                snowflake_ids_internal.as_owner(member, format('SELECT max(%I) FROM ONLY %s', attribute, member)));
        EXCEPTION WHEN undefined_function THEN
            -- The planner also plans index expressions, which may call functions that are not found here.
            RAISE undefined_function USING
                MESSAGE = SQLERRM,
                DETAIL = format('An expression of an index of table %s calls it: %s. The search_path is pg_catalog here.', member,
                    (SELECT coalesce(string_agg(i.indexrelid::regclass::text, ', '), 'none') FROM pg_index i
                     WHERE i.indrelid = member AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))),
                HINT = 'Give the functions of the index a search_path of their own: ALTER FUNCTION ... SET search_path = ...;';
        END;
    END LOOP;
    RETURN greatest(stored, 0,
        (SELECT max(snowflake_ids_internal.highest_number(s.sequence)) FROM snowflake_ids_internal.sequences_of(relation, attribute) s),
        -- Any role may name a tag in a default. The position of another role's tag must not be revealed.
        (SELECT max(snowflake_ids_internal.highest_of_tag(t))
            FROM (SELECT DISTINCT c.relowner,
                    snowflake_ids_internal.tag_of_default(snowflake_ids_internal.default_of(b, attribute COLLATE "C"))
                FROM unnest(members) b JOIN pg_class c ON c.oid = b) tags (owner, t)
            WHERE t IS NOT NULL AND snowflake_ids_internal.may_take_ids(owner, t)));
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.is_distributed(relation regclass) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN
        RETURN false;
    END IF;
    RETURN EXISTS (SELECT FROM pg_catalog.pg_dist_partition AS p WHERE p.logicalrelid = relation);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.node_group() RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_local_group') IS NULL THEN
        RETURN 0;
    END IF;
    RETURN coalesce((SELECT g.groupid FROM pg_catalog.pg_dist_local_group AS g LIMIT 1), 0);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_coordinator(relation regclass) RETURNS void
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.detach_workers(relation regclass, attribute name, kind text, expression text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence_name text := coalesce((SELECT snowflake_ids_internal.qualified_name(s.sequence)
        FROM snowflake_ids_internal.sequences_of(relation, attribute) s WHERE s.owner = relation ORDER BY s.sequence LIMIT 1),
        snowflake_ids_internal.free_sequence_name(relation, attribute));
    reached jsonb := (SELECT coalesce(jsonb_object_agg(n.groupid, snowflake_ids_internal.highest_of_group(n.groupid, relation, attribute,
        expression)), '{}') FROM (SELECT DISTINCT n.groupid FROM pg_catalog.pg_dist_node AS n WHERE n.groupid <> 0) AS n);
BEGIN
    PERFORM snowflake_ids_internal.citus_run_on_workers(format(
        'SELECT snowflake_ids_internal.detach_worker(%L, %L, %L, %L, %L, %L)', snowflake_ids_internal.qualified_name(relation), attribute,
        kind, sequence_name, reached, snowflake_ids_internal.bounded_lock_timeout()));
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_worker(relation_name text, attribute name, kind text, generator text,
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
            MESSAGE = format('ids have layout "%s" on this node, but layout "%s" on the coordinator',
                current_setting('snowflake_ids.layout'), layout);
    END IF;
    SELECT g.layout INTO here FROM snowflake_ids.generator AS g WHERE g.name = generator COLLATE "C";
    IF here IS DISTINCT FROM generator_layout COLLATE "C" THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('generator "%s" has layout "%s" on this node, but layout "%s" on the coordinator', generator, here, generator_layout);
    END IF;
    PERFORM snowflake_ids_internal.check_snowflake_above(relation, attribute, highest, expression)
    WHERE kind COLLATE "C" = 'snowflake' AND highest IS NOT NULL;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.attach_worker(relation_name text, attribute name, expression text, kind text, tag text,
    sequence text, generator text, timeout text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
DECLARE
    relation regclass := relation_name;
BEGIN
    PERFORM set_config('lock_timeout', timeout, true);
    PERFORM snowflake_ids_internal.lock_table(relation);
    PERFORM snowflake_ids_internal.check_column(relation, attribute, kind);
    PERFORM snowflake_ids_internal.unbind_own(relation, attribute, NULL);
    PERFORM snowflake_ids_internal.drop_identities(relation, attribute, sequence COLLATE "C" <> 'drop');
    PERFORM snowflake_ids_internal.set_default(relation, attribute, 'SET DEFAULT ' || expression);
    PERFORM snowflake_ids_internal.discard_received(tag) WHERE kind COLLATE "C" = 'segment';
    IF sequence COLLATE "C" = 'redirect' THEN
        PERFORM snowflake_ids_internal.bind_own(relation, attribute, tag, generator);
    ELSIF sequence COLLATE "C" = 'drop' THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.detach_worker(relation_name text, attribute name, kind text, sequence_name text,
    reached jsonb, timeout text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
DECLARE
    relation regclass := relation_name;
    node_group int := snowflake_ids_internal.node_group();
    numbers record := snowflake_ids_internal.numbers_of_group(node_group);
    highest bigint := (reached ->> node_group::text)::bigint;
    is_wide boolean := snowflake_ids_internal.column_type(relation, attribute) = 'bigint'::regtype;
    options text := CASE WHEN is_wide THEN format('MINVALUE %1$s MAXVALUE %2$s START WITH %1$s', numbers.first + 1, numbers.last + 1)
        ELSE '' END;
    sequence regclass;
BEGIN
    PERFORM set_config('lock_timeout', timeout, true);
    PERFORM snowflake_ids_internal.lock_table(relation);
    PERFORM snowflake_ids_internal.check_column(relation, attribute, 'segment');
    -- The tag's ids reached this node's range. Other nodes may give more ids of the tag until they learn of the change.
    IF is_wide AND highest IS NOT NULL AND highest > ALL (SELECT coalesce(b.last_number, snowflake_ids_internal.highest_number(s.sequence))
        FROM snowflake_ids_internal.sequences_of(relation, attribute) s
            LEFT JOIN snowflake_ids.sequence_binding b ON b.sequence = s.sequence) THEN
        highest := least(highest + (1::bigint << 36), numbers.last);
    END IF;
    PERFORM snowflake_ids_internal.unbind_own(relation, attribute, highest);
    -- An identity exists if an earlier call detached this worker, but then failed on the coordinator.
    PERFORM snowflake_ids_internal.drop_identities(relation, attribute, true);
    PERFORM snowflake_ids_internal.set_default(relation, attribute, 'DROP DEFAULT');
    IF kind COLLATE "C" = 'none' THEN
        RETURN;
    END IF;
    sequence := snowflake_ids_internal.kept_sequence(relation, attribute, 9223372036854775807);
    -- A sequence with the coordinator's name may exist here without belonging to the column.
    IF sequence IS NULL AND EXISTS (SELECT FROM pg_class c WHERE c.oid = to_regclass(sequence_name) AND c.relkind = 'S') THEN
        sequence := sequence_name::regclass;
        PERFORM snowflake_ids_internal.as_owner(sequence, format('ALTER SEQUENCE %s OWNED BY %s.%I', sequence_name,
            snowflake_ids_internal.qualified_name(relation), attribute));
    END IF;
    -- A sequence that had a narrower type would count in another node's range.
    IF is_wide AND (SELECT s.seqmin NOT BETWEEN numbers.first AND numbers.last FROM pg_sequence s WHERE s.seqrelid = sequence) THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
        sequence := NULL;
    END IF;
    IF kind COLLATE "C" = 'identity' THEN
        PERFORM snowflake_ids_internal.restore_identity(relation, attribute, highest, false, sequence, options);
        RETURN;
    END IF;
    sequence := coalesce(sequence, snowflake_ids_internal.create_sequence(relation, attribute, sequence_name, options));
    -- For narrower types, Citus lets workers give no numbers, because two workers would give the same numbers.
    PERFORM snowflake_ids_internal.set_default(relation, attribute,
        format('SET DEFAULT %s(%L::regclass)', CASE WHEN is_wide THEN 'nextval' ELSE 'worker_nextval' END, sequence::oid));
    PERFORM snowflake_ids_internal.advance_sequence(sequence, highest);
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
        -- Citus keeps a worker's narrower sequences at their maximum. Such a sequence gives no numbers, bound or not.
        CONTINUE WHEN (SELECT s.seqtypid <> 'bigint'::regtype FROM pg_sequence s WHERE s.seqrelid = owned);
        IF (SELECT o.message FROM snowflake_ids_internal.sequence_obstacle(owned) o) IS NULL THEN
            PERFORM snowflake_ids_internal.lock_relation(owned);
            SELECT * INTO terms FROM pg_sequence s WHERE s.seqrelid = owned;
            reached := snowflake_ids_internal.sequence_reach(snowflake_ids_internal.highest_number(owned), terms.seqincrement);
            -- The sequence is moved before it is bound, because a restart of a bound sequence restarts the tag.
            PERFORM snowflake_ids_internal.sequence_put(owned, terms.seqmax, true);
            PERFORM snowflake_ids_internal.sequence_record(owned, bind_own.tag, reached, bind_own.generator);
        ELSE
            drops := true;
        END IF;
    END LOOP;
    PERFORM snowflake_ids_internal.drop_sequences(relation, attribute) WHERE drops;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.tell_replaced_defaults(relation regclass, attribute name, expression text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    member regclass;
    old text;
BEGIN
    FOR member, old IN SELECT b, snowflake_ids_internal.default_of(b, attribute)
        FROM snowflake_ids_internal.table_and_below(relation) b
    LOOP
        IF snowflake_ids_internal.kind_of_default(old) IS NOT NULL THEN
            PERFORM snowflake_ids_internal.tell_tag_stays(old) WHERE old <> expression COLLATE "C";
        ELSIF old IS NOT NULL AND NOT EXISTS (SELECT FROM snowflake_ids_internal.sequences_of(relation, attribute) s
            WHERE s.owner IS NOT NULL AND old = format('nextval(%L::regclass)', s.sequence)) THEN
            RAISE NOTICE 'default % of column "%" of relation "%" is replaced', old, attribute, member;
        END IF;
    END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.tell_shared_tag(relation regclass, attribute name, tag text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other regclass;
    other_attribute name;
BEGIN
    SELECT c.relation, c.attribute INTO other, other_attribute FROM snowflake_ids_internal.columns_of_tag(tag) c
    WHERE c.relation NOT IN (SELECT snowflake_ids_internal.table_and_below(tell_shared_tag.relation))
        OR c.attribute <> tell_shared_tag.attribute COLLATE "C" LIMIT 1;
    IF FOUND THEN
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" shares its segment tag with column "%s" of relation "%s"',
                attribute, relation, other_attribute, other),
            HINT = 'For ids of its own, attach it with a tag of another name.';
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.attach_shared(relation regclass, attribute name, shared regclass, kind text, tag text,
    generator text, sequence text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    bound snowflake_ids.sequence_binding;
    highest bigint;
    most bigint;
    former record;
    holders text;
BEGIN
    PERFORM snowflake_ids_internal.sequence_check_owned(shared);
    PERFORM snowflake_ids_internal.lock_relation(shared);
    PERFORM snowflake_ids_internal.check_shared(relation, attribute, shared, kind, tag, generator, sequence);
    SELECT least(snowflake_ids_internal.column_maximum(relation, attribute), min(o.most)) INTO most
    FROM snowflake_ids_internal.others_of_sequence(shared, relation, attribute) o;
    SELECT * INTO bound FROM snowflake_ids.sequence_binding b
    WHERE b.sequence = shared AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(shared));
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'searching for the highest id');
    highest := snowflake_ids_internal.highest_id(relation, attribute);
    IF bound.sequence IS NULL THEN
        -- The columns' types now limit the numbers, not the sequence's own type.
        SELECT * INTO former FROM snowflake_ids_internal.sequence_make_fit(shared);
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
        MESSAGE = format('sequence "%s" gives the ids, and column "%s" of relation "%s" keeps its default', shared, attribute, relation),
        DETAIL = 'The column is not its only user.';
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_defaults() RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT md5(coalesce(string_agg(format('%s.%s: %s', p.logicalrelid, a.attname, w.written), E'\n'
            ORDER BY p.logicalrelid::text COLLATE "C", a.attname), ''))
        FROM pg_catalog.pg_dist_partition AS p JOIN pg_attribute AS a ON a.attrelid = p.logicalrelid AND a.atthasdef,
            LATERAL (SELECT snowflake_ids_internal.default_of(p.logicalrelid, a.attname)) AS w (written)
        WHERE snowflake_ids_internal.kind_of_default(w.written) IS NOT NULL);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_definitions() RETURNS jsonb
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object('generators', (SELECT coalesce(jsonb_agg(g), '[]') FROM snowflake_ids.generator AS g),
        'rights', (SELECT coalesce(jsonb_agg(jsonb_build_array(r.tag, p.grantee::text, p.privileges) ORDER BY r.tag, p.grantee::text COLLATE "C"), '[]')
            FROM snowflake_ids.segment_restricted AS r LEFT JOIN snowflake_ids.segment_privilege AS p ON p.tag = r.tag),
        'series', (SELECT coalesce(jsonb_agg(to_jsonb(s) || jsonb_build_object('privileges',
                (SELECT coalesce(jsonb_agg(jsonb_build_array(p.grantee::text, p.privileges) ORDER BY p.grantee::text COLLATE "C"), '[]')
                FROM snowflake_ids.series_privilege AS p WHERE p.series = s.id)) ORDER BY s.name), '[]')
            FROM snowflake_ids.series AS s WHERE s.kind <> 'gapless' OR s.scope = 'shard'))
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_report() RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT json_build_object('datacenter_id', s.datacenter_id, 'worker_id', s.worker_id, 'layout', s.layout, 'state', s.state,
        'identity', coalesce(r.identity, snowflake_ids_internal.registry_identity()),
        'timeline', coalesce(r.timeline, snowflake_ids_internal.registry_timeline()::text), 'registry', r.server,
        'leased_from', CASE WHEN s.scope = 'this server only' THEN s.leased_from END,
        'defaults', snowflake_ids_internal.citus_defaults(),
        'generators', (SELECT md5(coalesce(string_agg(format('%s: %s', g.name, g.layout), E'\n' ORDER BY g.name), ''))
            FROM snowflake_ids.generator AS g),
        'rights', md5((d.defined -> 'rights')::text),
        -- Rights on a distributed series are left out, because Citus propagates them.
        'series', (SELECT md5(coalesce(string_agg((CASE WHEN w ->> 'scope' = 'shard' THEN w - '{step,max_step,privileges}'::text[]
                ELSE w - '{id,step,max_step,description}'::text[] END)::text, E'\n'), ''))
            FROM jsonb_array_elements(d.defined -> 'series') AS w),
        'failure', (SELECT json_build_object('server', h.server, 'at', h.last_failure, 'error', left(h.error, 1000))
            FROM snowflake_ids.registry_status AS h WHERE h.state = 'failing' ORDER BY h.position LIMIT 1))::text
    FROM snowflake_ids.status AS s, snowflake_ids_internal.citus_definitions() AS d (defined),
         (SELECT string_agg(identity, ',' ORDER BY position) AS identity, string_agg(timeline::text, ',' ORDER BY position) AS timeline,
                 string_agg(server, ',' ORDER BY position) AS server
          FROM snowflake_ids.registry_server) AS r
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_tell(command text, on_workers boolean) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    failed jsonb;
BEGIN
    IF on_workers THEN
        SELECT jsonb_object_agg(n.node_id, left(coalesce(w.result, 'no answer'), 1000)) INTO failed
        FROM pg_catalog.run_command_on_workers(command) AS w
            JOIN snowflake_ids_internal.citus_nodes() AS n ON (n.node_name, n.node_port) = (w.nodename, w.nodeport)
        WHERE w.success IS NOT TRUE OR w.result NOT IN ('', 'DO');
    ELSE
        SELECT jsonb_object_agg(c.nodeid, left(coalesce(c.result, 'no answer'), 1000)) INTO failed
        FROM pg_catalog.run_command_on_coordinator(command) AS c WHERE c.success IS NOT TRUE;
    END IF;
    RETURN coalesce(failed, '{}');
END
$$;
CREATE OR REPLACE PROCEDURE snowflake_ids.use_citus(server name DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    /* The limit of the wait for worker ids. */
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
            DETAIL = 'The registry is set on all nodes, and background workers there connect to it as the owner of the extension.',
            HINT = 'CALL snowflake_ids.use_citus() as a superuser.';
    END IF;
    PERFORM snowflake_ids_internal.citus_check();
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'cannot set the registry of a cluster at isolation level "%"', current_setting('transaction_isolation') USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'The transaction''s snapshot would not show changes that nodes make in the meantime.',
            HINT = 'Run the CALL outside of a transaction block, with default_transaction_isolation = ''read committed''.';
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_dist_local_group AS g WHERE g.groupid <> 0) THEN
        SELECT format(': %s, port %s', n.node_name, n.node_port) INTO place FROM snowflake_ids_internal.citus_nodes() AS n WHERE n.group_id = 0;
        RAISE EXCEPTION 'this database is a worker of a Citus cluster' USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'The coordinator sets the registry of all nodes of its cluster.',
            HINT = format('CALL snowflake_ids.use_citus() on the coordinator%s.', place);
    ELSIF NOT EXISTS (SELECT FROM snowflake_ids_internal.citus_nodes() AS n WHERE n.group_id = 0) THEN
        RAISE EXCEPTION 'the workers of this Citus cluster do not know where the coordinator is' USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'pg_dist_node has no row of group 0.',
            HINT = 'Run SELECT citus_set_coordinator_host(''host'', port), with a host name by which workers reach this server.';
    ELSIF snowflake_ids_internal.registry_is_busy() THEN
        RAISE EXCEPTION 'cannot change the registry in a transaction that has changed segment tags' USING
            ERRCODE = 'active_sql_transaction',
            HINT = 'Commit this transaction first, and then CALL snowflake_ids.use_citus().';
    ELSIF (SELECT e.xmin = pg_current_xact_id_if_assigned()::xid FROM pg_extension AS e WHERE e.extname = 'snowflake_ids') THEN
        -- Sessions on the workers would wait for Citus' own sessions. Citus' sessions create the extension on the workers, and
        -- end only with this transaction.
        RAISE EXCEPTION 'cannot set the registry of a cluster in the transaction that creates the extension' USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'The other nodes do not see the extension yet.',
            HINT = 'Commit this transaction first, and then CALL snowflake_ids.use_citus().';
    END IF;
    SELECT string_agg(r.server, ',' ORDER BY r.position) INTO used FROM snowflake_ids.registry_server AS r;
    IF outside THEN
        -- Citus copies foreign servers to all nodes, but not user mappings. Mappings of other roles are ignored.
        SELECT coalesce(m.umoptions, '{}') INTO options
        FROM pg_user_mappings AS m JOIN pg_class AS c ON c.oid = 'snowflake_ids.segment'::regclass
        WHERE m.srvname = server COLLATE "C" AND m.umuser IN (c.relowner, 0) ORDER BY m.umuser DESC LIMIT 1;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'foreign server "%" does not exist, or has no user mapping for the owner of the extension', server USING
                ERRCODE = 'undefined_object',
                HINT = 'On the coordinator, run CREATE SERVER ... FOREIGN DATA WRAPPER postgres_fdw, and CREATE USER MAPPING for the owner of the table '
                       'snowflake_ids.segment. Or CALL snowflake_ids.use_citus() without an argument: '
                       'the coordinator is then the registry.';
        END IF;
    ELSIF used IS NOT NULL THEN
        RAISE EXCEPTION 'the coordinator takes its own ids from registry "%"', used USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'A database that uses a registry cannot itself be a registry.',
            HINT = format('To share that registry, CALL snowflake_ids.use_citus(%L). '
                'To make the coordinator the registry, first SELECT snowflake_ids.use_local_registry().', used);
    END IF;
    FOR place IN SELECT format('%s (%s:%s)', n.node_id, n.node_name, n.node_port) FROM snowflake_ids_internal.citus_nodes() AS n
        WHERE NOT n.is_active
    LOOP
        RAISE NOTICE 'skipping node %, which is not active', place USING
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
    -- Nodes would change to another registry one after another. A node that has changed could get the worker id or the numbers
    -- of a node that has not.
    SELECT string_agg(format('node %s (%s:%s): %s', n.node_id, n.node_name, n.node_port, left(r.result, 1000)), E'\n' ORDER BY n.node_id) INTO old
    FROM snowflake_ids_internal.citus_nodes() AS n
        JOIN pg_catalog.run_command_on_all_nodes(format($command$
            SELECT coalesce(pg_catalog.string_agg(pg_catalog.format('registry "%%s"', r.server), ', ' ORDER BY r.position)
                            FILTER (WHERE r.identity OPERATOR(pg_catalog.<>) %L::pg_catalog.text), '')
            FROM snowflake_ids.registry_server AS r$command$, identity)) AS r ON r.nodeid = n.node_id
    WHERE n.is_active AND r.success AND r.result <> '';
    IF old IS NOT NULL THEN
        RAISE EXCEPTION 'some nodes of the cluster use another registry' USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = old,
            HINT = 'Stop all inserts, SELECT snowflake_ids.use_local_registry() on each of these nodes, '
                   'and CALL snowflake_ids.use_citus again before inserts resume.';
    END IF;

    -- The workers lack this extension if it was created on the coordinator before the extension citus.
    SELECT e.extversion INTO version FROM pg_extension AS e WHERE e.extname = 'snowflake_ids';
    told := snowflake_ids_internal.citus_tell(format($command$DO $do$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake_ids') THEN
            PERFORM pg_catalog.set_config('citus.enable_ddl_propagation', 'off', true);
            CREATE EXTENSION snowflake_ids VERSION %L;
        END IF;
    END$do$ $command$, version), true);

    IF outside THEN
        -- A worker without this function would log the statement, which contains the password.
        SELECT string_agg(format('node %s (%s:%s)', n.node_id, n.node_name, n.node_port), E'\n' ORDER BY n.node_id) INTO old
        FROM pg_catalog.run_command_on_workers(
                $command$SELECT pg_catalog.to_regprocedure('snowflake_ids_internal.citus_map(pg_catalog.name, pg_catalog.text[])') IS NULL$command$) AS w
            JOIN snowflake_ids_internal.citus_nodes() AS n ON (n.node_name, n.node_port) = (w.nodename, w.nodeport)
        WHERE w.success AND w.result <> 'f';
        IF old IS NOT NULL THEN
            RAISE EXCEPTION 'nodes of the cluster do not have this version of the extension' USING
                ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = old,
                HINT = 'Install the same version on these nodes, run ALTER EXTENSION snowflake_ids UPDATE there, and CALL snowflake_ids.use_citus() again.';
        END IF;
        -- These settings keep the statement out of the log, whatever its errors or duration. They take effect before the
        -- function is called.
        mapped := snowflake_ids_internal.citus_tell(format($command$SELECT CASE WHEN pg_catalog.set_config('log_min_error_statement', 'panic', false) IS NOT NULL
            AND pg_catalog.set_config('log_min_duration_statement', '-1', false) IS NOT NULL
            AND pg_catalog.set_config('log_min_duration_sample', '-1', false) IS NOT NULL
            AND pg_catalog.set_config('log_transaction_sample_rate', '0', false) IS NOT NULL
            THEN snowflake_ids_internal.citus_map(%L, %L) END$command$, server, options), true);
        -- Each node commits in its own transaction, so that other nodes see the change before this transaction ends.
        told := told || snowflake_ids_internal.citus_tell(
            format('SELECT snowflake_ids_internal.citus_run(%L)',
            format('SELECT snowflake_ids_internal.citus_use(%L, %L, %L)', server, identity, timeline)), false);
    ELSE
        -- A new registry knows no leases. The nodes' leases are committed before any node asks for a lease, and stay if this
        -- transaction fails.
        SELECT jsonb_agg(r.result::jsonb || jsonb_build_object('host', n.node_name, 'port', n.node_port)) INTO held
        FROM pg_catalog.run_command_on_all_nodes('SELECT snowflake_ids_internal.worker_held()') AS r
            JOIN snowflake_ids_internal.citus_nodes() AS n ON n.node_id = r.nodeid
        WHERE r.success AND r.result <> '';
        held := snowflake_ids_internal.citus_tell(format('SELECT snowflake_ids_internal.citus_hold(%L)', coalesce(held, '[]')), false);
        IF held <> '{}' THEN
            RAISE EXCEPTION 'could not record the worker ids of the cluster''s nodes' USING
                ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = (SELECT string_agg(format('node %s: %s', h.key, h.value), E'\n' ORDER BY h.key) FROM jsonb_each_text(held) AS h),
                HINT = 'Correct the cause on each of these nodes, and CALL snowflake_ids.use_citus() again.';
        END IF;
    END IF;
    -- The other nodes join the registry only after the coordinator has joined, and so gives no ids of its own any more.
    IF NOT EXISTS (SELECT FROM snowflake_ids_internal.citus_nodes() AS n WHERE n.group_id = 0 AND told ? n.node_id::text) THEN
        told := told || snowflake_ids_internal.citus_tell(format('SELECT snowflake_ids_internal.citus_run(%L)',
            format('SELECT snowflake_ids_internal.citus_use(%L, %L, %L)', coalesce(server, 'citus_coordinator'), identity, timeline)), true);
    END IF;
    told := told || coalesce(mapped, '{}');
    -- Defaults on workers may name generators and series, so these are copied. Rights are copied, too, so that a tag that is
    -- restricted here is restricted on the workers.
    told := snowflake_ids_internal.citus_tell(
        format('SELECT snowflake_ids_internal.citus_take(%L)', snowflake_ids_internal.citus_definitions()), true) || told;

    -- The registry usually leases worker ids within about a second.
    LOOP
        -- Each node first issues an id, because a server acquires its worker id when it issues its first id.
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
            RAISE EXCEPTION '% of % nodes of the cluster cannot issue unique ids', cardinality(failed), nodes USING
                ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = array_to_string(failed, E'\n'),
                HINT = 'Correct the cause on each of these nodes, and CALL snowflake_ids.use_citus() again; the other nodes are not affected.';
        END IF;
        PERFORM pg_sleep(0.5);
    END LOOP;
    IF NOT outside AND NOT EXISTS (SELECT FROM snowflake_ids_internal.citus_nodes() AS n WHERE NOT n.is_active) THEN
        -- All nodes have joined, and each kept its worker id.
        UPDATE snowflake_ids.worker_lease AS w SET former_until = clock_timestamp() WHERE w.former_until > clock_timestamp();
    END IF;
    RAISE NOTICE '% nodes use one registry, each with a worker id of its own', nodes USING
        DETAIL = format('Worker ids: %s.', workers);
END
$$;
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
    -- The layout is stored in full, so that a dump gives the same generator on another server.
    own_layout text;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    own_layout := snowflake_ids_internal.server_layout();
    PERFORM snowflake_ids_internal.generator_check(name, coalesce(layout, own_layout), modulus, remainder, sequence_start, cache);
    -- Without this lock, two concurrent calls could both take the last free place.
    LOCK TABLE snowflake_ids.generator IN SHARE ROW EXCLUSIVE MODE;
    PERFORM snowflake_ids_internal.generator_taken(name) FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C";
    INSERT INTO snowflake_ids.generator (name, layout, modulus, remainder, sequence_start, cache)
    VALUES (name, coalesce(layout, own_layout), modulus, remainder, sequence_start, cache);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.generator_keep(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C" FOR KEY SHARE;
    PERFORM snowflake_ids_internal.generator_unknown(name) WHERE NOT FOUND;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.generator_check_unused(name text, change text, bound boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    argument text := format('(''%s''', replace(name COLLATE "C", '''', ''''''));
    users text;
BEGIN
    SELECT string_agg(u.text, E'\n' ORDER BY u.text COLLATE "C") INTO users
    FROM (
        SELECT format('default value for column %s of table %s uses the generator', quote_ident(a.attname), f.adrelid::regclass)
        FROM pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
            JOIN pg_class AS c ON c.oid = f.adrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
        WHERE EXISTS (SELECT FROM (VALUES ('snowflake_nextval', 'text'), ('snowflake_id', 'text'), ('snowflake_id', 'unknown'),
                ('snowflake_uuid', 'text'), ('snowflake_uuid_text', 'text')) AS call (called, type)
            WHERE strpos(pg_get_expr(f.adbin, f.adrelid),
                    concat(called, argument, CASE type WHEN 'text' THEN '::text' END, ')') COLLATE "C") > 0
                AND EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                    AND d.refclassid = 'pg_proc'::regclass
                    AND d.refobjid = format('pg_catalog.%I(%I)', called, type)::regprocedure))
        UNION ALL
        SELECT format('sequence %s is bound to the generator', b.sequence)
        FROM snowflake_ids.sequence_binding AS b
        WHERE bound AND b.generator = name COLLATE "C" AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence))
            AND EXISTS (SELECT FROM pg_sequence AS s WHERE s.seqrelid = b.sequence)
    ) AS u (text);
    IF users IS NOT NULL THEN
        RAISE dependent_objects_still_exist USING
            MESSAGE = format('cannot %s generator "%s" because other objects depend on it', left(change, 16), left(name, 128)),
            DETAIL = left(users, 4000),
            HINT = 'First detach these columns or attach them to another generator, and unbind these sequences.';
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.generator_drop(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C" FOR UPDATE;
    PERFORM snowflake_ids_internal.generator_unknown(name) WHERE NOT FOUND;
    PERFORM snowflake_ids_internal.generator_check_unused(name, 'drop', true);
    DELETE FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C";
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.administration_objects(part text) RETURNS TABLE (object text, privileges text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT o.object, o.privileges
    FROM (VALUES
        (part, 'SCHEMA snowflake_ids, snowflake_ids_internal', 'USAGE'),
        ('tags', 'FUNCTION snowflake_ids.segment_create, snowflake_ids.stats_reset', 'EXECUTE'),
        ('tags', (SELECT 'FUNCTION ' || string_agg('snowflake_ids_internal.' || f, ', ') FROM regexp_split_to_table(
            'advance_sequence as_owner attach_error attach_here attach_in_session attach_shared attach_steps attach_worker base_type
            bind_own bind_sequences bounded_lock_timeout call_with candidate_columns change_group check_alone check_column
            check_coordinator check_kind check_may_commit check_others_of_sequence check_registered check_room_above check_shared
            check_snowflake_above check_table check_tables check_unnamed_tag check_uses check_worker check_workers citus_keys
            citus_run citus_run_on_workers column_maximum column_type columns_of_tag columns_to_widen create_sequence
            create_sequence_for default_of default_tag detach_steps detach_worker detach_workers discard_received drop_identities
            drop_sequences former_identities free_sequence_name generator_keep group_error highest_id highest_number
            highest_of_group highest_of_tag id_default identity_sequence in_transaction_block is_adopted_schema is_default_of
            is_distributed kept_sequence kind_of_default lock_relation lock_table may_move_tag may_take_ids node_group
            numbers_of_group others_of_sequence progress_end progress_enter progress_tables qualified_name registries_in_use
            registry_identity registry_seed restore_identities restore_identity restore_sequence resume_sequences schema_plan
            seed_tag sequence_bind sequence_check_layout sequence_check_owned sequence_check_redirects sequence_course
            sequence_erase sequence_is_bound sequence_make_fit sequence_make_former sequence_move sequence_obstacle
            sequence_position sequence_put sequence_reach sequence_record sequence_remember sequence_resume_above sequence_unbind
            sequence_users sequences_of set_default set_rights set_sequence shared_sequence table_and_below tag_of_default tell_done
            tell_replaced_defaults tell_shared_tag tell_tag_stays type_maximum unbind_own unbind_sequences', '[[:space:]]+') AS f), 'EXECUTE'),
        ('tags', 'TABLE snowflake_ids.received, snowflake_ids.sequence_binding', 'SELECT'),
        ('tags', 'TABLE snowflake_ids.segment, snowflake_ids.segment_restricted, snowflake_ids.segment_privilege',
            'SELECT, INSERT, UPDATE, DELETE'),
        ('generators', 'FUNCTION snowflake_ids.generator_create, snowflake_ids.generator_alter, snowflake_ids.generator_drop, '
            'snowflake_ids.layout_change', 'EXECUTE'),
        ('generators', 'FUNCTION snowflake_ids_internal.generator_taken, '
            'snowflake_ids_internal.generator_check_unused, snowflake_ids_internal.server_layout, '
            'snowflake_ids_internal.layout_change_check, snowflake_ids_internal.layout_change_own', 'EXECUTE'),
        ('generators', 'TABLE snowflake_ids.sequence_binding', 'SELECT'),
        ('generators', 'TABLE snowflake_ids.generator', 'INSERT, UPDATE, DELETE'),
        -- A role that restores a dump with triggers needs the right to call series_fill.
        ('series', 'FUNCTION snowflake_ids.series_create, snowflake_ids_internal.series_fill', 'EXECUTE'),
        ('series', 'TABLE snowflake_ids.series, snowflake_ids.series_bigint, snowflake_ids.series_text, snowflake_ids.series_uuid, '
            'snowflake_ids.series_privilege', 'SELECT, INSERT, UPDATE, DELETE'),
        ('registry', 'FUNCTION snowflake_ids.use_registry, snowflake_ids.use_local_registry, snowflake_ids.worker_release, '
            'snowflake_ids.worker_release_former', 'EXECUTE'),
        ('registry', 'TABLE snowflake_ids.registry_server, snowflake_ids.received, snowflake_ids.worker_lease', 'SELECT'),
        ('state', 'FUNCTION snowflake_ids.state_reset, snowflake_ids.state_adopt, snowflake_ids.clock_accept', 'EXECUTE')
    ) AS o (of_part, object, privileges)
    WHERE o.of_part = administration_objects.part COLLATE "C";
    IF part IS NULL OR part COLLATE "C" NOT IN ('tags', 'generators', 'series', 'registry', 'state') THEN
        RAISE EXCEPTION 'unrecognized part of the administration: "%"', left(coalesce(part, 'null'), 128) USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'The parts are tags, generators, series, registry and state.';
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM snowflake_ids.segment_privilege AS p WHERE p.tag = OLD.tag;
        DELETE FROM snowflake_ids.segment_restricted AS r WHERE r.tag = OLD.tag;
    ELSE
        UPDATE snowflake_ids.segment_privilege AS p SET tag = NEW.tag WHERE p.tag = OLD.tag;
        UPDATE snowflake_ids.segment_restricted AS r SET tag = NEW.tag WHERE r.tag = OLD.tag;
        UPDATE snowflake_ids.sequence_binding AS b SET tag = NEW.tag WHERE b.tag = OLD.tag;
    END IF;
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_check_home() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    servers text;
    first name;
    place text;
    was_home boolean := NOT EXISTS (SELECT FROM snowflake_ids.registry_server);
BEGIN
    -- The lock keeps the answer valid: use_registry waits for this transaction, and then copies the changed rows.
    LOCK TABLE snowflake_ids.registry_server IN ROW EXCLUSIVE MODE;
    SELECT string_agg(quote_ident(server), ', ' ORDER BY position), (array_agg(server ORDER BY position))[1]
    INTO servers, first FROM snowflake_ids.registry_server;
    IF servers IS NOT NULL AND was_home THEN
        RAISE EXCEPTION 'this database has meanwhile begun to use registry %', servers USING
            ERRCODE = 'serialization_failure',
            DETAIL = 'Before that, the segment tags were kept in this database.',
            HINT = 'Try again.';
    ELSIF servers IS NOT NULL THEN
        -- The registry is on a foreign server, or on the coordinator of a Citus cluster.
        IF first COLLATE "C" = 'citus_coordinator' AND to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN
            SELECT format('host %s, port %s', n.nodename, n.nodeport) INTO place FROM pg_catalog.pg_dist_node AS n
            WHERE n.groupid = 0 ORDER BY n.nodeid LIMIT 1;
        ELSE
            SELECT string_agg(format('%s %s', o.option_name, o.option_value), ', ' ORDER BY o.option_name = 'port', o.option_name) INTO place
            FROM pg_foreign_server AS s, pg_options_to_table(s.srvoptions) AS o
            WHERE s.srvname = first COLLATE "C" AND o.option_name IN ('host', 'hostaddr', 'port') AND o.option_value <> '';
        END IF;
        RAISE EXCEPTION 'segment tags of this database are kept by registry %', servers USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Changes in this database would have no effect.',
            HINT = format('Connect to the registry%s, and make the change there.', coalesce(', at ' || left(place, 1000), ''));
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_raise(tag text, value bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reached bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        RETURN snowflake_ids_internal.segment_raise(tag, value);
    END IF;
    SELECT max(r.max_id) INTO reached FROM snowflake_ids.received AS r WHERE r.tag = sequence_raise.tag COLLATE "C";
    RETURN CASE WHEN reached >= value OR NOT snowflake_ids_internal.registry_seed(tag, value) THEN reached ELSE value END;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.has_workers() RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_node') IS NULL THEN
        RETURN false;
    END IF;
    RETURN EXISTS (SELECT FROM pg_catalog.pg_dist_node AS n WHERE n.groupid <> 0);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_restart(sequence oid, tag text, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    others text;
    way text;
BEGIN
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        others := 'It gives ids of segment tag "%s", which a registry gives to other servers, too.';
        way := 'To restart the tag, move it at the registry, with snowflake_ids.segment_set.';
    ELSIF snowflake_ids_internal.has_workers() THEN
        others := 'It gives ids of segment tag "%s", of which other nodes of this Citus cluster hold some.';
        way := 'To restart the tag, with no inserts meanwhile: SELECT snowflake_ids.segment_set(%1$L, 0, true), and on each other '
            'node SELECT snowflake_ids.segment_discard(%1$L).';
    ELSIF snowflake_ids_internal.sequence_tag_is_shared(sequence, tag) THEN
        others := 'Others take ids of segment tag "%s", too.';
        way := 'To restart the tag for all of them: SELECT snowflake_ids.segment_set(%L, 0, true).';
    ELSE
        PERFORM snowflake_ids_internal.segment_set(tag, highest, true);
        RETURN;
    END IF;
    RAISE NOTICE USING
        MESSAGE = format('sequence "%s" is not restarted', (SELECT c.relname FROM pg_class AS c WHERE c.oid = sequence)),
        DETAIL = format(others, tag),
        HINT = format(way, tag);
END
$$;
CREATE FUNCTION snowflake_ids_internal.sequence_obstacle(sequence regclass, only_lasting boolean DEFAULT false,
    OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    terms record;
BEGIN
    SELECT s.*, c.relpersistence INTO terms
    FROM pg_sequence AS s JOIN pg_class AS c ON c.oid = s.seqrelid WHERE s.seqrelid = sequence;
    IF terms.relpersistence = 't' THEN
        message := format('cannot bind temporary sequence "%s"', sequence);
        detail := 'It is dropped at the end of its session.';
        hint := 'Bind a permanent sequence.';
    ELSIF terms.seqincrement < 0 THEN
        message := format('cannot bind sequence "%s", which counts down', sequence);
        detail := format('Its increment is %s; ids count up.', terms.seqincrement);
        hint := format('Make it count up: ALTER SEQUENCE %s INCREMENT BY 1;', sequence);
    ELSIF only_lasting THEN
        RETURN;
    ELSIF terms.relpersistence = 'u' THEN
        message := format('cannot bind unlogged sequence "%s"', sequence);
        detail := 'A crash would set it back to numbers that it has given before.';
        hint := format('Make it durable first: ALTER SEQUENCE %s SET LOGGED;', sequence);
    ELSIF terms.seqtypid <> 'bigint'::regtype THEN
        message := format('sequence "%s" must be bigint', sequence);
        detail := format('The maximum of type %s is %s.', terms.seqtypid::regtype, snowflake_ids_internal.type_maximum(terms.seqtypid));
        hint := format('Widen it, and the columns that use it: ALTER SEQUENCE %s AS bigint;', sequence);
    ELSIF terms.seqcycle THEN
        message := format('cannot bind sequence "%s", which cycles', sequence);
        detail := 'Ids are never issued twice.';
        hint := format('Stop it from cycling: ALTER SEQUENCE %s NO CYCLE;', sequence);
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_make_fit(sequence regclass, OUT type regtype, OUT cycles boolean, OUT unlogged boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    change text := format('ALTER SEQUENCE %s ', snowflake_ids_internal.qualified_name(sequence));
BEGIN
    SELECT s.seqtypid, s.seqcycle, c.relpersistence = 'u' INTO type, cycles, unlogged
    FROM pg_sequence AS s JOIN pg_class AS c ON c.oid = s.seqrelid WHERE s.seqrelid = sequence;
    PERFORM snowflake_ids_internal.as_owner(sequence, change || 'AS bigint') WHERE type <> 'bigint'::regtype;
    PERFORM snowflake_ids_internal.as_owner(sequence, change || 'NO CYCLE') WHERE cycles;
    PERFORM snowflake_ids_internal.as_owner(sequence, change || 'SET LOGGED') WHERE unlogged;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_make_former(sequence regclass, type regtype, cycles boolean,
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
    IF number > snowflake_ids_internal.type_maximum(type_then) THEN
        RAISE NOTICE USING
            MESSAGE = format('sequence "%s" stays of type bigint', sequence),
            DETAIL = format('It was of type %s, and goes on at %s.', type_then, number);
    ELSIF type_then <> 'bigint'::regtype THEN
        PERFORM snowflake_ids_internal.as_owner(sequence, change || 'AS ' || type_then);
    END IF;
    PERFORM snowflake_ids_internal.as_owner(sequence, change || 'CYCLE') WHERE cycles;
    PERFORM snowflake_ids_internal.as_owner(sequence, change || 'SET UNLOGGED') WHERE unlogged;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.bind_sequence(sequence regclass, kind text DEFAULT 'snowflake', tag text DEFAULT NULL,
    generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
#variable_conflict use_variable
DECLARE
    obstacle record;
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
            DETAIL = 'Each node of the cluster has its own sequence for the table, and counts in its own range.',
            HINT = 'On the coordinator, attach the column with snowflake_ids.attach.';
    ELSIF snowflake_ids_internal.sequence_is_bound(sequence) THEN
        RAISE duplicate_object USING
            MESSAGE = format('sequence "%s" is already bound', sequence),
            DETAIL = (SELECT CASE WHEN b.generator IS NOT NULL THEN format('It gives ids of generator "%s".', b.generator)
                WHEN b.tag IS NULL THEN 'It gives snowflake ids.'
                ELSE format('It gives ids of segment tag "%s".', b.tag) END
                FROM snowflake_ids.sequence_binding AS b WHERE b.sequence = bind_sequence.sequence),
            HINT = format('To bind the sequence to other ids, first SELECT snowflake_ids.unbind_sequence(%L);', sequence);
    END IF;
    SELECT * INTO obstacle FROM snowflake_ids_internal.sequence_obstacle(sequence);
    IF obstacle.message IS NOT NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = obstacle.message, DETAIL = obstacle.detail, HINT = obstacle.hint;
    END IF;
    IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
        tag := snowflake_ids_internal.default_tag(sequence);
        PERFORM snowflake_ids_internal.check_unnamed_tag(sequence, tag);
    END IF;
    PERFORM snowflake_ids_internal.sequence_bind(sequence, kind, tag, generator);
    -- Without a type, unbind_sequence would give the sequence the type of its column, which may be narrower.
    PERFORM snowflake_ids_internal.sequence_remember(b.sequence, 'bigint'::regtype, b.cycles, b.unlogged, b.identity::text)
    FROM snowflake_ids.sequence_binding AS b WHERE b.sequence = bind_sequence.sequence AND b.type IS NULL;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.unbind_sequence(sequence regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET citus.enable_ddl_propagation = off AS $$
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
            HINT = 'See snowflake_ids.sequence_status for the bound sequences.';
    END IF;
    PERFORM snowflake_ids_internal.sequence_unbind(sequence, 0);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.series_attach(relation regclass, "column" name, series text, key_column name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off
SET row_security = off AS $$
#variable_conflict use_variable
DECLARE
    column_name  name := "column";
    table_name   text := relation::text;
    of_table     pg_class;
    of_column    pg_attribute;
    of_key       pg_attribute;
    terms        record;
    column_type  oid;
    key_name     text;
    is_counted   boolean;
    member       record;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF relation IS NULL OR column_name IS NULL OR key_column IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'relation, column and key_column must not be null';
    ELSIF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot attach a column to a series in a %s transaction', current_setting('transaction_isolation')),
            DETAIL = 'The transaction''s snapshot may lack the newest rows.',
            HINT = 'Use a transaction of isolation level read committed.';
    END IF;
    SELECT * INTO of_table FROM pg_class AS c WHERE c.oid = relation;
    IF NOT FOUND THEN
        RAISE undefined_table USING MESSAGE = format('relation with OID %s does not exist', relation::oid);
    ELSIF of_table.relkind NOT IN ('r', 'p') THEN
        RAISE wrong_object_type USING MESSAGE = format('%s is not a table', relation),
            DETAIL = 'Only columns of ordinary and partitioned tables can be attached.';
    ELSIF NOT pg_has_role(of_table.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', relation);
    END IF;
    -- The lock keeps other sessions from inserting rows and from renaming the table.
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', table_name);
    IF relation::text <> table_name OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation AND c.relowner = of_table.relowner) THEN
        RAISE serialization_failure USING MESSAGE = format('table %s was changed meanwhile', table_name), HINT = 'Try again.';
    END IF;
    SELECT * INTO terms FROM snowflake_ids_internal.series_to_attach(series, of_table.relowner);

    SELECT * INTO of_column FROM pg_attribute AS a
    WHERE a.attrelid = relation AND a.attname = column_name COLLATE "C" AND a.attnum > 0 AND NOT a.attisdropped;
    SELECT * INTO of_key FROM pg_attribute AS a
    WHERE a.attrelid = relation AND a.attname = key_column COLLATE "C" AND a.attnum > 0 AND NOT a.attisdropped;
    IF of_column.attnum IS NULL OR of_key.attnum IS NULL THEN
        RAISE undefined_column USING MESSAGE = format('column "%s" of table %s does not exist',
            CASE WHEN of_column.attnum IS NULL THEN column_name ELSE key_column END, relation);
    END IF;
    column_type := of_column.atttypid;
    key_name := format_type(snowflake_ids_internal.base_type(of_key.atttypid), NULL);
    IF of_column.attgenerated <> '' OR of_column.attidentity <> '' THEN
        RAISE wrong_object_type USING
            MESSAGE = format('column "%s" of table %s is %s', column_name, relation,
                CASE WHEN of_column.attgenerated <> '' THEN 'generated' ELSE 'an identity column' END),
            DETAIL = 'The server fills it by itself.',
            HINT = CASE WHEN of_column.attgenerated <> '' THEN 'Choose a plain column.'
                ELSE format('First drop the identity: ALTER TABLE %s ALTER COLUMN %s DROP IDENTITY;', relation, quote_ident(column_name)) END;
    ELSIF of_key.attgenerated <> '' THEN
        RAISE wrong_object_type USING
            MESSAGE = format('key column "%s" of table %s is generated', key_column, relation),
            DETAIL = 'The server computes its values after the trigger has run.',
            HINT = 'Choose a plain column.';
    ELSIF of_column.atthasdef THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of table %s has a default', column_name, relation),
            DETAIL = 'The trigger fills only nulls, and the default would fill the column before the trigger runs.',
            HINT = format('First drop the default: ALTER TABLE %s ALTER COLUMN %s DROP DEFAULT;', relation, quote_ident(column_name));
    ELSIF of_column.attnum = of_key.attnum THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('column "%s" cannot be its own key', column_name),
            HINT = 'Name another column as the key. Each value of the key column has numbers of its own.';
    ELSIF column_type NOT IN ('int8'::regtype, 'int4'::regtype, 'int2'::regtype, 'text'::regtype, 'varchar'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column "%s" of table %s is of type %s', column_name, relation, format_type(column_type, of_column.atttypmod)),
            DETAIL = 'A series fills columns of type bigint, integer or smallint with the number, and columns of type text or varchar with the formatted number.';
    ELSIF terms.max_value > (CASE column_type WHEN 'int4'::regtype THEN 2147483647 WHEN 'int2'::regtype THEN 32767 ELSE 9223372036854775807 END) THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('column "%s" of type %s cannot hold all numbers of series "%s"', column_name, format_type(column_type, NULL), left(series, 128)),
            DETAIL = format('Its max_value is %s.', terms.max_value),
            HINT = 'Lower max_value with snowflake_ids.series_alter, or change the column to bigint.';
    ELSIF terms.key_type COLLATE "C" <> (CASE WHEN key_name COLLATE "C" IN ('smallint', 'integer', 'bigint') THEN 'bigint'
            WHEN key_name COLLATE "C" IN ('text', 'character varying') THEN 'text' ELSE key_name END) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('key column "%s" of table %s is of type %s', key_column, relation, key_name),
            DETAIL = format('Keys of series "%s" are of type %s.', left(series, 128), terms.key_type),
            HINT = 'Choose another column, or a series whose keys are of this type.';
    ELSIF EXISTS (SELECT FROM pg_partitioned_table AS p WHERE p.partrelid = relation AND of_column.attnum = ANY (p.partattrs)) THEN
        RAISE feature_not_supported USING
            MESSAGE = format('column "%s" of table %s is part of its partition key', column_name, relation),
            DETAIL = 'The trigger would move rows to another partition.';
    ELSIF snowflake_ids_internal.series_trigger_of(relation, column_name) IS NOT NULL THEN
        RAISE duplicate_object USING
            MESSAGE = format('column "%s" of table %s is attached to a series already', column_name, relation),
            HINT = 'Detach the column first with snowflake_ids.series_detach.';
    END IF;

    -- Raises the counters above the column's numbers. This is impossible for texts, and for numbers that restart each period,
    -- because they do not show their period. Each table is read separately, because policies and indexes contain code of the
    -- table's owner. Such code must not run or be planned with another role's rights.
    is_counted := column_type IN ('int8'::regtype, 'int4'::regtype, 'int2'::regtype) AND NOT terms.is_dated;
    FOR member IN
        WITH RECURSIVE below (oid) AS (
            SELECT relation::oid
            UNION
            SELECT i.inhrelid FROM pg_inherits AS i JOIN below AS b ON i.inhparent = b.oid)
        SELECT c.oid::regclass AS name, c.relowner FROM below AS b JOIN pg_class AS c ON c.oid = b.oid WHERE c.relkind <> 'p' ORDER BY c.oid
    LOOP
        IF is_counted AND member.relowner = (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user) THEN
            EXECUTE format('SELECT count(snowflake_ids_internal.series_raise($1, t.key, t.highest)) FROM
                (SELECT %I::%s%s AS key, max(%I)::bigint AS highest FROM ONLY %s WHERE %I IS NOT NULL AND %I IS NOT NULL GROUP BY 1) AS t',
                key_column, terms.key_type, CASE terms.key_type WHEN 'text' THEN ' COLLATE "C"' ELSE '' END, column_name, member.name,
                key_column, column_name)
            USING series;
        ELSIF snowflake_ids_internal.as_owner(member.name,
                format('SELECT 1::bigint FROM ONLY %s WHERE %I IS NOT NULL LIMIT 1', member.name, column_name)) IS NULL THEN
            CONTINUE;
        ELSIF is_counted THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('table %s has rows with numbers', member.name),
                DETAIL = 'The series must continue above these numbers, and only the owner of the table may read them.',
                HINT = format('Grant UPDATE on the series to role %s, which owns the table. Then that role can call snowflake_ids.series_attach.',
                              quote_ident(pg_get_userbyid(member.relowner)));
        ELSE
            RAISE NOTICE 'series "%" does not start above the numbers in table %', left(series, 128), member.name USING
                DETAIL = 'The highest number cannot be determined if numbers restart or are stored as text.',
                HINT = 'Set each key with snowflake_ids.series_set before you insert rows.';
            EXIT;
        END IF;
    END LOOP;
    PERFORM snowflake_ids_internal.series_make_trigger(series, relation, column_name::text, key_column::text);
END
$$;
CREATE FUNCTION snowflake_ids_internal.highest_of_group(node_group int, relation regclass, attribute name, expression text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    numbers record := snowflake_ids_internal.numbers_of_group(node_group);
    above bigint := greatest(numbers.first, 0);
    tagged bigint := (SELECT snowflake_ids_internal.highest_of_tag(t) FROM snowflake_ids_internal.tag_of_default(expression) t
        WHERE t IS NOT NULL);
BEGIN
    RETURN greatest(CASE WHEN tagged > above AND tagged <= numbers.last THEN tagged END,
        (SELECT max(snowflake_ids_internal.as_owner(b, format('SELECT max(%1$I) FROM ONLY %2$s WHERE %1$I > %3$s::bigint AND %1$I <= %4$s::bigint',
            attribute, b, above, numbers.last))) FROM snowflake_ids_internal.table_and_below(relation) b));
END
$$;
CREATE OR REPLACE VIEW snowflake_ids.series_status WITH (security_barrier) AS
SELECT s.name, s.kind, s.key_type, c.keys, c.keys < 10000 AS all_keys_counted, s.start, s.max_value, s.reset, s.time_zone,
       s.format, s.restricted, s.description, s.step, s.max_step, s.sections
FROM snowflake_ids.series AS s CROSS JOIN LATERAL (
    SELECT CASE WHEN s.kind <> 'monotonic' THEN count(*) END AS keys FROM (
        SELECT 1 FROM snowflake_ids.series_bigint AS k WHERE k.series = s.id
        UNION ALL SELECT 1 FROM snowflake_ids.series_text AS k WHERE k.series = s.id
        UNION ALL SELECT 1 FROM snowflake_ids.series_uuid AS k WHERE k.series = s.id LIMIT 10000) AS k) AS c
WHERE snowflake_ids.has_series_privilege(s.name, 'SELECT');
REVOKE EXECUTE ON FUNCTION
    snowflake_ids_internal.check_others_of_sequence,
    snowflake_ids_internal.highest_of_group,
    snowflake_ids_internal.restore_identity
FROM PUBLIC;
DO $$
DECLARE
    holder text;
BEGIN
    FOR holder IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_proc AS p, aclexplode(p.proacl) AS a
        WHERE p.oid = 'snowflake_ids_internal.sequence_bind'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_ids_internal.check_others_of_sequence, '
            'snowflake_ids_internal.highest_of_group, '
            'snowflake_ids_internal.restore_identity, '
            'snowflake_ids_internal.columns_of_tag TO %s', holder);
    END LOOP;
END
$$;

/* The same with other words. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_refuse_below(tag text, value bigint, issued bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF value < issued THEN
        RAISE EXCEPTION 'value % is below issued ids of segment tag "%"', value, tag USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = format('Ids up to %s may be in use; continuing with %s would issue some of them again.',
                            issued, value + 1),
            HINT = format('Give %s or a higher value, or force => true if none of these ids is in use any more.', issued);
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_grant(tag text, role name, privileges text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grantee oid := snowflake_ids_internal.segment_grantee(role);
BEGIN
    IF snowflake_ids_internal.segment_restrict(tag) AND grantee <> 0 THEN
        RAISE NOTICE 'segment tag "%" is no longer open to every role', tag USING
            DETAIL = 'Roles now need privileges to use it.',
            HINT = format('To let every role use the tag again: SELECT snowflake_ids.segment_grant(%L, ''public'', ''USAGE'').', tag);
    END IF;
    PERFORM snowflake_ids_internal.segment_add_privileges(tag, grantee, privileges);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_revoke(tag text, role name, privileges text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grantee oid := snowflake_ids_internal.segment_grantee(role);
BEGIN
    IF grantee = 0 THEN
        PERFORM snowflake_ids_internal.segment_restrict(tag);
    ELSIF NOT EXISTS (SELECT FROM snowflake_ids.segment_restricted AS r WHERE r.tag = segment_revoke.tag COLLATE "C") THEN
        RAISE NOTICE 'segment tag "%" is open to every role', tag USING
            DETAIL = 'The USAGE privilege is not checked until the tag is restricted.',
            HINT = format('To restrict the tag: SELECT snowflake_ids.segment_revoke(%L, ''public'', ''ALL'').', tag);
    END IF;
    PERFORM snowflake_ids_internal.segment_remove_privileges(tag, grantee, privileges);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_manages_tags(function text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT has_function_privilege('snowflake_ids_internal.sequence_bind'::regproc, 'EXECUTE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for function %s', left(function, 32)),
            DETAIL = format('Role %s does not manage segment tags in this database.', quote_ident(current_user)),
            HINT = format('Ask the owner of the database or a superuser to run SELECT snowflake_ids.administration_grant(''tags'', %L).',
                current_user);
    END IF;
END
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
            MESSAGE = format('sequence "%s" is at the maximum of type bigint', sequence),
            DETAIL = 'No higher ids are left for the sequence. DROP EXTENSION, or a dump of a part of the database, leaves a bound sequence at this maximum.',
            HINT = format('If DROP EXTENSION or a dump caused this, SELECT setval(%L, number) with the highest number in use. Then bind the sequence again.',
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
                MESSAGE = format('sequence "%s" has issued numbers above the next snowflake id', sequence),
                DETAIL = format('The highest value is %s; %s returned %s.', highest, replace(expression COLLATE "C", '::text', ''), following),
                HINT = 'Bind the sequence with kind => ''segment''.';
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
    -- The sequence continues at a number that it would have reached by its own increment. For example, a sequence of odd
    -- numbers stays odd.
    number := terms.seqstart + greatest(0, ceil((snowflake_ids_internal.sequence_resume_above(highest, terms.seqincrement)::numeric
        + 1 - terms.seqstart) / terms.seqincrement)) * terms.seqincrement;
    IF number > terms.seqmax THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('maximum of sequence "%s" is below ids that it has given', sequence),
            DETAIL = format('Its maximum is %s; the highest id is %s.', terms.seqmax, highest),
            HINT = format('Raise the maximum: ALTER SEQUENCE %s MAXVALUE 9223372036854775807;', sequence);
    END IF;
    PERFORM snowflake_ids_internal.sequence_put(sequence, number::bigint, false);
    PERFORM snowflake_ids_internal.sequence_make_former(sequence, former.type, former.cycles, former.unlogged, number::bigint);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_make_sections(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    made bigint;
    series snowflake_ids.series;
BEGIN
    IF length(name) > 107 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'name of monotonic series is too long',
            DETAIL = format('The name has %s characters; the limit is 107, because the sections are named after the series.',
                            length(name)),
            HINT = 'Name the series after what it numbers, for example "messages".';
    END IF;
    SELECT s.* INTO series FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C";
    -- No role has rights on these tags, on any server. The rights on the series decide.
    INSERT INTO snowflake_ids.segment_restricted (tag) SELECT unnest(snowflake_ids_internal.series_sections(name, series.sections))
    ON CONFLICT DO NOTHING;
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        RETURN;
    END IF;
    PERFORM snowflake_ids_internal.check_registered();
    INSERT INTO snowflake_ids.segment (tag, max_id, step, max_step, description, start, max_value)
    SELECT t.tag, series.start - 1, series.step, series.max_step, 'of a monotonic series', series.start, series.max_value
    FROM unnest(snowflake_ids_internal.series_sections(name, series.sections)) AS t (tag)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    IF made <> series.sections THEN
        RAISE duplicate_object USING
            MESSAGE = format('segment tags of sections of series "%s" already exist', left(name, 128)),
            DETAIL = 'The sections of the series are segment tags, and would get these names.',
            HINT = 'Choose another name for the series, or another number of sections.';
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_grant(name text, role name, privileges text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grantee oid := snowflake_ids_internal.segment_grantee(role);
    row record := snowflake_ids_internal.series_restrict(name);
BEGIN
    IF row.was_open AND grantee <> 0 THEN
        RAISE NOTICE 'series "%" is no longer open to every role', left(name, 128) USING
            DETAIL = 'Roles now need privileges to use it.',
            HINT = 'To let every role use the series again, grant USAGE to public with snowflake_ids.series_grant.';
    END IF;
    PERFORM snowflake_ids_internal.series_add_privileges(row.series_id, grantee, privileges);
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
            DETAIL = 'The USAGE privilege is not checked until the series is restricted.',
            HINT = 'To restrict the series, revoke ALL from public with snowflake_ids.series_revoke.';
    END IF;
    UPDATE snowflake_ids.series_privilege AS p
    SET privileges = snowflake_ids_internal.segment_privileges(p.privileges, '', privileges)
    WHERE p.series = series_id AND p.grantee = grantee_oid;
    DELETE FROM snowflake_ids.series_privilege AS p WHERE p.series = series_id AND p.privileges = '';
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_add_shards(name text, beside regclass) RETURNS void
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
            DETAIL = 'The transaction''s snapshot may lack the newest counters.',
            HINT = 'Use a transaction of isolation level read committed.';
    END IF;
    -- Until the transaction ends, the locks below block all series' counters, and sessions that attach a column to this series.
    IF snowflake_ids_internal.in_transaction_block() THEN
        RAISE active_sql_transaction USING
            MESSAGE = 'cannot distribute a series in a transaction block',
            DETAIL = 'Gapless series would give no numbers until the end of the transaction block.',
            HINT = 'Call snowflake_ids.series_distribute outside of BEGIN and COMMIT, as a statement of its own.';
    END IF;
    PERFORM set_config('lock_timeout', snowflake_ids_internal.bounded_lock_timeout(), true),
        snowflake_ids_internal.series_check_unused(name, 'distribute');
    LOCK TABLE snowflake_ids.series_bigint, snowflake_ids.series_text, snowflake_ids.series_uuid IN SHARE ROW EXCLUSIVE MODE;
    SELECT s.* INTO series FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C";
    IF series.kind <> 'gapless' THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot distribute series "%s", which is %s', left(name, 128), series.kind),
            DETAIL = 'All nodes take the numbers of such a series from one registry.',
            HINT = 'Use the series on all nodes as it is.';
    ELSIF series.scope <> 'global' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('series "%s" has scope "%s"', left(name, 128), series.scope),
            DETAIL = 'Only a series of scope "global", which counts in tables of the coordinator, can be distributed.',
            HINT = 'Create a series of scope "global", and set its keys with snowflake_ids.series_set.';
    ELSIF NOT series.restricted THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('cannot distribute series "%s", which is open to every role', left(name, 128)),
            DETAIL = 'A role that takes numbers of a distributed series needs its own privileges on the key table.',
            HINT = 'Grant USAGE with snowflake_ids.series_grant to the roles that take numbers.';
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
            HINT = 'Name a table whose distribution column contains the keys of the series.';
    ELSIF series.key_type <> (CASE WHEN of_key.type IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN 'bigint'
            WHEN of_key.type IN ('text'::regtype, 'varchar'::regtype) THEN 'text'
            WHEN of_key.type = 'uuid'::regtype THEN 'uuid' ELSE '' END) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('table %s is distributed by a column of type %s', table_name, format_type(of_key.type, NULL)),
            DETAIL = format('Keys of series "%s" are of type %s.', left(name, 128), series.key_type),
            HINT = 'Create a series whose keys have the type of the distribution column.';
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.keep_from_restore() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_TABLE_NAME = 'registry_server' THEN
        RAISE EXCEPTION 'permission denied to set the registry of this database' USING
            ERRCODE = 'insufficient_privilege',
            DETAIL = format('In the dump, the database takes its ids from the registry of foreign server "%s".', NEW.server),
            HINT = 'Restore as a superuser, or ask an administrator to call snowflake_ids.use_registry afterwards.';
    END IF;
    RAISE NOTICE 'skipping a row of snowflake_ids.%', TG_TABLE_NAME USING
        DETAIL = 'Only a superuser can restore it.';
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.registry_lock() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF snowflake_ids_internal.registry_is_busy() THEN
        RAISE EXCEPTION 'cannot change the registry in a transaction that has changed segment tags' USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'Until the transaction commits, ids of these tags come from the memory of its session.',
            HINT = 'Commit this transaction, and then repeat the call.';
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'cannot change the registry at isolation level "%"', current_setting('transaction_isolation') USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'The transaction''s snapshot does not show ids that were reserved after the snapshot was taken.',
            HINT = 'Use a transaction of isolation level read committed.';
    END IF;
    LOCK TABLE snowflake_ids.registry_server, snowflake_ids.segment, snowflake_ids.received IN SHARE ROW EXCLUSIVE MODE;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.use_registry(VARIADIC servers name[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF coalesce(cardinality(servers), 0) = 0 OR EXISTS (SELECT FROM unnest(servers COLLATE "C") AS s WHERE coalesce(s, '') = '') THEN
        RAISE EXCEPTION 'the name of a registry must not be null or empty' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'A registry is named by its foreign server.',
            HINT = 'To use no registry: SELECT snowflake_ids.use_local_registry().';
    ELSIF (SELECT count(DISTINCT s) <> count(*) FROM unnest(servers COLLATE "C") AS s) THEN
        RAISE EXCEPTION 'registries must differ from each other' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = format('The registries given are: %s.', array_to_string(servers, ', '));
    END IF;
    PERFORM snowflake_ids_internal.registry_join(to_json(servers)::text);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.use_local_registry() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF NOT snowflake_ids_internal.registry_leave() THEN
        RAISE NOTICE 'this database is its own registry already';
        RETURN;
    END IF;
    RAISE NOTICE 'segment tags continue above all ids that this database has received' USING
        DETAIL = 'Other servers that use the registry may get the same ids from now on.',
        HINT = 'If they share tables, give the tags one increment and different remainders with snowflake_ids.segment_alter.';
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
        RAISE EXCEPTION '% of the cluster''s workers did not make the change', failures USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = failed,
            HINT = 'Correct the cause on each of these workers, and repeat the call. The call keeps the changes of other nodes, or makes them again.';
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_check() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_node') IS NULL OR to_regclass('pg_catalog.pg_dist_local_group') IS NULL THEN
        RAISE EXCEPTION 'this database does not have Citus' USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'There is no table pg_dist_node.',
            HINT = 'Run CREATE EXTENSION citus first, or call snowflake_ids.use_registry to share a registry without Citus.';
    END IF;
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
    -- Citus then creates tables here. Their defaults may name the coordinator's generators and series.
    BEGIN
        PERFORM snowflake_ids_internal.citus_take(r.result::jsonb)
        FROM pg_catalog.run_command_on_coordinator('SELECT snowflake_ids_internal.citus_definitions()') AS r WHERE r.success;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'generators, series and rights of the cluster are not on this worker yet' USING
            DETAIL = upper(left(SQLERRM, 1)) || substr(SQLERRM, 2) || '.',
            HINT = 'On the coordinator: CALL snowflake_ids.use_citus().';
    END;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'this worker of a Citus cluster uses no registry yet, and gives no ids' USING
        DETAIL = upper(left(SQLERRM, 1)) || substr(SQLERRM, 2) || '.',
        HINT = 'On the coordinator: CALL snowflake_ids.use_citus().';
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_unnamed_tag(relation regclass, tag text) RETURNS void
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_room_above(relation regclass, attribute name, highest bigint) RETURNS void
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
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_snowflake_above(relation regclass, attribute name, highest bigint, expression text)
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
            MESSAGE = format('sequence "%s" continues above the column''s highest value', owned),
            DETAIL = 'It was at its maximum, where DROP EXTENSION or a dump of the table alone leaves a bound sequence.';
        PERFORM snowflake_ids_internal.lock_relation(owned);
        PERFORM snowflake_ids_internal.sequence_put(owned, greatest(stored, terms.seqstart),
            coalesce(stored >= terms.seqstart, false));
    END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.tell_tag_stays(expression text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    tag text := snowflake_ids_internal.tag_of_default(expression);
BEGIN
    IF tag IS NOT NULL THEN
        RAISE NOTICE USING
            MESSAGE = format('segment tag "%s" is kept', tag),
            HINT = format('If nothing else uses it: SELECT snowflake_ids.segment_drop(%L);', tag);
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
                MESSAGE = format('maximum of sequence "%s" is below ids of the column', bound.sequence),
                DETAIL = format('Its maximum on this node is %s; the highest id is %s.', least(terms.seqmax, numbers.last + 1), reached);
        END IF;
        PERFORM snowflake_ids_internal.sequence_put(bound.sequence, number::bigint, false);
    END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.administration_change(statement text, part text, role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    object_name text;
    object_privileges text;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF snowflake_ids_internal.segment_grantee(role) = 0 THEN
        RAISE EXCEPTION 'cannot grant administration to public' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'Administration can be granted to named roles only.',
            HINT = 'Name a role.';
    END IF;
    FOR object_name, object_privileges IN SELECT o.object, o.privileges FROM snowflake_ids_internal.administration_objects(part) AS o
        -- Every part includes the schemas, so the right to use them is revoked only with the role's last part.
        ORDER BY o.object LIKE 'SCHEMA %'
    LOOP
        CONTINUE WHEN object_name COLLATE "C" LIKE 'SCHEMA %' AND starts_with(statement COLLATE "C", 'REVOKE') AND (
            SELECT bool_or(has_function_privilege(role, f, 'EXECUTE'))
            FROM unnest(ARRAY['snowflake_ids.segment_create', 'snowflake_ids.generator_create', 'snowflake_ids.series_create', 'snowflake_ids.use_registry',
                'snowflake_ids.state_reset']::regproc[]) AS f);
        EXECUTE format(statement, object_privileges, object_name, role);
    END LOOP;
END
$$;

/* A type whose JSON is a string. */
CREATE TYPE snowflake_id;
CREATE FUNCTION snowflake_ids_internal.snowflake_id_in(cstring) RETURNS snowflake_id
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8in';
CREATE FUNCTION snowflake_ids_internal.snowflake_id_out(snowflake_id) RETURNS cstring
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8out';
CREATE FUNCTION snowflake_ids_internal.snowflake_id_recv(internal) RETURNS snowflake_id
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8recv';
CREATE FUNCTION snowflake_ids_internal.snowflake_id_send(snowflake_id) RETURNS bytea
LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8send';
CREATE TYPE snowflake_id (INPUT = snowflake_ids_internal.snowflake_id_in, OUTPUT = snowflake_ids_internal.snowflake_id_out,
    RECEIVE = snowflake_ids_internal.snowflake_id_recv, SEND = snowflake_ids_internal.snowflake_id_send, LIKE = bigint, CATEGORY = 'N');
COMMENT ON TYPE snowflake_id IS 'an id that is stored, compared and indexed as a bigint, and is a string in JSON';

CREATE CAST (snowflake_id AS bigint) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (bigint AS snowflake_id) WITHOUT FUNCTION AS ASSIGNMENT;
-- The literal 1 is an integer, and drivers send small numbers as smallint.
CREATE CAST (integer AS snowflake_id) WITH INOUT AS ASSIGNMENT;
CREATE CAST (smallint AS snowflake_id) WITH INOUT AS ASSIGNMENT;
REVOKE EXECUTE ON FUNCTION
    snowflake_ids_internal.snowflake_id_in(cstring),
    snowflake_ids_internal.snowflake_id_out(snowflake_id),
    snowflake_ids_internal.snowflake_id_recv(internal),
    snowflake_ids_internal.snowflake_id_send(snowflake_id)
FROM PUBLIC;
CREATE FUNCTION snowflake_id(generator unknown) RETURNS bigint
STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_id_of_literal_wrapper';
COMMENT ON FUNCTION snowflake_id(unknown) IS 'the same as snowflake_nextval(generator)';
DO $$
BEGIN
    IF NOT has_function_privilege('public', 'snowflake_id(text)', 'EXECUTE') THEN
        REVOKE EXECUTE ON FUNCTION snowflake_id(unknown) FROM PUBLIC;
    END IF;
END
$$;

/* Ids as text with a prefix. */
CREATE FUNCTION snowflake_encode(id bigint, format text, prefix text, fixed_width bool DEFAULT false) RETURNS text
IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_encode_with_prefix_wrapper';
CREATE FUNCTION snowflake_decode_text(text text, format text, prefix text) RETURNS bigint
IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_decode_text_with_prefix_wrapper';
CREATE FUNCTION snowflake_try_decode_text(text text, format text, prefix text) RETURNS bigint
IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_try_decode_text_with_prefix_wrapper';
COMMENT ON FUNCTION snowflake_encode(bigint, text, text, boolean) IS 'an id as text after a prefix and an underscore';
COMMENT ON FUNCTION snowflake_decode_text(text, text, text) IS 'the id in a text with a prefix';
COMMENT ON FUNCTION snowflake_try_decode_text(text, text, text) IS 'the id in a text with a prefix; null if the text contains no id';

/* A bound below which readers miss no row. */
CREATE FUNCTION snowflake_safe_id() RETURNS bigint STRICT STABLE PARALLEL RESTRICTED
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_safe_id_wrapper';
CREATE FUNCTION snowflake_safe_time() RETURNS timestamptz STRICT STABLE PARALLEL RESTRICTED
LANGUAGE c AS 'MODULE_PATHNAME', 'snowflake_safe_time_wrapper';
CREATE FUNCTION snowflake_ids_internal.safe_id_holders() RETURNS SETOF integer STRICT VOLATILE PARALLEL RESTRICTED
LANGUAGE c AS 'MODULE_PATHNAME', 'safe_id_holders_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.safe_id_holders() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_ids_internal.safe_id_holders() TO PUBLIC;
COMMENT ON FUNCTION snowflake_safe_id() IS 'an id below which the statement sees all rows of this server; null while no such id is known';
COMMENT ON FUNCTION snowflake_safe_time() IS 'a time before which the statement sees all rows with a UUID of this server; null while no such time is known';

/* The same with other words. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_binding_check() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT pg_has_role(coalesce((SELECT c.relowner FROM pg_class AS c WHERE c.oid = NEW.sequence AND c.relkind = 'S'),
            (SELECT c.relowner FROM pg_class AS c WHERE c.oid = TG_RELID)), 'MEMBER') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of sequence %s', NEW.sequence),
            DETAIL = 'Only the owner of a sequence may bind it.',
            HINT = 'Ask the owner of the sequence to call snowflake_ids.bind_sequence.';
    END IF;
    NEW.checked := snowflake_ids_internal.sequence_stands_at_end(NEW.sequence);
    RETURN NEW;
END
$$;

/* A whole schema is adopted in one call; the checks of attach are those of its plan. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.table_and_below(relation regclass) RETURNS SETOF regclass
LANGUAGE plpgsql ROWS 4 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE tree(relid, depth) AS (
        SELECT relation::oid, 0
        UNION -- removes duplicates at each level: a table may have very many paths from the top
        SELECT i.inhrelid, depth + 1 FROM tree JOIN pg_inherits i ON i.inhparent = relid
    )
    SELECT relid::regclass FROM tree GROUP BY relid ORDER BY max(depth), relid;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.base_type(type oid) RETURNS regtype
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    WHILE EXISTS (SELECT FROM pg_type t WHERE t.oid = type AND t.typtype = 'd') LOOP
        type := (SELECT t.typbasetype FROM pg_type t WHERE t.oid = type);
    END LOOP;
    RETURN coalesce(nullif(type, 'snowflake_id'::regtype), 'bigint'::regtype);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequences_of(relation regclass, attribute name)
RETURNS TABLE (sequence regclass, owner regclass)
LANGUAGE plpgsql ROWS 2 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    WITH columns AS (
        SELECT a.attrelid, a.attnum
        FROM snowflake_ids_internal.table_and_below(relation) t
            JOIN pg_attribute a ON a.attrelid = t AND a.attname = attribute COLLATE "C"
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
    GROUP BY s.oid;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.others_of_sequence(sequence regclass, relation regclass, attribute name)
RETURNS TABLE (other regclass, other_attribute name, type regtype, most bigint)
LANGUAGE plpgsql ROWS 2 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    WITH named (relation, number) AS (
        SELECT f.adrelid, f.adnum
        -- OFFSET 0 keeps the planner from reading all rows of pg_attrdef in pg_depend when the catalog has no statistics.
        FROM (SELECT d.classid, d.objid FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = $1 OFFSET 0) d
            JOIN pg_attrdef f ON f.oid = d.objid
        WHERE d.classid = 'pg_attrdef'::regclass
        UNION
        SELECT d.refobjid, d.refobjsubid::smallint FROM pg_depend d
        WHERE d.classid = 'pg_class'::regclass AND d.objid = $1 AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
            AND d.refobjsubid > 0
    ), used AS (
        SELECT n.relation::regclass AS relation, a.attname AS attribute, a.atttypid AS type
        FROM named n JOIN pg_attribute a ON a.attrelid = n.relation AND a.attnum = n.number
            JOIN pg_class c ON c.oid = n.relation
        WHERE (n.relation NOT IN (SELECT snowflake_ids_internal.table_and_below($2)) OR a.attname <> $3 COLLATE "C")
            -- Any role may name a sequence in a default by its oid.
            AND has_sequence_privilege(c.relowner, $1, 'USAGE') AND NOT pg_is_other_temp_schema(c.relnamespace)
    ), types AS MATERIALIZED (
        SELECT t.type, b AS base, snowflake_ids_internal.type_maximum(b) AS most
        FROM (SELECT DISTINCT u.type FROM used u) t, snowflake_ids_internal.base_type(t.type) b
    )
    SELECT u.relation, u.attribute, t.base, t.most FROM used u JOIN types t ON t.type = u.type
    ORDER BY 4, u.relation::text, u.attribute;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.default_of(relation regclass, attribute name) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT CASE WHEN snowflake_ids_internal.kind_of_default(renamed) IS NULL THEN written ELSE renamed END
    FROM (SELECT written, regexp_replace(regexp_replace(written, E'^(snowflake|segment)_id\\(', E'\\1_nextval('),
            E'^(snowflake_nextval\\(''.*'')\\)$', E'\\1::text)') AS renamed
        -- Only expressions of generated columns name other columns. Printing column names would wait for a lock on the table.
        FROM (SELECT pg_get_expr(d.adbin, CASE WHEN a.attgenerated = '' THEN 0 ELSE d.adrelid END) AS written
            FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C") AS w) AS r);
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.kind_of_default(expression text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- The argument is one literal: all quotes within it are doubled.
    RETURN CASE WHEN expression COLLATE "C" = 'snowflake_nextval()' THEN 'snowflake'
        ELSE (regexp_match(expression COLLATE "C", '^(snowflake|segment)_nextval[(]''(?:[^'']|'''')*''::text[)]$'))[1] END;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids_internal.id_default(kind text, tag text, generator text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN CASE WHEN kind COLLATE "C" = 'segment' THEN snowflake_ids_internal.call_with('segment_nextval', tag)
        WHEN generator IS NOT NULL THEN snowflake_ids_internal.call_with('snowflake_nextval', generator)
        ELSE 'snowflake_nextval()' END;
END
$$;
CREATE FUNCTION snowflake_ids_internal.check_tables(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.check_table(relation, 'r', 'p');
    PERFORM snowflake_ids_internal.check_table(m, 'r', 'p', 'f') FROM snowflake_ids_internal.table_and_below(relation) m;
END
$$;
CREATE FUNCTION snowflake_ids_internal.check_shared(relation regclass, attribute name, shared regclass, kind text, tag text,
    generator text, sequence text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    bound snowflake_ids.sequence_binding;
    obstacle record;
    member regclass;
BEGIN
    IF sequence COLLATE "C" <> 'redirect' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" has other users than column "%s" of relation "%s"', shared, attribute, relation),
            DETAIL = 'If the sequence is not bound, the other users still get its own numbers.',
            HINT = format('Omit the argument sequence => %L, so that the sequence is bound.', left(sequence, 128));
    END IF;
    SELECT b INTO member FROM snowflake_ids_internal.table_and_below(relation) b
    WHERE NOT snowflake_ids_internal.is_default_of(snowflake_ids_internal.default_of(b, attribute), shared) LIMIT 1;
    IF FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('default of column "%s" of relation "%s" does not use sequence "%s"', attribute, member, shared),
            DETAIL = format('The default of relation "%s" uses the sequence. Binding a sequence that has several users does not change defaults.', relation),
            HINT = 'First set this default to nextval() of the sequence, or drop the default.';
    END IF;
    PERFORM snowflake_ids_internal.sequence_check_redirects();
    PERFORM snowflake_ids_internal.sequence_check_owned(shared);
    -- The caller may be a superuser, and the table's owner may have named another role's sequence in the default.
    IF NOT EXISTS (SELECT FROM pg_class t, pg_class s WHERE t.oid = relation AND s.oid = shared AND pg_has_role(t.relowner, s.relowner, 'USAGE')) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('table owner must be owner of sequence "%s"', shared),
            DETAIL = format('Column "%s" of relation "%s" is not the only user of the sequence.', attribute, relation),
            HINT = 'Ask the owner of the sequence to bind it with snowflake_ids.bind_sequence.';
    END IF;
    SELECT * INTO bound FROM snowflake_ids.sequence_binding b
    WHERE b.sequence = shared AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(shared));
    IF FOUND AND (bound.tag IS NULL) <> (kind COLLATE "C" = 'snowflake') OR tag <> bound.tag COLLATE "C"
        OR FOUND AND kind COLLATE "C" = 'snowflake' AND generator IS DISTINCT FROM bound.generator COLLATE "C"
    THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" is bound to other ids', shared),
            DETAIL = CASE WHEN bound.tag IS NOT NULL THEN format('It gives ids of segment tag "%s".', bound.tag)
                WHEN bound.generator IS NOT NULL THEN format('It gives ids of generator "%s".', bound.generator)
                ELSE 'It gives snowflake ids.' END,
            HINT = format('Attach the column with the kind, tag and generator of the sequence, or first SELECT snowflake_ids.unbind_sequence(%L);', shared);
    END IF;
    PERFORM snowflake_ids_internal.check_others_of_sequence(shared, relation, attribute,
        CASE kind COLLATE "C" WHEN 'snowflake' THEN snowflake_ids_internal.column_maximum(relation, attribute) END);
    SELECT * INTO obstacle FROM snowflake_ids_internal.sequence_obstacle(shared, true);
    IF obstacle.message IS NOT NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = obstacle.message, DETAIL = obstacle.detail, HINT = obstacle.hint;
    END IF;
END
$$;
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
CREATE FUNCTION snowflake_ids_internal.is_adopted_schema(candidate oid, schema regnamespace) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN schema IS NOT NULL THEN candidate = schema AND NOT pg_is_other_temp_schema(candidate) ELSE candidate = pg_my_temp_schema()
        OR NOT EXISTS (SELECT FROM pg_namespace n
                WHERE n.oid = candidate AND (n.nspname = 'information_schema' OR starts_with(n.nspname, 'pg_')))
            AND NOT EXISTS (SELECT FROM pg_depend d
                WHERE d.classid = 'pg_namespace'::regclass AND d.objid = candidate AND d.deptype = 'e') END
$$;
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
COMMENT ON FUNCTION snowflake_ids.attach_plan IS 'the columns of a schema that could take ids, and what attach_all does with each: attach it, bind its sequence, or skip it for the stated reason';
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
CREATE FUNCTION snowflake_ids_internal.citus_keys(relation regclass)
RETURNS TABLE (key_of regclass, key name, fault text, hint text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
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
                    AND snowflake_ids_internal.kind_of_default(snowflake_ids_internal.default_of(o.attrelid, o.attname)) IS NOT NULL) THEN NULL
            WHEN a.attidentity <> '' THEN format('column "%s" is an identity', a.attname)
            WHEN w.written IS NULL THEN format('column "%s" has no default', a.attname)
            WHEN snowflake_ids_internal.kind_of_default(w.written) IS NULL
                THEN format('the default of column "%s" is %s', a.attname, w.written)
            ELSE t.fault END, t.fault) AS f (fault, of_trigger)
    WHERE (relation IS NULL OR p.logicalrelid = relation) AND d.attnum <> ALL (n.numbers)
    ORDER BY p.logicalrelid, k.oid, f.fault IS NOT NULL, a.atthasdef OR a.attidentity <> '' DESC, a.attnum;
END
$$;
CREATE OR REPLACE FUNCTION snowflake_ids.citus_status()
RETURNS TABLE (node_id integer, node_name text, node_port integer, group_id integer, worker_id integer, layout text, registry text,
               version text, problem text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.citus_check();
    RETURN QUERY SELECT l.node_id, l.node_name, l.node_port, l.group_id, l.worker_id, l.layout, l.registry, l.version,
        -- The keys concern all nodes, so they are reported once, for the coordinator.
        coalesce(l.problem, CASE WHEN l.group_id = 0 THEN (SELECT left(string_agg(format('Citus does not check key "%s" of relation "%s" '
                'across shards, and %s. Hint: %s.', k.key, k.key_of, k.fault, k.hint), ' ' ORDER BY k.key_of::text COLLATE "C", k.key), 10000)
            FROM snowflake_ids_internal.citus_keys(NULL) AS k WHERE k.fault IS NOT NULL) END)
    FROM snowflake_ids_internal.citus_look() AS l ORDER BY l.group_id, l.node_id;
END
$$;
REVOKE EXECUTE ON FUNCTION
    snowflake_ids.attach_plan,
    snowflake_ids_internal.attach_created,
    snowflake_ids_internal.attach_error,
    snowflake_ids_internal.attach_steps,
    snowflake_ids_internal.candidate_columns,
    snowflake_ids_internal.change_group,
    snowflake_ids_internal.check_may_commit,
    snowflake_ids_internal.check_shared,
    snowflake_ids_internal.check_tables,
    snowflake_ids_internal.citus_keys,
    snowflake_ids_internal.columns_to_widen,
    snowflake_ids_internal.detach_steps,
    snowflake_ids_internal.group_error,
    snowflake_ids_internal.is_adopted_schema,
    snowflake_ids_internal.schema_plan,
    snowflake_ids_internal.sequence_obstacle,
    snowflake_ids_internal.sequence_users,
    snowflake_ids_internal.tell_done
FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_ids.attach_plan, snowflake_ids_internal.attach_created TO PUBLIC;
DO $$
DECLARE
    holder text;
BEGIN
    FOR holder IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_proc AS p, aclexplode(p.proacl) AS a
        WHERE p.oid = 'snowflake_ids_internal.sequence_bind'::regproc AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_ids_internal.attach_error, '
            'snowflake_ids_internal.attach_steps, '
            'snowflake_ids_internal.candidate_columns, '
            'snowflake_ids_internal.change_group, '
            'snowflake_ids_internal.check_may_commit, '
            'snowflake_ids_internal.check_shared, '
            'snowflake_ids_internal.check_tables, '
            'snowflake_ids_internal.citus_keys, '
            'snowflake_ids_internal.columns_to_widen, '
            'snowflake_ids_internal.detach_steps, '
            'snowflake_ids_internal.group_error, '
            'snowflake_ids_internal.is_adopted_schema, '
            'snowflake_ids_internal.registry_seed, '
            'snowflake_ids_internal.schema_plan, '
            'snowflake_ids_internal.sequence_obstacle, '
            'snowflake_ids_internal.sequence_users, '
            'snowflake_ids_internal.tell_done TO %s', holder);
    END LOOP;
END
$$;

/* What the functions in schema snowflake_ids are made of has its comments in the sources alone. */
DO $$
DECLARE
    function regprocedure;
BEGIN
    FOR function IN SELECT p.oid FROM pg_proc AS p WHERE p.pronamespace = 'snowflake_ids_internal'::regnamespace
        AND obj_description(p.oid, 'pg_proc') IS NOT NULL
    LOOP
        EXECUTE format('COMMENT ON FUNCTION %s IS NULL', function);
    END LOOP;
END
$$;

/* The same in other words. */
COMMENT ON COLUMN snowflake_ids.generator.modulus IS 'the modulus of the hash partition whose ids the generator issues; null: the setting snowflake_ids.shard decides';
COMMENT ON COLUMN snowflake_ids.generator.cache IS 'the number of ids that a session takes at once; null: the setting snowflake_ids.cache decides';
COMMENT ON FUNCTION snowflake_ids.generator_create IS 'creates a named generator; the default for its layout is the server''s layout';
COMMENT ON FUNCTION snowflake_ids.generator_alter IS
    'changes a named generator: a null argument changes nothing, and 0 or ''default'' lets the setting decide';
COMMENT ON VIEW snowflake_ids.generator_status IS 'named generators, and the state of this server''s counters for their layouts';
COMMENT ON TABLE snowflake_ids.segment IS 'segment tags, and the highest reserved id of each';
COMMENT ON COLUMN snowflake_ids.segment.version IS
    'a random number that changes with each reservation or move, so that a restored row is never taken for a later one';
COMMENT ON COLUMN snowflake_ids.segment.life IS 'a random number that segment_set with force changes; earlier records of issued ids are then ignored';
COMMENT ON COLUMN snowflake_ids.segment.timeline IS
    'the timeline of the last reservation or move; after a promotion, the tag skips ids that the standby may not know';
COMMENT ON COLUMN snowflake_ids.segment.system_identifier IS 'the cluster of this timeline, as pg_control_system() shows it';
COMMENT ON TABLE snowflake_ids.segment_restricted IS 'the segment tags that only roles with privileges may use; others are open to everybody';
COMMENT ON FUNCTION snowflake_ids.segment_create IS 'creates a segment tag; with an owner, only that role may use it until the owner grants rights';
COMMENT ON VIEW snowflake_ids.segment_status IS 'the segment tags that the reader may see, and their counts since the server started';
COMMENT ON DOMAIN snowflake_ids."text/html" IS 'a page of HTML; PostgREST uses the domain''s name as the type of the response';
COMMENT ON COLUMN snowflake_ids.worker_lease.token IS
    'a random number by which the holder recognises its lease; it changes with each renewal, and is null after a release';
COMMENT ON COLUMN snowflake_ids.worker_lease.expires_at IS 'the end of the lease: the holder issues ids only before this instant, the next holder only from this instant on';
COMMENT ON COLUMN snowflake_ids.worker_lease.former_until IS 'set if the lease comes from a former registry that this one replaced; other leases of the former registry may last until this time';
COMMENT ON FUNCTION snowflake_ids.worker_release_former IS 'declares that no server issues ids under a lease that a former registry granted and this registry does not know';
COMMENT ON FUNCTION snowflake_ids.worker_release IS 'releases a leased worker id; holder_is_down declares that its holder is gone for good';
COMMENT ON COLUMN snowflake_ids.sequence_binding.checked IS 'true if the sequence was seen at its maximum, where a bound sequence is kept; if false, it counts as bound only while it is at its maximum';
COMMENT ON COLUMN snowflake_ids.sequence_binding.type IS 'the type before the binding, which unbinding restores; null: the type of its column';
COMMENT ON COLUMN snowflake_ids.sequence_binding.cycles IS 'true if the sequence had CYCLE before the binding; unbinding restores this';
COMMENT ON COLUMN snowflake_ids.sequence_binding.unlogged IS 'true if the sequence was unlogged before the binding; unbinding restores this';
COMMENT ON COLUMN snowflake_ids.sequence_binding.identity IS 'a (ALWAYS) or d (BY DEFAULT) if its column was an identity; detach makes the column an identity again';
COMMENT ON FUNCTION snowflake_ids.bind_sequence IS 'makes nextval of a sequence give snowflake ids, or ids of a segment tag';
COMMENT ON FUNCTION snowflake_ids.unbind_sequence IS 'makes a bound sequence count by itself again, above all ids that it gave';
COMMENT ON COLUMN snowflake_ids.series.restricted IS 'true if only roles with privileges may use it; others are open to everybody';
COMMENT ON COLUMN snowflake_ids.series.id IS
    'the key of its counters and privileges: a random number, which differs after the series is dropped and created again';
COMMENT ON COLUMN snowflake_ids.series.step IS 'the size of the first reservation, in numbers; null if the kind reserves none';
COMMENT ON COLUMN snowflake_ids.series.max_step IS 'the size of the largest reservation, in numbers; null if the kind reserves none';
COMMENT ON COLUMN snowflake_ids.series.scope IS
    'the servers that share the numbers of a key: global for all; node if each key is on one server; shard if a key is counted beside its rows';
COMMENT ON COLUMN snowflake_ids.series.sections IS 'the number of sections that the keys are divided into; null if the kind has none';
COMMENT ON COLUMN snowflake_ids.series_bigint.period IS 'the first day of the period of last_value; null if the series has no reset';
COMMENT ON COLUMN snowflake_ids.series_bigint.version IS
    'the value by which a node recognises its last reservation, if several nodes count the key; null if no node made that reservation';
COMMENT ON FUNCTION snowflake_ids.series_create IS 'creates a series; with an owner, only that role may use it until the owner grants rights';
COMMENT ON FUNCTION snowflake_ids.series_attach IS 'makes a series fill a column where it is null in new rows, with the next number of the key in another column';
COMMENT ON FUNCTION snowflake_ids.series_distribute IS
    'moves the counters of a gapless series to the shards of a distributed table, beside the rows of each key; for Citus';
COMMENT ON COLUMN snowflake_ids.registry_server.identity IS 'the cluster, database and extension that distinguish the registry from others';
COMMENT ON COLUMN snowflake_ids.received.version IS 'the version of the registry''s row when max_id was received; null if the ids were handed over to the registry';
COMMENT ON FUNCTION snowflake_ids.use_registry IS 'makes this database take worker ids and segments from the registry of a foreign server; if several are given, the first leases worker ids';
COMMENT ON VIEW snowflake_ids.registry_status IS 'the registries in use, and the results of requests to them since the server started';
COMMENT ON FUNCTION snowflake_ids.citus_status IS 'the nodes of this Citus cluster, with worker id, layout, registry, version and problem';
COMMENT ON PROCEDURE snowflake_ids.use_citus IS 'makes the nodes of this Citus cluster share a registry: this database, or the database of a foreign server';
COMMENT ON FUNCTION snowflake_ids.attach IS 'makes a column take ids above its present values, from snowflake_nextval(), snowflake_nextval(generator) or segment_nextval(tag)';
COMMENT ON FUNCTION snowflake_ids.detach IS 'gives an attached column its former sequence or identity back, or what the argument kind names: sequence, identity or none';
COMMENT ON FUNCTION snowflake_ids.administration_grant IS
    'lets a role administer a part of the extension: tags, generators, series, registry or state';
COMMENT ON SCHEMA snowflake_ids_internal IS 'internal functions of the extension, which may change with every version; not to be called by hand';
COMMENT ON FUNCTION snowflake_extension_keep() IS 'keeps the extension from being dropped until the transaction ends; for the extension''s own functions';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS 'the time at which an id of a layout or generator was generated: the beginning of its tick';
COMMENT ON FUNCTION snowflake_try_decode_text(text, text) IS 'the id that a text encodes; null if the text encodes no id';
COMMENT ON FUNCTION snowflake_ids.status() IS 'the row of the view snowflake_ids.status';
COMMENT ON FUNCTION snowflake_ids.state_reset(timestamptz) IS 'starts a new state file; new ids are above all ids known to be issued, or above an instant';
COMMENT ON FUNCTION snowflake_ids.state_adopt() IS
    'keeps the worker id in a copied data directory, because the original is gone for good';
COMMENT ON FUNCTION snowflake_ids.clock_accept() IS 'makes the server follow a clock that has jumped ahead';
COMMENT ON FUNCTION snowflake_ids.layout_check(text, text) IS 'whether a generator or this server can change to a layout, and the time from which the new ids are above the old ids';
COMMENT ON FUNCTION snowflake_ids.series_alter IS 'changes a series; a null argument changes nothing';
COMMENT ON FUNCTION snowflake_ids.stats_reset IS 'resets the counters of a segment tag of this database, or the counters of all its tags and registries';
COMMENT ON COLUMN snowflake_ids.status.drift IS 'the time by which last_timestamp is ahead of the clock';
COMMENT ON COLUMN snowflake_ids.status.reservations IS 'the number of writes of the state file';
COMMENT ON COLUMN snowflake_ids.status.switches IS 'the number of changes to another rollback value or worker id, because the clock was set back';
COMMENT ON COLUMN snowflake_ids.status.scope IS 'the servers among which the worker id is unique: configured, shared registry, or this server only';
COMMENT ON COLUMN snowflake_ids.status.state IS 'ready, idle, in recovery, or the reason why no ids are issued';
COMMENT ON COLUMN snowflake_ids.generator_status.modulus IS 'the number of shards, if the generator makes ids of one shard';
COMMENT ON COLUMN snowflake_ids.generator_status.remainder IS 'the shard, if the generator makes ids of one shard';
COMMENT ON COLUMN snowflake_ids.generator_status.cache IS 'the number of ids that a session takes at once; null: the setting snowflake_ids.cache decides';
COMMENT ON COLUMN snowflake_ids.generator_status.place IS 'the slot of its layout in shared memory; null for the layout of the server, and while it uses no slot';
COMMENT ON COLUMN snowflake_ids.generator_status.drift IS 'the time by which last_timestamp is ahead of the clock';
COMMENT ON COLUMN snowflake_ids.generator_status.fits IS 'true if the worker id and the datacenter of this server fit its layout';
COMMENT ON COLUMN snowflake_ids.generator_status.state IS 'ready, idle, in recovery, or the reason why no ids are issued';
COMMENT ON COLUMN snowflake_ids.segment_status.step IS 'the number of ids in the next segment; this number follows demand';
COMMENT ON COLUMN snowflake_ids.segment_status.last_refill IS 'the duration of the last refill';
COMMENT ON COLUMN snowflake_ids.segment_status.exhausted_at IS 'the time at which the tag''s ids will be used up, at the pace since the tag was first used';
COMMENT ON COLUMN snowflake_ids.series_status.all_keys_counted IS 'true if the column keys counts all keys';
COMMENT ON COLUMN snowflake_ids.series_status.reset IS 'the period after which numbers begin anew: day, month or year; null: never';
COMMENT ON COLUMN snowflake_ids.series_status.format IS 'the format of numbers that series_nextval_text returns';
COMMENT ON COLUMN snowflake_ids.series_status.restricted IS 'true if only roles with privileges may use it';
COMMENT ON COLUMN snowflake_ids.series_status.step IS 'the size of the first reservation, in numbers; null if the kind reserves none';
COMMENT ON COLUMN snowflake_ids.series_status.max_step IS 'the size of the largest reservation, in numbers; null if the kind reserves none';
COMMENT ON COLUMN snowflake_ids.series_status.sections IS 'the number of sections that the keys are divided into; null if the kind has none';
COMMENT ON COLUMN snowflake_ids.series_key.period IS 'the first day of the period of last_value; null if numbers never begin anew';
COMMENT ON COLUMN snowflake_ids.series_key.key_bigint IS 'the key, if keys are bigint: a condition on this column uses the index';
COMMENT ON COLUMN snowflake_ids.series_key.key_text IS 'the key, if keys are text: a condition on this column uses the index';
COMMENT ON COLUMN snowflake_ids.series_key.key_uuid IS 'the key, if keys are uuid: a condition on this column uses the index';
COMMENT ON COLUMN snowflake_ids.sequence_status.kind IS 'the kind of its ids, snowflake or segment; unreadable if its row is not valid, so that the sequence gives no ids';
COMMENT ON COLUMN snowflake_ids.registry_status.identity IS 'the cluster, database and extension that distinguish the registry from others';
COMMENT ON COLUMN snowflake_ids.registry_status.calls IS 'the number of requests to the registry since the server started';
COMMENT ON COLUMN snowflake_ids.registry_status.last_answer IS 'the time of its last answer';
COMMENT ON COLUMN snowflake_ids.registry_status.last_duration IS 'the duration of the last request that was answered';
COMMENT ON COLUMN snowflake_ids.registry_status.last_failure IS 'the time of its last failure';
COMMENT ON COLUMN snowflake_ids.registry_status.error IS 'the reason why the registry fails, or the fault of a tag on the registry';
COMMENT ON COLUMN snowflake_ids.registry_status.retry_at IS 'the time of the next attempt';
COMMENT ON COLUMN snowflake_ids.segment_status.remaining_ids IS 'the number of ids that the tag has left up to its max_value';
COMMENT ON COLUMN snowflake_ids.segment_status.refill_time IS 'the total duration of the tag''s refills';
COMMENT ON COLUMN snowflake_ids.segment_status.wait_time IS 'the total time that calls waited for ids of the tag';
COMMENT ON COLUMN snowflake_ids.progress.datid IS 'the oid of the database of the call';
COMMENT ON COLUMN snowflake_ids.progress.datname IS 'the name of the database of the call';
COMMENT ON COLUMN snowflake_ids.progress.relid IS 'the oid of the table of the call';
COMMENT ON COLUMN snowflake_ids.progress.command IS 'the function that runs';
COMMENT ON COLUMN snowflake_ids.progress.phase IS 'the present phase of the call';
COMMENT ON COLUMN snowflake_ids.progress.tables_done IS 'the number of tables, or partitions, that are done';
COMMENT ON COLUMN snowflake_ids.progress.tables_total IS 'the number of all tables, or partitions';
COMMENT ON COLUMN snowflake_ids.status_history.drift IS 'the time by which the last id was ahead of the clock at the later reading';
COMMENT ON COLUMN snowflake_ids.status_history.clock_ahead IS 'the time by which the clock was ahead of the time that ids followed';
COMMENT ON FUNCTION nextval_support IS 'planner support function for ids as column defaults, so that COPY still inserts in batches';
COMMENT ON FUNCTION snowflake_nextval_in_copy(internal) IS 'called by COPY FROM in place of snowflake_nextval()';
COMMENT ON FUNCTION snowflake_nextval_in_copy(text, internal) IS 'called by COPY FROM in place of snowflake_nextval(generator)';
COMMENT ON FUNCTION segment_nextval_in_copy IS 'called by COPY FROM in place of segment_nextval(tag)';
COMMENT ON FUNCTION snowflake_uuid_in_copy(internal) IS 'called by COPY FROM in place of snowflake_uuid()';
COMMENT ON FUNCTION snowflake_uuid_text_in_copy(internal) IS 'called by COPY FROM in place of snowflake_uuid_text()';
COMMENT ON FUNCTION snowflake_uuid_in_copy(text, internal) IS 'called by COPY FROM in place of snowflake_uuid(generator)';
COMMENT ON FUNCTION snowflake_uuid_text_in_copy(text, internal) IS 'called by COPY FROM in place of snowflake_uuid_text(generator)';
COMMENT ON VIEW snowflake_ids.progress IS 'the progress of running calls of audit, attach and detach';
COMMENT ON VIEW snowflake_ids.status_history IS 'the activity of this server in the last hour, one row for each sample';
COMMENT ON FUNCTION snowflake_ids.segment_alter IS 'changes a segment tag; a null argument changes nothing';
COMMENT ON FUNCTION snowflake_ids.segment_raise IS
    'makes the next ids of a segment tag greater than a value; returns the highest id that counts as issued';
COMMENT ON FUNCTION snowflake_ids.segment_discard IS 'discards the ids of a segment tag that this server has reserved and not handed out';
COMMENT ON FUNCTION snowflake_ids.has_segment_privilege IS
    'true if the current role has at least one of the given privileges on a segment tag';
COMMENT ON TABLE snowflake_ids.generator IS 'named generators, each with a layout and rules for ids';
COMMENT ON COLUMN snowflake_ids.generator.layout IS 'the layout of the ids, as text or as the name of a preset layout';
COMMENT ON COLUMN snowflake_ids.generator.sequence_start IS
    'zero, random or rotate; null: the setting snowflake_ids.sequence_start decides';
COMMENT ON FUNCTION snowflake_ids.layout_change IS
    'changes the layout of a named generator, or of the server at its next start, if all ids of the new layout are above the present ids';
COMMENT ON COLUMN snowflake_ids.segment.max_id IS 'the highest id reserved; if the tag has a reset, the highest of its period';
COMMENT ON COLUMN snowflake_ids.segment.step IS 'the number of ids in the smallest segment';
COMMENT ON COLUMN snowflake_ids.segment.max_step IS 'the number of ids in the largest segment';
COMMENT ON COLUMN snowflake_ids.segment_privilege.grantee IS 'a role; - means PUBLIC';
COMMENT ON COLUMN snowflake_ids.segment_privilege.privileges IS 'one or more of OWNER, USAGE, SELECT and UPDATE, separated by commas';
COMMENT ON TABLE snowflake_ids.worker_lease IS 'the worker ids that this registry has leased, and their holders';
COMMENT ON TABLE snowflake_ids.sequence_binding IS 'sequences that give ids of snowflake_ids, as bound by snowflake_ids.bind_sequence';
COMMENT ON COLUMN snowflake_ids.sequence_binding.tag IS 'the segment tag whose ids the sequence gives; null if it gives snowflake ids';
COMMENT ON COLUMN snowflake_ids.sequence_binding.generator IS 'the named generator whose ids the sequence gives, if any';
COMMENT ON COLUMN snowflake_ids.sequence_binding.last_number IS 'the highest number that the sequence gave before it was bound';
COMMENT ON VIEW snowflake_ids.sequence_status IS 'the sequences that give ids of snowflake_ids';
COMMENT ON COLUMN snowflake_ids.series_privilege.grantee IS 'a role; - means PUBLIC';
COMMENT ON COLUMN snowflake_ids.series_privilege.privileges IS 'one or more of OWNER, USAGE, SELECT and UPDATE, separated by commas';
COMMENT ON FUNCTION snowflake_ids.series_detach IS 'stops a series from filling a column; rows and counters stay';
COMMENT ON TABLE snowflake_ids.registry_server IS
    'the registries from which this database takes ids, as set by snowflake_ids.use_registry; empty if the database is its own registry';
COMMENT ON COLUMN snowflake_ids.registry_server.timeline IS 'the latest timeline on which the registry was seen';
COMMENT ON VIEW snowflake_ids.metric IS 'the number of ids that this server has issued since it started, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric.kind IS 'snowflake: snowflake ids and UUIDs; segment: ids of segment tags';
COMMENT ON COLUMN snowflake_ids.metric.issued_total IS 'Ids that sessions of all databases took.';
COMMENT ON VIEW snowflake_ids.metric_node IS 'the identity of this server as a node, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_node.info IS 'Always 1; the labels identify the server.';
COMMENT ON COLUMN snowflake_ids.metric_server.ready IS '1 if the server can issue snowflake ids or is a standby, 0 otherwise.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_steps_back_total IS 'Backward steps of the clock that calls noticed.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_largest_step_back_seconds IS 'The largest backward step of the clock.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_steps_forward_total IS
    'Forward steps of the clock, of a second or more, that ids followed.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_ahead_seconds IS 'How far the clock is ahead of the time that ids follow.';
COMMENT ON COLUMN snowflake_ids.metric_server.node_switches_total IS
    'How often the server took another rollback value or worker id after a backward step of the clock.';
COMMENT ON COLUMN snowflake_ids.metric_server.reservations_by_callers_total IS 'How often a call had to write the state file itself.';
COMMENT ON COLUMN snowflake_ids.metric_server.high_water_mark_ahead_seconds IS
    'How far the reserved time is ahead of the clock that ids follow.';
COMMENT ON COLUMN snowflake_ids.metric_server.lease_remaining_seconds IS
    'The time until the lease of the worker id ends, by the clock that ids follow.';
COMMENT ON COLUMN snowflake_ids.metric_server.layout_remaining_seconds IS 'The time until the last tick of the server''s layout.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_refill_seconds_total IS 'The total duration of these refills.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_wait_seconds_total IS 'The total duration of these waits.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_places_in_use IS 'Tags that have a slot in shared memory.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_place_hits_total IS 'Ids taken from tags that had a slot in shared memory.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_place_misses_total IS 'Calls whose tag had no slot, and got a slot.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_place_evictions_total IS 'Tags that lost their slot to other tags.';
COMMENT ON COLUMN snowflake_ids.metric_tag.database IS 'the database of the tag';
COMMENT ON COLUMN snowflake_ids.metric_tag.issued_total IS 'Ids handed out from the buffers.';
COMMENT ON COLUMN snowflake_ids.metric_tag.refill_seconds_total IS 'The total duration of these refills.';
COMMENT ON COLUMN snowflake_ids.metric_tag.last_refill_seconds IS 'The duration of the last refill.';
COMMENT ON COLUMN snowflake_ids.metric_tag.wait_seconds_total IS 'The total duration of these waits.';
COMMENT ON COLUMN snowflake_ids.metric_tag.buffers_used_ratio IS 'The used share of the ids in both buffers, 0 to 1.';
COMMENT ON COLUMN snowflake_ids.metric_tag.remaining_ids IS 'Ids left up to max_value; null for a tag with a reset.';
COMMENT ON COLUMN snowflake_ids.metric_tag.remaining_seconds IS
    'The time until max_value is reached, at the pace since the tag was first used.';
COMMENT ON COLUMN snowflake_ids.metric_generator.database IS 'the database of the generator';
COMMENT ON COLUMN snowflake_ids.metric_generator.generator IS 'the name of the generator';
COMMENT ON COLUMN snowflake_ids.metric_generator.ready IS
    '1 if the server can issue ids of the generator''s layout or is a standby, 0 otherwise.';
COMMENT ON COLUMN snowflake_ids.metric_generator.high_water_mark_ahead_seconds IS
    'How far the time reserved for its layout is ahead of the clock.';
COMMENT ON COLUMN snowflake_ids.metric_generator.layout_remaining_seconds IS 'The time until the last tick of its layout.';
COMMENT ON VIEW snowflake_ids.metric_series IS 'the number of series of each kind in this database, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_series.database IS 'the database of the series';
COMMENT ON COLUMN snowflake_ids.metric_dense.rounds_total IS 'Transactions of workers that reserved numbers or evicted keys from memory.';
COMMENT ON COLUMN snowflake_ids.metric_dense.evictions_total IS 'Keys that were evicted while they had numbers left.';
COMMENT ON COLUMN snowflake_ids.metric_dense.evicted_total IS 'Numbers that the evicted keys had left.';
COMMENT ON COLUMN snowflake_ids.metric_dense.wait_seconds_total IS 'The total time that these calls waited.';
COMMENT ON COLUMN snowflake_ids.metric_registry.database IS 'the database that uses the registry';
COMMENT ON COLUMN snowflake_ids.metric_registry.up IS '1 if the last request was answered, 0 if not; null before the first request.';
COMMENT ON COLUMN snowflake_ids.metric_registry.calls_total IS 'Requests to the registry.';
COMMENT ON COLUMN snowflake_ids.metric_registry.failures_total IS 'Requests that got no answer.';
COMMENT ON COLUMN snowflake_ids.metric_registry.failures_in_a_row IS 'Requests without an answer since the last answer.';
COMMENT ON COLUMN snowflake_ids.metric_registry.last_success_age_seconds IS
    'The time since the last answer; the registry is asked only when ids are needed.';
COMMENT ON COLUMN snowflake_ids.metric_registry.last_call_seconds IS 'The duration of the last request that was answered.';
COMMENT ON FUNCTION snowflake_ids.administration_revoke IS 'revokes from a role the right to administer a part of the extension';
COMMENT ON FUNCTION snowflake_compose(timestamptz, integer, integer, integer) IS 'an id made from the given parts';
COMMENT ON FUNCTION snowflake_compose(timestamptz, integer, integer, integer, text, integer) IS
    'an id of a layout or generator, made from the given parts';
COMMENT ON FUNCTION snowflake_decode_text(text, text) IS 'the id that a text encodes';
COMMENT ON FUNCTION series_nextval_text(text, bigint) IS 'the next number of a key of a series, in the format of the series';
COMMENT ON FUNCTION series_nextval_text(text, text) IS 'the next number of a key of a series, in the format of the series';
COMMENT ON FUNCTION series_nextval_text(text, uuid) IS 'the next number of a key of a series, in the format of the series';
COMMENT ON FUNCTION snowflake_ids.series_set(text, bigint, bigint, boolean) IS
    'sets the last number of a key, like setval: the next number is above the value';
COMMENT ON FUNCTION snowflake_ids.series_set(text, text, bigint, boolean) IS
    'sets the last number of a key, like setval: the next number is above the value';
COMMENT ON FUNCTION snowflake_ids.series_set(text, uuid, bigint, boolean) IS
    'sets the last number of a key, like setval: the next number is above the value';
COMMENT ON FUNCTION snowflake_ids.series_drop IS 'drops a series and its keys; the series must not be used by a column';
COMMENT ON FUNCTION snowflake_ids.has_series_privilege IS 'true if the current role has at least one of the given privileges on a series';
COMMENT ON FUNCTION snowflake_ids.registry_serve(text) IS 'answers a server that uses this registry; not to be called by hand';
COMMENT ON COLUMN snowflake_ids.status.last_id IS 'the last id taken; null if none was taken since the server started';
COMMENT ON COLUMN snowflake_ids.status.ids_issued IS 'the number of ids that sessions took since the server started';
COMMENT ON COLUMN snowflake_ids.status.full_ticks IS 'the number of ticks whose sequence was used up';
COMMENT ON COLUMN snowflake_ids.status.steps_back IS 'the number of backward steps of the clock that calls noticed';
COMMENT ON COLUMN snowflake_ids.status.largest_step_back IS 'the largest backward step of the clock';
COMMENT ON COLUMN snowflake_ids.status.reserved_by_callers IS 'the number of writes of the state file that a call had to do itself';
COMMENT ON COLUMN snowflake_ids.status.steps_forward IS 'the number of forward steps of the clock, of a second or more, that ids followed';
COMMENT ON COLUMN snowflake_ids.status.clock_ahead IS 'how far the clock is ahead of the time that ids follow';
COMMENT ON COLUMN snowflake_ids.status.lease_expires_at IS 'the end of the lease of the worker id; null without a lease';
COMMENT ON COLUMN snowflake_ids.generator_status.shard IS
    'remainder/modulus, from the row of the generator or from the setting snowflake_ids.shard';
COMMENT ON COLUMN snowflake_ids.generator_status.sequence_start IS
    'where the sequence of a fresh tick starts; null: the setting snowflake_ids.sequence_start decides';
COMMENT ON COLUMN snowflake_ids.segment_status.current_first IS
    'the first id of the segment in use; null while the tag has no segment in shared memory';
COMMENT ON COLUMN snowflake_ids.segment_status.next_first IS 'the first id of the next segment; null before that segment is fetched';
COMMENT ON COLUMN snowflake_ids.segment_status.next_last IS 'the last id of the next segment; null before that segment is fetched';
COMMENT ON COLUMN snowflake_ids.segment_status.used IS 'the used share of the segment in use, 0 to 1';
COMMENT ON COLUMN snowflake_ids.segment_status.ids_issued IS 'the number of ids handed out from the buffers';
COMMENT ON COLUMN snowflake_ids.segment_status.refills IS 'the number of segments fetched';
COMMENT ON COLUMN snowflake_ids.segment_status.waits IS 'the number of calls that found no ids, and waited';
COMMENT ON COLUMN snowflake_ids.segment_status.longest_wait IS 'the longest time that a call waited';
COMMENT ON COLUMN snowflake_ids.segment_status.trouble IS 'the reason why refills fail now; null if they succeed';
COMMENT ON COLUMN snowflake_ids.series_status.time_zone IS 'the time zone in which days begin';
COMMENT ON COLUMN snowflake_ids.series_status.description IS 'the description of the series';
COMMENT ON COLUMN snowflake_ids.sequence_status.tag IS 'the segment tag whose ids the sequence gives; null if it gives snowflake ids';
COMMENT ON COLUMN snowflake_ids.sequence_status.last_number IS 'the highest number that the sequence gave before it was bound';
COMMENT ON COLUMN snowflake_ids.sequence_status.bound_at IS 'the time at which the sequence was bound';
COMMENT ON COLUMN snowflake_ids.sequence_status.generator IS 'the named generator whose ids the sequence gives, if any';
COMMENT ON COLUMN snowflake_ids.registry_status.database IS 'the database that uses the registry';
COMMENT ON COLUMN snowflake_ids.registry_status.position IS 'the position of the registry in the list of that database';
COMMENT ON COLUMN snowflake_ids.registry_status.timeline IS 'the latest timeline on which the registry was seen';
COMMENT ON COLUMN snowflake_ids.registry_status.failures IS 'the number of these requests that got no answer';
COMMENT ON COLUMN snowflake_ids.registry_status.failures_in_a_row IS 'the number of requests without an answer since the last answer';
COMMENT ON FUNCTION snowflake_ids.status_history() IS 'the activity of this server in the last hour, one row for each sample';
COMMENT ON COLUMN snowflake_ids.segment_status.stats_reset IS 'the time at which the counts of the tag began';
COMMENT ON COLUMN snowflake_ids.progress.started_at IS 'the time at which the call began';
COMMENT ON COLUMN snowflake_ids.metric_node.layout IS 'the layout of the ids of the server';
COMMENT ON COLUMN snowflake_ids.metric_node.datacenter_id IS 'the datacenter of the server';
COMMENT ON COLUMN snowflake_ids.metric_node.worker_id IS 'the worker id of the server';
COMMENT ON COLUMN snowflake_ids.metric_node.rollback IS 'the rollback value of the server';
COMMENT ON COLUMN snowflake_ids.status_history.sampled_at IS 'the time of the later of two readings';
COMMENT ON COLUMN snowflake_ids.status_history.ids_per_second IS 'snowflake ids per second';
COMMENT ON COLUMN snowflake_ids.status_history.segment_ids_per_second IS 'ids of segment tags per second, in all databases';
COMMENT ON COLUMN snowflake_ids.status_history.waits IS 'the number of calls that found the buffers of a tag used up, in all databases';
COMMENT ON COLUMN snowflake_ids.status_history.refills IS 'the number of segments fetched, in all databases';
COMMENT ON COLUMN snowflake_ids.status_history.steps_back IS 'the number of backward steps of the clock';
COMMENT ON COLUMN snowflake_ids.status_history.steps_forward IS 'the number of forward steps of the clock';

-- Functions whose messages are reworded.
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
            DETAIL = format('This database has reached snowflake_ids.max_generators, which is %s.', most),
            HINT = 'Drop a generator with snowflake_ids.generator_drop, or raise snowflake_ids.max_generators and restart the server.';
    END IF;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_keep() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'cannot truncate snowflake_ids.segment' USING
        ERRCODE = 'feature_not_supported',
        DETAIL = 'Sessions would not notice the TRUNCATE, and would continue to give ids of the tags.',
        HINT = 'Use DELETE FROM snowflake_ids.segment.';
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_set_owner(tag text, owner name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    new_owner oid := snowflake_ids_internal.segment_grantee(owner);
BEGIN
    IF new_owner = 0 THEN
        RAISE EXCEPTION 'segment tag "%" cannot belong to public', tag USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'Its owner must be a role.',
            HINT = format('To let every role use the tag: SELECT snowflake_ids.segment_grant(%L, ''public'', ''USAGE'').', tag);
    END IF;
    PERFORM snowflake_ids_internal.segment_restrict(tag);
    PERFORM snowflake_ids_internal.segment_remove_privileges(p.tag, p.grantee, 'OWNER')
    FROM snowflake_ids.segment_privilege AS p WHERE p.tag = segment_set_owner.tag COLLATE "C";
    PERFORM snowflake_ids_internal.segment_add_privileges(tag, new_owner, 'OWNER');
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_check_owned(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    class pg_class;
BEGIN
    SELECT * INTO class FROM pg_class AS c WHERE c.oid = relation;
    IF NOT FOUND THEN
        RAISE undefined_table USING MESSAGE = format('relation with OID %s does not exist', relation::oid);
    ELSIF class.relkind <> 'S' THEN
        RAISE wrong_object_type USING
            MESSAGE = format('"%s" is not a sequence', relation),
            DETAIL = 'Only sequences can be bound.',
            HINT = 'For the column of a table, call snowflake_ids.attach.';
    ELSIF NOT pg_has_role(class.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of sequence %s', relation),
            DETAIL = format('It is owned by role "%s".', pg_get_userbyid(class.relowner)),
            HINT = 'Ask that role to bind or unbind the sequence.';
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_set_owner(name text, owner name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    new_owner oid := snowflake_ids_internal.segment_grantee(owner);
    series_id bigint;
BEGIN
    IF new_owner = 0 THEN
        RAISE EXCEPTION 'series "%" cannot belong to public', left(name, 128) USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'Its owner must be a role.',
            HINT = 'To let every role use the series, grant USAGE to public with snowflake_ids.series_grant.';
    END IF;
    UPDATE snowflake_ids.series AS s SET restricted = true WHERE s.name = name COLLATE "C" RETURNING s.id INTO series_id;
    UPDATE snowflake_ids.series_privilege AS p
    SET privileges = snowflake_ids_internal.segment_privileges(p.privileges, '', 'OWNER') WHERE p.series = series_id;
    DELETE FROM snowflake_ids.series_privilege AS p WHERE p.series = series_id AND p.privileges = '';
    PERFORM snowflake_ids_internal.series_add_privileges(series_id, new_owner, 'OWNER');
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_check_coordinator() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF snowflake_ids_internal.node_group() <> 0 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'this node is a worker of a Citus cluster',
            DETAIL = 'A distributed series is changed on the coordinator, which passes the change on to the other nodes.',
            HINT = 'Connect to the coordinator, and call the function there.';
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
    -- On this node the name may lead to another server than on the coordinator, or to a former primary.
    found := snowflake_ids_internal.registry_look(coalesce(used.server, server));
    IF found ->> 'identity' <> identity COLLATE "C" THEN
        RAISE EXCEPTION 'registry "%" as seen from this node is not the registry of that name on the coordinator', server USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF (found ->> 'timeline')::bigint < timeline THEN
        RAISE EXCEPTION 'registry "%" as seen from this node is a former primary: it is on timeline %, but timeline % was seen before', server, found ->> 'timeline', timeline
            USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF used.server IS NOT NULL THEN
        UPDATE snowflake_ids.registry_server AS r SET timeline = (found ->> 'timeline')::integer
        WHERE r.identity = identity COLLATE "C" AND r.timeline < (found ->> 'timeline')::integer;
        RETURN NULL;
    END IF;
    -- Another session may hold the locks, because it also sets the registry.
    PERFORM set_config('lock_timeout', '20s', true);
    PERFORM snowflake_ids.use_registry(server);
    RETURN server;
END
$$;

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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.drop_sequences(relation regclass, attribute name) RETURNS void
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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_alone(function text, relation regclass) RETURNS void
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

-- Functions whose messages are reworded.
CREATE OR REPLACE FUNCTION snowflake_ids.segment_create(
    tag         text,
    start       numeric DEFAULT 1,
    step        bigint  DEFAULT 1000,
    max_step    bigint  DEFAULT 1000000,
    increment   bigint  DEFAULT 1,
    remainder   bigint  DEFAULT 0,
    description text    DEFAULT NULL,
    max_value   bigint  DEFAULT 9223372036854775807,
    reset       text    DEFAULT NULL,
    time_zone   text    DEFAULT 'UTC',
    format      text    DEFAULT NULL,
    owner       name    DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    first bigint;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    first := snowflake_ids_internal.segment_bigint('start', start);
    PERFORM snowflake_ids_internal.segment_check_tag(tag);
    PERFORM snowflake_ids_internal.segment_check_home();
    PERFORM snowflake_ids_internal.check_registered();
    INSERT INTO snowflake_ids.segment (tag, max_id, step, max_step, increment, remainder, description, start,
                                       max_value, reset, time_zone, format)
    VALUES (tag, CASE WHEN first < 0 THEN first ELSE first - 1 END, step, max_step, increment, remainder,
            description, first, max_value, lower(reset COLLATE "C"), time_zone, format)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'segment tag "%" already exists', tag USING
            ERRCODE = 'duplicate_object',
            HINT = 'Change its properties with snowflake_ids.segment_alter, or its next id with snowflake_ids.segment_set.';
    END IF;
    PERFORM snowflake_ids_internal.segment_set_owner(tag, owner) WHERE owner IS NOT NULL;
END
$$;

-- Functions that do the same in fewer statements.
CREATE OR REPLACE FUNCTION snowflake_ids.layout_change(new text, generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF generator IS NULL THEN
        PERFORM snowflake_ids_internal.layout_change_own(new);
        RETURN;
    END IF;
    -- Nobody else changes the row between the look at it and the change.
    PERFORM FROM snowflake_ids.generator AS g WHERE g.name = generator COLLATE "C" FOR NO KEY UPDATE;
    PERFORM snowflake_ids_internal.generator_unknown(generator) WHERE NOT FOUND;
    PERFORM snowflake_ids_internal.layout_change_check(new, generator);
    UPDATE snowflake_ids.generator AS g SET layout = new WHERE g.name = generator COLLATE "C";
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_alter(
    tag         text,
    step        bigint,
    max_step    bigint,
    increment   bigint,
    remainder   bigint,
    description text,
    max_value   bigint,
    time_zone   text,
    format      text,
    owner       name
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM snowflake_ids_internal.segment_check_tag(tag);
    PERFORM snowflake_ids_internal.segment_check_home();
    UPDATE snowflake_ids.segment AS s
    SET step = coalesce(step, s.step),
        max_step = coalesce(max_step, s.max_step),
        increment = coalesce(increment, s.increment),
        remainder = coalesce(remainder, s.remainder),
        description = coalesce(description, s.description),
        max_value = coalesce(max_value, s.max_value),
        time_zone = coalesce(time_zone, s.time_zone),
        format = coalesce(format, s.format),
        version = snowflake_ids_internal.random_number(),
        update_time = clock_timestamp()
    WHERE s.tag = segment_alter.tag COLLATE "C";
    PERFORM snowflake_ids_internal.segment_unknown(tag) WHERE NOT FOUND;
    PERFORM snowflake_ids_internal.segment_set_owner(tag, owner) WHERE owner IS NOT NULL;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_drop(tag text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.segment_check_tag(tag);
    PERFORM snowflake_ids_internal.segment_check_home();
    DELETE FROM snowflake_ids.segment AS s WHERE s.tag = segment_drop.tag COLLATE "C";
    PERFORM snowflake_ids_internal.segment_unknown(tag) WHERE NOT FOUND;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_lock(tag text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reserved bigint;
BEGIN
    PERFORM snowflake_ids_internal.segment_check_tag(tag);
    PERFORM snowflake_ids_internal.segment_check_home();
    SELECT CASE WHEN s.period < snowflake_ids_internal.segment_period(s.reset, s.time_zone) THEN s.start - 1 ELSE s.max_id END
    INTO reserved FROM snowflake_ids.segment AS s WHERE s.tag = segment_lock.tag COLLATE "C" FOR NO KEY UPDATE;
    PERFORM snowflake_ids_internal.segment_unknown(tag) WHERE NOT FOUND;
    RETURN reserved;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_restrict(tag text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_new boolean;
BEGIN
    PERFORM FROM snowflake_ids.segment AS s WHERE s.tag = segment_restrict.tag COLLATE "C" FOR KEY SHARE;
    PERFORM snowflake_ids_internal.segment_unknown(tag)
    WHERE NOT FOUND AND NOT EXISTS (SELECT FROM snowflake_ids.registry_server);
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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_alter(
    name        text,
    max_value   bigint,
    time_zone   text,
    format      text,
    description text,
    owner       name,
    new_name    text,
    step        integer,
    max_step    integer
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM snowflake_ids_internal.series_check_unused(name, 'rename') WHERE new_name <> name COLLATE "C";
    UPDATE snowflake_ids.series AS s
    SET max_value = coalesce(max_value, s.max_value),
        time_zone = coalesce(time_zone, s.time_zone),
        format = coalesce(format, s.format),
        description = coalesce(description, s.description),
        step = coalesce(step, s.step),
        max_step = coalesce(max_step, s.max_step)
    WHERE s.name = name COLLATE "C";
    -- Not above: while a column of a key is written, no worker reads the row, also where it is written as it was.
    UPDATE snowflake_ids.series AS s SET name = new_name WHERE s.name = name COLLATE "C" AND new_name <> name COLLATE "C";
    PERFORM snowflake_ids_internal.series_set_owner(coalesce(new_name, name), owner) WHERE owner IS NOT NULL;
EXCEPTION WHEN unique_violation THEN
    PERFORM snowflake_ids_internal.series_taken(new_name);
END
$$;
