/* From 0.2.1 to 0.3.0. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* There are no dense series any more: they are gapless, above all that was reserved, which is what their counters say. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_check_row() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- As 0.2 has it, whose dumps are restored. Its counters say up to where numbers were reserved.
    IF NEW.kind = 'dense' THEN
        NEW.kind := 'gapless';
        NEW.step := NULL;
        NEW.max_step := NULL;
    END IF;
    -- Numbers of the former kind, or section, are in memory.
    IF TG_OP = 'UPDATE' AND OLD.kind <> 'dense' AND (NEW.kind, NEW.sections) IS DISTINCT FROM (OLD.kind, OLD.sections) THEN
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
    -- The type's name as it is written with these settings.
    type_name text := coalesce(key_type::text, '');
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF kind COLLATE "C" = 'dense' THEN
        RAISE feature_not_supported USING
            MESSAGE = 'series of kind "dense" are not supported',
            DETAIL = 'Their numbers came from memory, with gaps where a transaction was rolled back or the server died.',
            HINT = 'Leave kind out for a gapless series, whose calls of one key wait for each other; create a segment tag for each key '
                'that many call at once; or give ''monotonic'' where numbers only have to grow.';
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
    -- True if no ids are issued for want of a lease, and the registry that leases it does not answer.
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
    lacks_lease := (s.state LIKE '%worker id%' OR s.state LIKE '%lease%') AND EXISTS (SELECT FROM snowflake_ids.registry_status AS r
        WHERE r.position = 0 AND r.state = 'failing');
    RETURN QUERY
    WITH tags AS (
        SELECT * FROM snowflake_ids_internal.tags_by_standing()
    ), ends (subject, years_left) AS (
        SELECT 'server', s.years_left
        UNION ALL SELECT format('generator %s', g.name), g.years_left FROM snowflake_ids.generator_status AS g
    ), failing AS (
        SELECT r.server, r.error, r.last_answer FROM snowflake_ids.registry_status AS r WHERE r.state = 'failing'
    -- The consequences of a registry that does not answer are told with it.
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
            CASE WHEN s.state LIKE '%state%' THEN 'Do not delete the state file; once you know why, settle it with the function that '
                    'the document names (docs/errors.md, "The state file").'
                WHEN s.state LIKE '%lease%' OR s.state LIKE '%worker id%'
                THEN 'See the server''s log for why the lease was not renewed (docs/operations.md, "Worker ids").'
                WHEN s.state LIKE '%clock%' THEN 'Ids go on once the clock has caught up; there are ways out where it was ahead by '
                    'mistake (docs/operations.md, "Clocks").'
                ELSE 'Call for an id: its HINT is the way out (docs/errors.md, "Snowflake ids").' END, NULL
        WHERE s.state NOT IN ('ready', 'idle', 'in recovery')
            AND NOT lacks_lease
        UNION ALL
        SELECT 'alarm', 'clock', format('the clock is %s ahead, and is not followed', s.clock_ahead),
            'Set the clock back; if it is right, SELECT snowflake_ids.clock_accept() (docs/operations.md, "Clocks").', NULL
        WHERE s.clock_ahead > interval '0'
        UNION ALL
        -- A server that issues no ids any more is named already.
        SELECT CASE WHEN s.drift >= drift_limit THEN 'alarm' ELSE 'warning' END, 'clock',
            format('ids are %s ahead of the clock; from %s on, max_drift, calls wait or fail', s.drift, drift_limit),
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
            'See that the registry can be reached; the server''s log says why it is not (docs/operations.md, "Worker ids").', NULL
        WHERE lease_left < lease_duration / 2
        UNION ALL
        SELECT 'alarm', format('registry %s', f.server),
            concat_ws('; ', 'the registry does not answer' || coalesce(': ' || f.error, ''), w.what),
            'Bring the registry back: ids go on until the buffers and the lease are used up (docs/registry.md, "What happens when").',
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
        SELECT 'warning', 'launcher', 'the launcher does not run, which starts the workers that refill tags',
            'See that fewer than max_worker_processes are in use; it comes back after a second (docs/operations.md, "Troubles").', NULL
        WHERE s.state <> 'in recovery' AND NOT snowflake_ids_internal.launcher_runs()
        UNION ALL
        SELECT 'warning', 'tags', format('%s of %s places for tags are taken', places.places_in_use, places.places),
            'Raise snowflake_ids.max_tags, and restart the server, where metric_server counts many misses '
            '(docs/operations.md, "Places for tags").', NULL
        WHERE places.places_in_use * 10 >= places.places * 9
        UNION ALL
        SELECT CASE WHEN e.years_left < 1 THEN 'alarm' ELSE 'warning' END, e.subject,
            format('the layout ends in %s years', e.years_left),
            'Change the layout; layout_change says from when on the new ids are above the old (docs/layouts.md, "Changing it").', NULL
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
COMMENT ON VIEW snowflake_ids.attention IS 'what needs attention, the worst first';
GRANT SELECT ON snowflake_ids.attention TO PUBLIC;

CREATE FUNCTION snowflake_ids.report() RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET timezone = 'UTC' SET datestyle = 'ISO'
SET intervalstyle = 'postgres' AS $$
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
        -- The first in full, the others by name.
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
        -- To count the keys of a series takes a look at up to 10,000 rows.
        'series', (SELECT coalesce(jsonb_agg(e ORDER BY e.name), '[]') FROM snowflake_ids.series_status AS e
            WHERE e.name = ANY (ARRAY(SELECT f.name FROM snowflake_ids.series_status AS f ORDER BY f.name LIMIT 20))),
        'registries', (SELECT coalesce(jsonb_agg(r ORDER BY r.position), '[]') FROM snowflake_ids.registry_status AS r),
        'sequences', (SELECT coalesce(jsonb_agg(b), '[]')
            FROM (SELECT * FROM snowflake_ids.sequence_status AS b ORDER BY b.sequence LIMIT 50) AS b));
END
$$;
COMMENT ON FUNCTION snowflake_ids.report IS 'all that this server and this database tell of themselves, of what the caller may see in the views';

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
COMMENT ON FUNCTION snowflake_ids.status_page IS 'a page of HTML about this server, of what the caller may see in the views';
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
            MESSAGE = 'table and column must not be null', DETAIL = 'They name the ids.';
    ELSIF kind IS NULL THEN
        RAISE undefined_table USING MESSAGE = format('relation with OID %s does not exist', relation::oid);
    ELSIF kind NOT IN ('r', 'p', 'f') THEN
        RAISE wrong_object_type USING
            MESSAGE = format('"%s" is not a table', relation),
            DETAIL = 'Ordinary, partitioned and foreign tables can be read in the order of their ids.',
            HINT = 'Name the table that has the rows.';
    ELSIF type IS NULL THEN
        RAISE undefined_column USING
            MESSAGE = format('column "%s" of relation "%s" does not exist', attribute, relation);
    ELSIF NOT has_column_privilege(relation, attribute, 'SELECT') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for table %s', relation),
            DETAIL = format('To read column "%s" takes the privilege SELECT.', attribute),
            HINT = 'Ask the owner of the table to grant it.';
    ELSIF snowflake_ids_internal.base_type(type) NOT IN ('bigint'::regtype, 'integer'::regtype, 'smallint'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column "%s" of relation "%s" is of type %s', attribute, relation, format_type(type, NULL)),
            DETAIL = 'Ids are bigint, integer or smallint.',
            HINT = 'Name a column of such ids.';
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
            HINT = 'Create it with the extension postgres_fdw: CREATE SERVER, CREATE USER MAPPING.';
    END IF;
    -- Its owner says where it leads, and could give a superuser a user mapping.
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user)
        AND NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.oid = server.srvowner) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('foreign server "%s" must belong to a superuser', connection),
            DETAIL = 'Its owner decides where a superuser would connect, and as which role.',
            HINT = 'Change its owner with ALTER SERVER ... OWNER TO, or audit as another role.';
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
            MESSAGE = 'there are too many connections',
            DETAIL = format('%s are given; 64 are the most there may be.', cardinality(connections));
    ELSIF generator IS NOT NULL AND tag IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'generator and tag exclude each other', DETAIL = 'Ids are those of a generator, or numbers of a segment tag.';
    END IF;
    -- It may change until it is locked.
    PERFORM snowflake_ids_internal.audit_check("table", "column");
    PERFORM snowflake_ids_internal.lock_to_read("table");
    PERFORM snowflake_ids_internal.audit_check("table", "column");
    PERFORM snowflake_ids_internal.progress_enter('audit', "table", 'reading ids');
    IF generator IS NULL AND tag IS NULL THEN
        SELECT regexp_match(e.expression COLLATE "C", '^(segment|snowflake)_(?:nextval|id)\(''((?:[^'']|'''')*)''::text\)$') INTO named
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
    -- Ids that were made since are no fault.
    SELECT * INTO layout FROM snowflake_ids_internal.layout_parts(generator);
    SELECT * INTO numbers FROM snowflake_ids_internal.audit_tag(tag);
    PERFORM snowflake_ids_internal.progress_end('audit');
    RETURN QUERY SELECT split_part(f.finding, ' ', 1), f.finding ~ '^(unlisted )?(duplicate|future|unfit)$', f.id, f.rows,
        f.datacenter, f.worker, date '1970-01-01' + f.day,
        nullif(concat_ws(' ', CASE split_part(f.finding, ' ', 1)
            WHEN 'unfit' THEN CASE WHEN f.id < 0 THEN 'It is negative, and no id is.'
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
COMMENT ON FUNCTION snowflake_ids.audit IS
    'what is wrong with the ids of a table, here and on other servers, and how many there are of each node and day';
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
COMMENT ON COLUMN snowflake_ids.attention.subject IS 'what it concerns: server, clock, worker id, launcher, a registry, tag or generator by its name';
COMMENT ON COLUMN snowflake_ids.attention.problem IS 'what is wrong';
COMMENT ON COLUMN snowflake_ids.attention.action IS 'what to do, and the section of the documents that says more';
COMMENT ON COLUMN snowflake_ids.attention.since IS 'since when, where that is known';
COMMENT ON COLUMN snowflake_ids.progress.rows_done IS 'null: for views of earlier releases';
COMMENT ON COLUMN snowflake_ids.progress.rows_total IS 'null: for views of earlier releases';

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
COMMENT ON TABLE snowflake_ids.worker_chosen IS 'the worker id that this server had chosen first when the extension was created, if there was no registry';
COMMENT ON COLUMN snowflake_ids.worker_chosen.system_identifier IS 'the cluster, as pg_control_system() shows it';
COMMENT ON COLUMN snowflake_ids.worker_chosen.home IS 'the birth of the data directory, which no copy of it shares';
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
            DETAIL = 'There is no row for it in snowflake_ids.worker_lease.',
            HINT = 'Worker ids of another datacenter take its number: worker_release(worker_id, datacenter_id).';
    END IF;
    -- This server's own lease ends here and now; a holder that may be alive keeps its time, and cannot renew it.
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
    IF current_setting('synchronous_commit') <> 'remote_apply' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    INSERT INTO snowflake_ids.worker_lease AS w (datacenter_id, worker_id, token, expires_at, host, port)
    -- A node that tells of more keeps nobody from the id for longer than a lease here would.
    -- Two nodes without a registry may have chosen the same one: one of them keeps it.
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

COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
    'whether an id was generated from an instant on and before another, to the tick';

CREATE FUNCTION snowflake_between(id bigint, "from" timestamptz, "to" timestamptz, layout text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT id OPERATOR(pg_catalog.>=) pg_catalog.snowflake_min_id("from", layout)
        AND id OPERATOR(pg_catalog.<) pg_catalog.snowflake_min_id("to", layout)
$$;

COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, text) IS
    'whether an id of a layout or generator was generated from an instant on and before another, to the tick';

CREATE FUNCTION snowflake_between(id uuid, "from" timestamptz, "to" timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT id OPERATOR(pg_catalog.>=) pg_catalog.snowflake_min_uuid("from") AND id OPERATOR(pg_catalog.<) pg_catalog.snowflake_min_uuid("to")
$$;

COMMENT ON FUNCTION snowflake_between(uuid, timestamptz, timestamptz) IS
    'whether a UUID of version 7 was generated from an instant on and before another, to the millisecond';

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

COMMENT ON FUNCTION snowflake_interval(interval) IS 'how many ids an interval spans';

COMMENT ON FUNCTION snowflake_interval(interval, text) IS 'how many ids of a layout or generator an interval spans';

CREATE FUNCTION snowflake_ids_internal.columns_of_tag(tag text) RETURNS TABLE (relation regclass, attribute name)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.adrelid::regclass, a.attname
    FROM pg_depend p
    JOIN pg_attrdef d ON d.oid = p.objid
    JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE p.classid = 'pg_attrdef'::regclass AND p.refclassid = 'pg_proc'::regclass
        AND p.refobjid = ANY (ARRAY['segment_nextval(text)', 'segment_id(text)']::regprocedure[])
        AND snowflake_ids_internal.default_of(d.adrelid, a.attname) = snowflake_ids_internal.id_default('segment', tag) COLLATE "C"
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
    -- Asked twice: they may be given up until it is seen to that they stay.
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        IF snowflake_ids_internal.registry_seed(tag, highest) THEN
            PERFORM snowflake_ids_internal.tell_other_servers(tag, highest);
            RETURN;
        END IF;
    END IF;
    SELECT * INTO known FROM snowflake_ids.segment s WHERE s.tag = seed_tag.tag COLLATE "C";
    -- A limit that is a narrower type's was set here, when the column was of that type.
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
            DETAIL = format('The column and its sequence end at %s; the highest id in use is %s.', most, highest),
            HINT = 'Raise the MAXVALUE of the sequence, where it has one, or widen the column.';
    ELSIF known.tag IS NULL THEN
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
