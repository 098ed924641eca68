-- The report on this server and this database: rows that need attention, and the whole report, which the status page shows.

-- Returns the problems that show in the views that the caller may read, the worst first.
CREATE FUNCTION snowflake_ids_internal.attention()
RETURNS TABLE (severity text, subject text, problem text, action text, since timestamptz)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    s record;
    slots record;
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
    SELECT p.slots, p.slots_in_use INTO slots FROM snowflake_ids_internal.segment_totals() AS p;
    lease_left := s.lease_expires_at - now();
    lacks_lease := (s.state LIKE '%worker id%' OR s.state LIKE '%lease%') AND s.state NOT LIKE '%data directory%' AND EXISTS (SELECT FROM snowflake_ids.registry_status AS r
        WHERE r.position = 0 AND r.state = 'failing');
    RETURN QUERY
    WITH tags AS (
        SELECT t.*, coalesce(t.trouble LIKE 'registry:%', false) AS lacks_registry FROM snowflake_ids_internal.tag_attention AS t
    ), ends (subject, years_left) AS (
        SELECT 'server', s.years_left
        UNION ALL SELECT format('generator %s', g.name), g.years_left FROM snowflake_ids.generator_status AS g
    ), failing AS (
        SELECT r.server, r.error, r.last_answer FROM snowflake_ids.registry_status AS r WHERE r.state = 'failing'
    -- The consequences of a registry that does not answer are reported in the registry's row.
    ), follows AS (
        SELECT string_agg(c.what, '; ') AS what FROM (
            SELECT format('tag %s is without ids', min(t.tag)) || CASE WHEN count(*) > 1 THEN format(' (other tags: %s)', count(*) - 1) ELSE '' END
            FROM tags AS t WHERE t.standing = 'without ids' AND t.lacks_registry HAVING count(*) > 0
            UNION ALL SELECT format('this server issues no snowflake ids: %s', s.state) WHERE lacks_lease
        ) AS c (what)
    ), found (severity, subject, problem, action, since) AS (
        SELECT 'note', 'server', 'this server is a standby, which issues no ids',
            'Connect to the primary for ids; after a promotion this server issues them (docs/operations.md, "Standbys and promotion").',
            NULL::timestamptz
        WHERE s.state = 'in recovery'
        UNION ALL
        SELECT 'alarm', 'server', format('this server issues no snowflake ids: %s', s.state),
            coalesce(rtrim(snowflake_ids_internal.server_remedy(), '.'), 'Call snowflake_nextval(): the HINT of its error says what to do')
                || ' (docs/errors.md, "Snowflake ids").', NULL
        WHERE s.state NOT IN ('ready', 'idle', 'in recovery')
            AND NOT lacks_lease
        UNION ALL
        SELECT 'alarm', 'clock', format('the clock is %s ahead, and is not followed', s.clock_ahead),
            'Set the clock back; if it is right, SELECT snowflake_ids.clock_accept() (docs/operations.md, "Clocks").', NULL
        WHERE s.clock_ahead > interval '0'
        UNION ALL
        -- The rows above already report a server that issues no ids.
        SELECT CASE WHEN s.drift >= drift_limit THEN 'alarm' WHEN s.steps_back = 0 AND s.full_ticks = 0 THEN 'note' ELSE 'warning' END, 'clock',
            format('ids are %s ahead of the clock; from %s (max_drift) on, calls wait or fail', s.drift, drift_limit),
            CASE WHEN s.steps_back > 0 THEN 'Set the clock right; the ids'' lead shrinks as the clock goes on'
                WHEN s.full_ticks > 0 THEN 'Take ids more slowly, or raise snowflake_ids.max_drift'
                ELSE format('Do nothing: state_reset(), state_adopt(), a promotion or a crash began the ids ahead, and the clock catches up in %s',
                    s.drift) END || ' (docs/operations.md, "Clocks").', NULL
        WHERE s.drift > drift_limit / 2 AND s.state IN ('ready', 'idle')
        UNION ALL
        SELECT 'warning', 'clock', format('steps of the clock in the last hour: %s', sum(h.steps_back + h.steps_forward)),
            'Find what sets the clock, and let one service slew it (docs/operations.md, "Clocks").', min(h.sampled_at)
        FROM snowflake_ids.status_history AS h WHERE h.steps_back + h.steps_forward > 0 HAVING count(*) > 0
        UNION ALL
        SELECT CASE WHEN lease_left < lease_duration / 10 THEN 'alarm' ELSE 'warning' END, 'worker id',
            format('the lease of the worker id ends in %s, and is not renewed',
                date_trunc('second', greatest(lease_left, interval '0'))),
            'Make sure that the registry can be reached; see the server''s log for the reason (docs/operations.md, "Worker ids").', NULL
        WHERE lease_left < lease_duration / 2
        UNION ALL
        -- The server chose its worker id itself, and knows of other servers.
        SELECT 'note', 'worker id', format('this server chose its worker id itself, and has %s: another server may have chosen the same',
                string_agg(o.what, ', ')),
            'Let the servers share a registry, or set a different worker_id on each server (docs/operations.md, "Worker ids").', NULL
        FROM (SELECT 'subscriptions' WHERE EXISTS (SELECT p.oid FROM pg_subscription AS p)
            UNION ALL SELECT 'publications' WHERE EXISTS (SELECT FROM pg_publication)
            UNION ALL SELECT 'foreign servers' WHERE EXISTS (SELECT FROM pg_foreign_server AS f
                JOIN pg_foreign_data_wrapper AS w ON w.oid = f.srvfdw WHERE w.fdwname IN ('postgres_fdw', 'dblink_fdw'))) AS o (what)
        WHERE s.scope = 'this server only' AND s.worker_id IS NOT NULL AND s.lease_expires_at IS NULL
        HAVING count(*) > 0
        UNION ALL
        SELECT 'warning', 'worker id', 'on this file system, a copy of the data directory with the same host name and machine id is not recognised',
            'Put the data directory on a volume whose file system keeps creation times, or set a different worker_id on each server '
            '(docs/operations.md, "Copies and backups").', NULL
        WHERE s.state <> 'in recovery' AND snowflake_ids_internal.copies_look_alike()
        UNION ALL
        SELECT 'alarm', format('registry %s', f.server),
            concat_ws('; ', 'the registry does not answer' || coalesce(': ' || f.error, ''), w.what),
            'Restart or reconnect the registry' || CASE WHEN w.what IS NULL THEN ': ids are issued until the buffers and the lease are used up'
                ELSE '' END || ' (docs/registry.md, "What happens when").',
            f.last_answer
        FROM failing AS f, follows AS w
        UNION ALL
        SELECT CASE WHEN t.standing IN ('without ids', 'ends soon') THEN 'alarm' ELSE 'warning' END,
            format('tag %s', t.tag),
            CASE WHEN t.trouble = 'used up' THEN 'no number of the tag is left, and calls fail'
                WHEN t.standing = 'without ids' THEN 'the tag is without ids, and refills fail: ' || t.trouble
                WHEN t.standing = 'refills fail' THEN 'refills fail: ' || t.trouble
                ELSE format('the tag is used up at %s, at the pace of the last hour', date_trunc('second', t.exhausted_at)) END
                || CASE WHEN t.more > 0 THEN format(' (other tags: %s)', t.more) ELSE '' END,
            CASE WHEN t.standing LIKE 'ends%' THEN 'Raise max_value, or begin a new tag (docs/operations.md, "Troubles").'
                ELSE coalesce(rtrim(t.remedy, '.'), format('Query snowflake_ids.attention in database %s', t.database))
                    || ' (docs/operations.md, "Troubles").' END, t.failing_since
        FROM (SELECT DISTINCT ON (t.standing) t.*, count(*) OVER (PARTITION BY t.standing) - 1 AS more FROM tags AS t
            WHERE NOT (t.lacks_registry AND EXISTS (SELECT FROM failing))
            ORDER BY t.standing, t.waits DESC, t.ids_issued DESC, t.database, t.tag) AS t
        UNION ALL
        SELECT 'alarm', 'launcher', 'the launcher does not run: calls for ids of tags fail once the buffers are empty, and a server without a worker id gets none',
            'Raise max_worker_processes, and restart the server, if this row stays: after a crash the launcher returns within a '
            'second (docs/operations.md, "Troubles").', NULL
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
        WHERE p.database = current_database() AND p.prepared < now() - interval '1 minute'
        UNION ALL
        SELECT 'warning', 'tags', 'the data directory is a copy, or was put back from one: each tag that this server keeps skips numbers once; '
            'if more were given elsewhere, or since the copy was made, those come again',
            'Stop the original if it runs; where such numbers have left the database, SELECT snowflake_ids.segment_raise(tag, number) above '
            'them (docs/operations.md, "Copies and backups").', least(c.at, pg_postmaster_start_time())
        FROM snowflake_ids_internal.copied_at() AS c (at) WHERE c.at > now() - interval '1 day'
        UNION ALL
        SELECT 'warning', 'tags', format('%s of %s slots for tags are in use', slots.slots_in_use, slots.slots),
            'Raise snowflake_ids.max_tags, and restart the server, where metric_server counts many misses '
            '(docs/operations.md, "Slots for tags").', NULL
        WHERE slots.slots_in_use * 10 >= slots.slots * 9
        UNION ALL
        SELECT CASE WHEN e.years_left < 1 THEN 'alarm' ELSE 'warning' END, e.subject,
            CASE WHEN e.years_left > 0 THEN format('the layout ends in %s years', e.years_left)
                ELSE 'the layout has ended, or ends within 36 days; then calls fail' END,
            'Change to a layout with more ticks, if snowflake_ids.layout_check allows it; for new tables use a later epoch '
            '(docs/layouts.md, "Changing it").', NULL
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
            'role', current_user, 'sees_all', pg_has_role('pg_read_all_stats', 'USAGE'), 'postgres', current_setting('server_version'),
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
        -- The 50 tags that need attention most are reported in full, 150 others only by name.
        'tags', (WITH tags AS MATERIALIZED (SELECT t.*, array_position(ARRAY['without ids', 'refills fail', 'ends soon',
                    'waits for a refill', 'ends this year', 'fine', 'idle'], t.standing) AS rank FROM snowflake_ids.segment_status AS t),
                worst AS (SELECT w.*, row_number() OVER () AS number FROM (SELECT * FROM tags AS t
                    ORDER BY t.rank, t.waits DESC, t.ids_issued DESC, t.database, t.tag LIMIT 200) AS w)
            SELECT jsonb_build_object('total', coalesce(sum(c.tags), 0),
                'standings', coalesce(jsonb_object_agg(c.standing, c.tags), '{}'),
                'slots', (SELECT jsonb_build_object('taken', p.slots_in_use, 'all', p.slots)
                    FROM snowflake_ids_internal.segment_totals() AS p),
                'rows', (SELECT coalesce(jsonb_agg(CASE WHEN w.number <= 50 THEN jsonb_strip_nulls(to_jsonb(w)) - '{rank,number}'::text[]
                        ELSE jsonb_build_object('database', w.database, 'tag', w.tag, 'used', w.used, 'standing', w.standing) END
                    ORDER BY w.number), '[]') FROM worst AS w))
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

-- PostgREST and similar servers use the domain's name as the media type of a response.
CREATE DOMAIN snowflake_ids."text/html" AS text;
COMMENT ON DOMAIN snowflake_ids."text/html" IS 'a page of HTML; PostgREST uses the domain''s name as the type of the response';
CREATE FUNCTION snowflake_ids.status_page() RETURNS snowflake_ids."text/html"
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
