/* Metrics with Prometheus' conventions: column <column> of view metric_X is the metric snowflake_ids_X_<column>. Units are
   base units, counters end in _total, and text columns are labels. Each view is one query, so any exporter can use the views.
   */

CREATE VIEW snowflake_ids.metric AS
SELECT k.kind, k.issued_total
FROM (SELECT 'snowflake' AS kind, s.ids_issued::double precision AS issued_total FROM snowflake_ids.status() AS s
      UNION ALL
      SELECT 'segment', t.ids_issued FROM snowflake_ids_internal.segment_totals() AS t) AS k;
COMMENT ON VIEW snowflake_ids.metric IS 'the number of ids that this server has issued since it started, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric.kind IS 'snowflake: snowflake ids and UUIDs; segment: ids of segment tags';
COMMENT ON COLUMN snowflake_ids.metric.issued_total IS 'Ids that sessions of all databases took.';

CREATE VIEW snowflake_ids.metric_node AS
SELECT coalesce(e.extversion, '') AS version, snowflake_ids_internal.library_version() AS library, s.layout,
       coalesce(s.datacenter_id::text, '') AS datacenter_id, coalesce(s.worker_id::text, '') AS worker_id,
       coalesce(s.rollback::text, '') AS rollback, s.scope, 1::double precision AS info
FROM snowflake_ids.status() AS s LEFT JOIN pg_catalog.pg_extension AS e ON e.extname = 'snowflake_ids';
COMMENT ON VIEW snowflake_ids.metric_node IS 'the identity of this server as a node, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_node.version IS 'the version of the extension''s SQL objects';
COMMENT ON COLUMN snowflake_ids.metric_node.library IS 'the version of the library';
COMMENT ON COLUMN snowflake_ids.metric_node.info IS 'Always 1; the labels identify the server.';

CREATE VIEW snowflake_ids.metric_server AS
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
       t.slots::double precision AS tag_slots, t.slots_in_use::double precision AS tag_slots_in_use,
       t.hits::double precision AS tag_slot_hits_total, t.misses::double precision AS tag_slot_misses_total,
       t.evictions::double precision AS tag_slot_evictions_total
FROM snowflake_ids.status() AS s CROSS JOIN snowflake_ids_internal.segment_totals() AS t;
COMMENT ON VIEW snowflake_ids.metric_server IS 'the state of this server since it started, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_server.ready IS '1 if the server can issue snowflake ids or is a standby, 0 otherwise.';
COMMENT ON COLUMN snowflake_ids.metric_server.in_recovery IS '1 on a standby.';
COMMENT ON COLUMN snowflake_ids.metric_server.drift_seconds IS 'How far the last id is ahead of the clock.';
COMMENT ON COLUMN snowflake_ids.metric_server.max_drift_seconds IS 'The setting max_drift.';
COMMENT ON COLUMN snowflake_ids.metric_server.full_ticks_total IS 'Ticks whose sequence was used up.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_steps_back_total IS 'Backward steps of the clock that calls noticed.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_largest_step_back_seconds IS 'The largest backward step of the clock.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_steps_forward_total IS 'Forward steps of the clock, of a second or more, that ids followed.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_ahead_seconds IS 'How far the clock is ahead of the time that ids follow.';
COMMENT ON COLUMN snowflake_ids.metric_server.node_switches_total IS 'How often the server took another rollback value or worker id after a backward step of the clock.';
COMMENT ON COLUMN snowflake_ids.metric_server.reservations_total IS 'How often the state file was written.';
COMMENT ON COLUMN snowflake_ids.metric_server.reservations_by_callers_total IS 'How often a call had to write the state file itself.';
COMMENT ON COLUMN snowflake_ids.metric_server.high_water_mark_ahead_seconds IS 'How far the reserved time is ahead of the clock that ids follow.';
COMMENT ON COLUMN snowflake_ids.metric_server.lease_remaining_seconds IS 'The time until the lease of the worker id ends, by the clock that ids follow.';
COMMENT ON COLUMN snowflake_ids.metric_server.lease_duration_seconds IS 'The setting lease_duration.';
COMMENT ON COLUMN snowflake_ids.metric_server.layout_remaining_seconds IS 'The time until the last tick of the server''s layout.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_refills_total IS 'Segments fetched for all tags of all databases.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_refill_seconds_total IS 'The total duration of these refills.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_waits_total IS 'Waits of calls that found no ids of a tag, of all databases.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_wait_seconds_total IS 'The total duration of these waits.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_slots IS 'The setting max_tags.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_slots_in_use IS 'Tags that have a slot in shared memory.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_slot_hits_total IS 'Ids taken from tags that had a slot in shared memory.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_slot_misses_total IS 'Calls whose tag had no slot, and got a slot.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_slot_evictions_total IS 'Tags that lost their slot to other tags.';

/* Roles that may read all statistics also see restricted tags, because a metrics exporter has no rights on tags. */
CREATE VIEW snowflake_ids.metric_tag WITH (security_barrier) AS
SELECT current_database()::text AS database, slot.tag,
       slot.ids_issued::double precision AS issued_total, slot.refills::double precision AS refills_total,
       slot.refill_seconds AS refill_seconds_total, extract(epoch FROM slot.last_refill)::double precision AS last_refill_seconds,
       slot.waits::double precision AS waits_total, slot.wait_seconds AS wait_seconds_total,
       extract(epoch FROM slot.longest_wait)::double precision AS longest_wait_seconds,
       slot.buffered_ids::double precision AS buffered_ids,
       1 - slot.buffered_ids / nullif(slot.buffer_ids, 0)::double precision AS buffers_used_ratio,
       slot.step::double precision AS step_ids, slot.remaining_ids::double precision AS remaining_ids,
       extract(epoch FROM slot.exhausted_at - clock_timestamp())::double precision AS remaining_seconds,
       (slot.trouble IS NOT NULL)::integer::double precision AS trouble
FROM snowflake_ids_internal.segment_slots(false) AS slot
WHERE slot.source = 'snowflake_ids.segment'::regclass
    AND slot.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database());
COMMENT ON VIEW snowflake_ids.metric_tag IS
    'the segment tags of this database that are in use, and that the reader may see, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_tag.database IS 'the database of the tag';
COMMENT ON COLUMN snowflake_ids.metric_tag.tag IS 'the tag';
COMMENT ON COLUMN snowflake_ids.metric_tag.issued_total IS 'Ids handed out from the buffers.';
COMMENT ON COLUMN snowflake_ids.metric_tag.refills_total IS 'Segments fetched.';
COMMENT ON COLUMN snowflake_ids.metric_tag.refill_seconds_total IS 'The total duration of these refills.';
COMMENT ON COLUMN snowflake_ids.metric_tag.last_refill_seconds IS 'The duration of the last refill.';
COMMENT ON COLUMN snowflake_ids.metric_tag.waits_total IS 'Waits of calls that found no ids.';
COMMENT ON COLUMN snowflake_ids.metric_tag.wait_seconds_total IS 'The total duration of these waits.';
COMMENT ON COLUMN snowflake_ids.metric_tag.longest_wait_seconds IS 'The longest time that a call waited.';
COMMENT ON COLUMN snowflake_ids.metric_tag.buffered_ids IS 'Ids that are left in both buffers.';
COMMENT ON COLUMN snowflake_ids.metric_tag.buffers_used_ratio IS 'The used share of the ids in both buffers, 0 to 1.';
COMMENT ON COLUMN snowflake_ids.metric_tag.step_ids IS 'How many ids the next segment has.';
COMMENT ON COLUMN snowflake_ids.metric_tag.remaining_ids IS 'Ids left up to max_value; null for a tag with a reset.';
COMMENT ON COLUMN snowflake_ids.metric_tag.remaining_seconds IS 'The time until max_value is reached, at the rate of the last hour.';
COMMENT ON COLUMN snowflake_ids.metric_tag.trouble IS '1 while refills fail; the reason is in segment_status.';

CREATE VIEW snowflake_ids.metric_generator AS
SELECT current_database()::text AS database, g.name AS generator,
       (g.state IN ('ready', 'idle', 'in recovery'))::integer::double precision AS ready,
       extract(epoch FROM g.drift)::double precision AS drift_seconds,
       extract(epoch FROM g.high_water_mark - clock_timestamp())::double precision AS high_water_mark_ahead_seconds,
       snowflake_ids_internal.layout_seconds_left(g.layout) AS layout_remaining_seconds
FROM snowflake_ids.generator_status AS g;
COMMENT ON VIEW snowflake_ids.metric_generator IS 'the named generators of this database, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_generator.database IS 'the database of the generator';
COMMENT ON COLUMN snowflake_ids.metric_generator.generator IS 'the name of the generator';
COMMENT ON COLUMN snowflake_ids.metric_generator.ready IS '1 if the server can issue ids of the generator''s layout or is a standby, 0 otherwise.';
COMMENT ON COLUMN snowflake_ids.metric_generator.drift_seconds IS 'How far the last id of its layout is ahead of the clock.';
COMMENT ON COLUMN snowflake_ids.metric_generator.high_water_mark_ahead_seconds IS 'How far the time reserved for its layout is ahead of the clock.';
COMMENT ON COLUMN snowflake_ids.metric_generator.layout_remaining_seconds IS 'The time until the last tick of its layout.';

CREATE VIEW snowflake_ids.metric_series AS
SELECT current_database()::text AS database, k.kind, count(s.id)::double precision AS defined
FROM (VALUES ('gapless'), ('monotonic')) AS k (kind) LEFT JOIN snowflake_ids.series AS s ON s.kind = k.kind
GROUP BY k.kind;
COMMENT ON VIEW snowflake_ids.metric_series IS 'the number of series of each kind in this database, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_series.database IS 'the database of the series';
COMMENT ON COLUMN snowflake_ids.metric_series.kind IS 'gapless or monotonic';
COMMENT ON COLUMN snowflake_ids.metric_series.defined IS 'Series of this kind.';

CREATE VIEW snowflake_ids.metric_registry AS
SELECT r.database::text AS database, r.server::text AS registry,
       CASE r.state WHEN 'up' THEN 1 WHEN 'failing' THEN 0 END::double precision AS up,
       r.calls::double precision AS calls_total, r.failures::double precision AS failures_total,
       r.failures_in_a_row::double precision AS failures_in_a_row,
       extract(epoch FROM clock_timestamp() - r.last_answer)::double precision AS last_success_age_seconds,
       extract(epoch FROM r.last_duration)::double precision AS last_call_seconds
FROM snowflake_ids.registry_status AS r;
COMMENT ON VIEW snowflake_ids.metric_registry IS 'the registries that this database uses, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_registry.database IS 'the database that uses the registry';
COMMENT ON COLUMN snowflake_ids.metric_registry.registry IS 'the foreign server';
COMMENT ON COLUMN snowflake_ids.metric_registry.up IS '1 if the last request was answered, 0 if not; null before the first request.';
COMMENT ON COLUMN snowflake_ids.metric_registry.calls_total IS 'Requests to the registry.';
COMMENT ON COLUMN snowflake_ids.metric_registry.failures_total IS 'Requests that got no answer.';
COMMENT ON COLUMN snowflake_ids.metric_registry.failures_in_a_row IS 'Requests without an answer since the last answer.';
COMMENT ON COLUMN snowflake_ids.metric_registry.last_success_age_seconds IS 'The time since the last answer; the registry is asked only when ids are needed.';
COMMENT ON COLUMN snowflake_ids.metric_registry.last_call_seconds IS 'The duration of the last request that was answered.';
