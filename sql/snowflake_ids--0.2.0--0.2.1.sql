/* From 0.2.0 to 0.2.1. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

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
