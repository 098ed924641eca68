/* From 0.1.0 to 0.2.0. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* Series. */
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
    RETURN NEW;
END
$$;
/* Dense series that draw from a registry. */
ALTER TABLE snowflake_ids.series_bigint ADD COLUMN version bigint;
ALTER TABLE snowflake_ids.series_text ADD COLUMN version bigint;
ALTER TABLE snowflake_ids.series_uuid ADD COLUMN version bigint;
COMMENT ON COLUMN snowflake_ids.series_bigint.version IS
    'by what a node knows what it reserved last, where several count the key; null where the last reservation was none of a node''s';
/* Comments. */
COMMENT ON FUNCTION snowflake_nextval() IS 'the next snowflake id';
COMMENT ON FUNCTION snowflake_nextval(text) IS 'the next snowflake id of a named generator';
COMMENT ON FUNCTION snowflake_nextvals(integer) IS 'several snowflake ids, in growing order';
COMMENT ON FUNCTION snowflake_nextvals(integer, text) IS 'several snowflake ids of a named generator, in growing order';
COMMENT ON FUNCTION snowflake_lastval() IS 'the last snowflake id that this session got';
COMMENT ON FUNCTION snowflake_uuid() IS 'the next UUID of version 7';
COMMENT ON FUNCTION snowflake_uuid(text) IS 'the next UUID of version 7 of a named generator';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS 'when an id was generated: the beginning of its tick';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS 'when an id of a layout or generator was generated: the beginning of its tick';
COMMENT ON FUNCTION snowflake_timestamp(uuid) IS 'when a UUID of version 7 was generated, to the millisecond';
COMMENT ON FUNCTION snowflake_timestamp(text) IS 'when an id or a UUID was generated';
COMMENT ON FUNCTION snowflake_datacenter_id(bigint) IS 'the datacenter that an id was generated in';
COMMENT ON FUNCTION snowflake_datacenter_id(bigint, text) IS 'the datacenter that an id of a layout or generator was generated in';
COMMENT ON FUNCTION snowflake_datacenter_id(uuid) IS 'the datacenter that a UUID was generated in';
COMMENT ON FUNCTION snowflake_datacenter_id(uuid, text) IS 'the datacenter that a UUID of a layout or generator was generated in';
COMMENT ON FUNCTION snowflake_datacenter_id(text) IS 'the datacenter that an id or a UUID was generated in';
COMMENT ON FUNCTION snowflake_datacenter_id(text, text) IS 'the datacenter that an id or a UUID of a layout or generator was generated in';
COMMENT ON FUNCTION snowflake_worker_id(bigint) IS 'the worker that generated an id';
COMMENT ON FUNCTION snowflake_worker_id(bigint, text) IS 'the worker that generated an id of a layout or generator';
COMMENT ON FUNCTION snowflake_worker_id(uuid) IS 'the worker that generated a UUID';
COMMENT ON FUNCTION snowflake_worker_id(uuid, text) IS 'the worker that generated a UUID of a layout or generator';
COMMENT ON FUNCTION snowflake_worker_id(text) IS 'the worker that generated an id or a UUID';
COMMENT ON FUNCTION snowflake_worker_id(text, text) IS 'the worker that generated an id or a UUID of a layout or generator';
COMMENT ON FUNCTION snowflake_sequence(bigint) IS 'the number of an id within its tick';
COMMENT ON FUNCTION snowflake_sequence(bigint, text) IS 'the number of an id of a layout or generator within its tick';
COMMENT ON FUNCTION snowflake_decode(bigint) IS 'all parts of an id, as a row';
COMMENT ON FUNCTION snowflake_decode(bigint, text) IS 'all parts of an id of a layout or generator, as a row';
COMMENT ON FUNCTION snowflake_decode_json(bigint) IS 'all parts of an id, as JSON';
COMMENT ON FUNCTION snowflake_decode_json(bigint, text) IS 'all parts of an id of a layout or generator, as JSON';
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS 'the smallest id of the tick that an instant lies in';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text) IS 'the smallest id of a layout or generator in the tick that an instant lies in';
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS 'the largest id of the tick that an instant lies in';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text) IS 'the largest id of a layout or generator in the tick that an instant lies in';
COMMENT ON FUNCTION snowflake_compose(timestamptz, integer, integer, integer) IS 'an id made of its parts';
COMMENT ON FUNCTION snowflake_compose(timestamptz, integer, integer, integer, text, integer) IS 'an id of a layout or generator, made of its parts';
COMMENT ON FUNCTION snowflake_encode(bigint, text, boolean) IS
    'an id as text in base62, base58, base36, crockford32 or hex; with a fixed width, texts sort under collation "C" like ids';
COMMENT ON FUNCTION snowflake_decode_text(text, text) IS 'the id that a text says';
COMMENT ON FUNCTION snowflake_try_decode_text(text, text) IS 'the id that a text says; null where it says none';
COMMENT ON FUNCTION segment_nextval(text) IS 'the next number of a segment tag';
COMMENT ON FUNCTION segment_nextvals(text, integer) IS 'several numbers of a segment tag, in growing order';
COMMENT ON FUNCTION segment_nextval_text(text) IS 'the next number of a segment tag, in the format of the tag';
COMMENT ON FUNCTION segment_currval(text) IS 'the last number of a segment tag that this session got';

COMMENT ON FUNCTION snowflake_ids.status() IS 'what the view snowflake_ids.status shows';
COMMENT ON FUNCTION snowflake_ids.state_reset(timestamptz) IS
    'has ids begin above what is known to be issued, or above an instant, and writes the state file anew';
COMMENT ON FUNCTION snowflake_ids.state_adopt() IS
    'goes on with the worker id of the server that this data directory was copied from, and that is gone for good';
COMMENT ON FUNCTION snowflake_ids.clock_accept() IS 'follows the clock although it has jumped ahead';
COMMENT ON FUNCTION snowflake_ids.layout_check(text, text) IS
    'whether a generator, or this server, can change to a layout: the ids of both, and from when on the new ones are above';
COMMENT ON FUNCTION snowflake_ids.registry_serve(text) IS 'answers a server that draws from this registry; not to be called by hand';
COMMENT ON FUNCTION snowflake_ids.registry_take_over(text) IS
    'answers the administrator of a server that hands its tags over to this registry; not to be called by hand';

COMMENT ON COLUMN snowflake_ids.status.datacenter_id IS 'the datacenter of this server';
COMMENT ON COLUMN snowflake_ids.status.worker_id IS 'the worker id of this server; null while none is leased';
COMMENT ON COLUMN snowflake_ids.status.layout IS 'the layout of the ids';
COMMENT ON COLUMN snowflake_ids.status.epoch IS 'the instant from which the layout counts';
COMMENT ON COLUMN snowflake_ids.status.last_id IS 'the last id taken; null before the first since the start';
COMMENT ON COLUMN snowflake_ids.status.last_timestamp IS 'the time of the last id taken';
COMMENT ON COLUMN snowflake_ids.status.drift IS 'how far that time is ahead of the clock';
COMMENT ON COLUMN snowflake_ids.status.ids_issued IS 'ids that sessions took since the start';
COMMENT ON COLUMN snowflake_ids.status.full_ticks IS 'ticks whose sequence was used up';
COMMENT ON COLUMN snowflake_ids.status.steps_back IS 'steps back of the clock that calls noticed';
COMMENT ON COLUMN snowflake_ids.status.largest_step_back IS 'the largest of them';
COMMENT ON COLUMN snowflake_ids.status.years_left IS 'years until the last tick of the layout';
COMMENT ON COLUMN snowflake_ids.status.rollback IS 'the value of the rollback bits of the layout; null while no worker id is leased';
COMMENT ON COLUMN snowflake_ids.status.high_water_mark IS 'the time up to which ids are reserved in the state file';
COMMENT ON COLUMN snowflake_ids.status.reservations IS 'how often the state file was written';
COMMENT ON COLUMN snowflake_ids.status.reserved_by_callers IS 'those of them that a call had to do itself';
COMMENT ON COLUMN snowflake_ids.status.steps_forward IS 'steps forward of the clock of a second or more that were followed';
COMMENT ON COLUMN snowflake_ids.status.clock_ahead IS 'how far the clock is ahead without being followed';
COMMENT ON COLUMN snowflake_ids.status.switches IS 'how often another rollback value or worker id was taken because the clock was set back';
COMMENT ON COLUMN snowflake_ids.status.scope IS 'among which servers the worker id is unique: configured, shared registry, or this server only';
COMMENT ON COLUMN snowflake_ids.status.lease_expires_at IS 'until when the worker id is leased; null without a lease';
COMMENT ON COLUMN snowflake_ids.status.leased_from IS 'the database or foreign server that the worker id is leased from; null without a lease';
COMMENT ON COLUMN snowflake_ids.status.state IS 'ready, idle, in recovery, or what keeps ids from being issued';

COMMENT ON COLUMN snowflake_ids.generator_status.name IS 'the name of the generator';
COMMENT ON COLUMN snowflake_ids.generator_status.layout IS 'the layout of its ids';
COMMENT ON COLUMN snowflake_ids.generator_status.modulus IS 'of a generator for one shard, how many shards there are';
COMMENT ON COLUMN snowflake_ids.generator_status.remainder IS 'of a generator for one shard, which shard it is';
COMMENT ON COLUMN snowflake_ids.generator_status.shard IS 'remainder/modulus, by its row or by the setting snowflake_ids.shard';
COMMENT ON COLUMN snowflake_ids.generator_status.sequence_start IS 'where the sequence of a fresh tick starts; null: as snowflake_ids.sequence_start says';
COMMENT ON COLUMN snowflake_ids.generator_status.cache IS 'how many ids a session takes at once; null: as snowflake_ids.cache says';
COMMENT ON COLUMN snowflake_ids.generator_status.place IS 'the place of its layout in shared memory; null for the layout of the server, and while none is in use';
COMMENT ON COLUMN snowflake_ids.generator_status.last_id IS 'the last id taken in its layout';
COMMENT ON COLUMN snowflake_ids.generator_status.last_timestamp IS 'the time of the last id taken in its layout';
COMMENT ON COLUMN snowflake_ids.generator_status.high_water_mark IS 'the time up to which ids of its layout are reserved';
COMMENT ON COLUMN snowflake_ids.generator_status.drift IS 'how far last_timestamp is ahead of the clock';
COMMENT ON COLUMN snowflake_ids.generator_status.years_left IS 'years until the last tick of its layout';
COMMENT ON COLUMN snowflake_ids.generator_status.fits IS 'whether the worker id and the datacenter of this server fit its layout';
COMMENT ON COLUMN snowflake_ids.generator_status.state IS 'ready, idle, in recovery, or what keeps ids from being issued';

COMMENT ON COLUMN snowflake_ids.segment_status.database IS 'the database of the tag';
COMMENT ON COLUMN snowflake_ids.segment_status.tag IS 'the tag';
COMMENT ON COLUMN snowflake_ids.segment_status.current_first IS 'the first id of the segment in use; null while the tag has none in shared memory';
COMMENT ON COLUMN snowflake_ids.segment_status.current_last IS 'the last id of the segment in use';
COMMENT ON COLUMN snowflake_ids.segment_status.current_next IS 'the next id of the segment in use; null when it is used up';
COMMENT ON COLUMN snowflake_ids.segment_status.next_first IS 'the first id of the segment after it; null before it is fetched';
COMMENT ON COLUMN snowflake_ids.segment_status.next_last IS 'the last id of the segment after it; null before it is fetched';
COMMENT ON COLUMN snowflake_ids.segment_status.used IS 'the share of the segment in use that is used, 0 to 1';
COMMENT ON COLUMN snowflake_ids.segment_status.step IS 'ids of the next segment, as demand has it';
COMMENT ON COLUMN snowflake_ids.segment_status.ids_issued IS 'ids handed out of the buffers';
COMMENT ON COLUMN snowflake_ids.segment_status.refills IS 'segments fetched';
COMMENT ON COLUMN snowflake_ids.segment_status.last_refill IS 'how long the last one took';
COMMENT ON COLUMN snowflake_ids.segment_status.waits IS 'calls that found nothing, and waited';
COMMENT ON COLUMN snowflake_ids.segment_status.longest_wait IS 'the longest of these waits';
COMMENT ON COLUMN snowflake_ids.segment_status.exhausted_at IS 'when the ids of the tag are used up, at its pace since it was first used';
COMMENT ON COLUMN snowflake_ids.segment_status.trouble IS 'why refills fail now; null where they succeed';

COMMENT ON COLUMN snowflake_ids.series_status.name IS 'the name of the series';
COMMENT ON COLUMN snowflake_ids.series_status.kind IS 'gapless, dense or monotonic';
COMMENT ON COLUMN snowflake_ids.series_status.key_type IS 'the type of its keys';
COMMENT ON COLUMN snowflake_ids.series_status.all_keys_counted IS 'whether keys is the number of all of them';
COMMENT ON COLUMN snowflake_ids.series_status.start IS 'the first number of each key';
COMMENT ON COLUMN snowflake_ids.series_status.max_value IS 'the highest number of each key';
COMMENT ON COLUMN snowflake_ids.series_status.reset IS 'with what numbers begin anew: day, month or year; null: never';
COMMENT ON COLUMN snowflake_ids.series_status.time_zone IS 'the time zone that days are counted in';
COMMENT ON COLUMN snowflake_ids.series_status.format IS 'how series_nextval_text writes a number';
COMMENT ON COLUMN snowflake_ids.series_status.restricted IS 'whether it takes privileges to be used';
COMMENT ON COLUMN snowflake_ids.series_status.description IS 'what it is for';
COMMENT ON COLUMN snowflake_ids.series_status.step IS 'how many numbers are reserved at once at first; null where the kind reserves none';
COMMENT ON COLUMN snowflake_ids.series_status.max_step IS 'how many numbers are reserved at once at most; null where the kind reserves none';
COMMENT ON COLUMN snowflake_ids.series_status.sections IS 'how many sections the keys are in; null where the kind has none';
COMMENT ON COLUMN snowflake_ids.series_key.series IS 'the name of the series';
COMMENT ON COLUMN snowflake_ids.series_key.key IS 'the key, as text';
COMMENT ON COLUMN snowflake_ids.series_key.period IS 'the first day of the period that last_value counts in; null where numbers never begin anew';
COMMENT ON COLUMN snowflake_ids.series_key.key_bigint IS 'the key where keys are bigint: a condition on it uses the index';
COMMENT ON COLUMN snowflake_ids.series_key.key_text IS 'the key where keys are text: a condition on it uses the index';
COMMENT ON COLUMN snowflake_ids.series_key.key_uuid IS 'the key where keys are uuid: a condition on it uses the index';

COMMENT ON COLUMN snowflake_ids.sequence_status.sequence IS 'the bound sequence';
COMMENT ON COLUMN snowflake_ids.sequence_status.kind IS 'snowflake or segment: which ids it gives';
COMMENT ON COLUMN snowflake_ids.sequence_status.tag IS 'the segment tag that its numbers are of; null: snowflake ids';
COMMENT ON COLUMN snowflake_ids.sequence_status.increment IS 'INCREMENT BY of the sequence';
COMMENT ON COLUMN snowflake_ids.sequence_status.owner IS 'the table whose column owns it';
COMMENT ON COLUMN snowflake_ids.sequence_status.owner_column IS 'the column that owns it';
COMMENT ON COLUMN snowflake_ids.sequence_status.last_number IS 'the highest number that the sequence itself had given';
COMMENT ON COLUMN snowflake_ids.sequence_status.bound_at IS 'when it was bound';
COMMENT ON COLUMN snowflake_ids.sequence_status.generator IS 'the named generator that its ids are of; null: the server''s own';

COMMENT ON COLUMN snowflake_ids.registry_status.database IS 'the database that uses it';
COMMENT ON COLUMN snowflake_ids.registry_status.position IS 'its place in the list of that database';
COMMENT ON COLUMN snowflake_ids.registry_status.server IS 'the foreign server';
COMMENT ON COLUMN snowflake_ids.registry_status.state IS 'unused (not asked yet), up or failing';
COMMENT ON COLUMN snowflake_ids.registry_status.identity IS 'which registry it is: cluster, database and extension';
COMMENT ON COLUMN snowflake_ids.registry_status.timeline IS 'the latest timeline that it was seen on';
COMMENT ON COLUMN snowflake_ids.registry_status.calls IS 'questions to it since the start of the server';
COMMENT ON COLUMN snowflake_ids.registry_status.failures IS 'those of them without an answer';
COMMENT ON COLUMN snowflake_ids.registry_status.failures_in_a_row IS 'those since the last answer';
COMMENT ON COLUMN snowflake_ids.registry_status.last_answer IS 'when it answered last';
COMMENT ON COLUMN snowflake_ids.registry_status.last_duration IS 'how long that answer took';
COMMENT ON COLUMN snowflake_ids.registry_status.last_failure IS 'when it failed last';
COMMENT ON COLUMN snowflake_ids.registry_status.error IS 'why it fails, or what is wrong with a tag there';
COMMENT ON COLUMN snowflake_ids.registry_status.retry_at IS 'when it is tried again';
/* The page about this server, and what its curves are drawn of. */
CREATE DOMAIN snowflake_ids."text/html" AS text;
COMMENT ON DOMAIN snowflake_ids."text/html" IS 'a page of HTML, as PostgREST names the type of what it answers';
CREATE FUNCTION snowflake_ids.status_page() RETURNS snowflake_ids."text/html"
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'status_page_wrapper';
COMMENT ON FUNCTION snowflake_ids.status_page IS 'a page of HTML about this server, of what the caller may see in the views';

CREATE FUNCTION snowflake_ids.status_history() RETURNS TABLE (
    sampled_at timestamptz, elapsed interval, ids_per_second double precision, segment_ids_per_second double precision,
    drift interval, waits bigint, refills bigint, steps_back bigint, steps_forward bigint, clock_ahead interval
)
STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'status_history_wrapper';
CREATE VIEW snowflake_ids.status_history AS SELECT * FROM snowflake_ids.status_history();
COMMENT ON VIEW snowflake_ids.status_history IS 'what this server did in the last hour, a row for each sample';
GRANT SELECT ON snowflake_ids.status_history TO PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_ids.status_history(), snowflake_ids.status_page() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_ids.status_history(), snowflake_ids.status_page() TO PUBLIC;
/* Metrics, counts that can be set back, and the progress of long calls. */
CREATE FUNCTION snowflake_ids.stats_reset(tag text DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stats_reset_wrapper';

COMMENT ON FUNCTION snowflake_ids.stats_reset IS
    'sets back what is counted of a segment tag of this database, or of all of them and of the registries that it uses';

CREATE  FUNCTION snowflake_ids_internal."segment_counts"() RETURNS TABLE (
	"database" oid,  /* pg_sys :: Oid */
	"source" oid,  /* pg_sys :: Oid */
	"tag" text,  /* TagText */
	"refill_seconds" double precision,  /* f64 */
	"wait_seconds" double precision,  /* f64 */
	"buffered_ids" bigint,  /* i64 */
	"buffer_ids" bigint,  /* i64 */
	"remaining_ids" bigint,  /* Option < i64 > */
	"stats_reset" timestamp with time zone  /* TimestampWithTimeZone */
)
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'segment_counts_wrapper';

CREATE  FUNCTION snowflake_ids_internal."segment_totals"() RETURNS TABLE (
	"ids_issued" bigint,  /* i64 */
	"refills" bigint,  /* i64 */
	"refill_seconds" double precision,  /* f64 */
	"waits" bigint,  /* i64 */
	"wait_seconds" double precision,  /* f64 */
	"places" bigint,  /* i64 */
	"places_in_use" bigint  /* i64 */
)
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'segment_totals_wrapper';

CREATE  FUNCTION snowflake_ids_internal."library_version"() RETURNS TEXT /* & '_ str */
STRICT STABLE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'library_version_wrapper';

CREATE  FUNCTION snowflake_ids_internal."layout_seconds_left"(
	"layout" text /* Text < '_ > */
) RETURNS double precision /* Result < Option < f64 > , ErrorReport > */
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'layout_seconds_left_wrapper';

CREATE  FUNCTION snowflake_ids_internal."progress_enter"(
	"command" text, /* Text < '_ > */
	"relation" oid, /* pg_sys :: Oid */
	"phase" text /* Text < '_ > */
) RETURNS VOID /* Result < (), ErrorReport > */
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'progress_enter_wrapper';

CREATE  FUNCTION snowflake_ids_internal."progress_tables"(
	"done" bigint, /* i64 */
	"total" bigint /* i64 */
) RETURNS void
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'progress_tables_wrapper';

CREATE  FUNCTION snowflake_ids_internal."progress_end"(
	"command" text /* Text < '_ > */
) RETURNS VOID /* Result < (), ErrorReport > */
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'progress_end_wrapper';

CREATE  FUNCTION snowflake_ids_internal."progress_places"() RETURNS TABLE (
	"pid" INT,  /* i32 */
	"datid" oid,  /* pg_sys :: Oid */
	"relid" oid,  /* Option < pg_sys :: Oid > */
	"command" TEXT,  /* Option < & '_ str > */
	"phase" TEXT,  /* Option < & '_ str > */
	"rows_done" bigint,  /* Option < i64 > */
	"rows_total" bigint,  /* Option < i64 > */
	"tables_done" bigint,  /* Option < i64 > */
	"tables_total" bigint,  /* Option < i64 > */
	"started_at" timestamp with time zone  /* Option < TimestampWithTimeZone > */
)
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'progress_places_wrapper';

CREATE OR REPLACE VIEW snowflake_ids.segment_status WITH (security_barrier) AS
WITH slots AS (
    SELECT d.datname, d.datname = current_database() AS here, slot.*, c.refill_seconds, c.wait_seconds, c.remaining_ids, c.stats_reset
    FROM snowflake_ids_internal.segment_slots() AS slot JOIN pg_catalog.pg_database AS d ON d.oid = slot.database
        LEFT JOIN snowflake_ids_internal.segment_counts() AS c
            ON c.database = slot.database AND c.source = slot.source AND c.tag = slot.tag
), own AS (
    SELECT * FROM slots WHERE here AND source = 'snowflake_ids.segment'::regclass
)
SELECT current_database() AS database, coalesce(s.tag::text, slot.tag) AS tag, slot.current_first, slot.current_last,
       slot.current_next, slot.next_first, slot.next_last, slot.used, coalesce(slot.step, s.step) AS step,
       coalesce(slot.ids_issued, 0) AS ids_issued, coalesce(slot.refills, 0) AS refills, slot.last_refill,
       coalesce(slot.waits, 0) AS waits, slot.longest_wait, slot.exhausted_at, slot.trouble,
       slot.remaining_ids, make_interval(secs => coalesce(slot.refill_seconds, 0)) AS refill_time,
       make_interval(secs => coalesce(slot.wait_seconds, 0)) AS wait_time, slot.stats_reset
FROM snowflake_ids.segment AS s FULL JOIN own AS slot ON slot.tag = s.tag
WHERE snowflake_ids.has_segment_privilege(coalesce(s.tag, slot.tag), 'SELECT')
UNION ALL
SELECT datname, tag, current_first, current_last, current_next, next_first, next_last, used, step, ids_issued,
       refills, last_refill, waits, longest_wait, exhausted_at, trouble, remaining_ids, make_interval(secs => refill_seconds),
       make_interval(secs => wait_seconds), stats_reset
FROM slots
WHERE NOT here;

/* Metrics, as Prometheus names them: a column of the view metric_X is the metric snowflake_ids_X_<column>, in base units, counters
   with _total; columns of text are labels. All of a view's rows are of one query, for whichever exporter. */

CREATE VIEW snowflake_ids.metric AS
SELECT k.kind, k.issued_total
FROM (SELECT 'snowflake' AS kind, s.ids_issued::double precision AS issued_total FROM snowflake_ids.status() AS s
      UNION ALL
      SELECT 'segment', t.ids_issued FROM snowflake_ids_internal.segment_totals() AS t) AS k;
COMMENT ON VIEW snowflake_ids.metric IS 'what this server has issued since it started, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric.kind IS 'snowflake: ids of layouts, and UUIDs; segment: ids of tags';
COMMENT ON COLUMN snowflake_ids.metric.issued_total IS 'Ids that sessions took, of all databases.';

CREATE VIEW snowflake_ids.metric_node AS
SELECT coalesce(e.extversion, '') AS version, snowflake_ids_internal.library_version() AS library, s.layout,
       coalesce(s.datacenter_id::text, '') AS datacenter_id, coalesce(s.worker_id::text, '') AS worker_id,
       coalesce(s.rollback::text, '') AS rollback, s.scope, 1::double precision AS info
FROM snowflake_ids.status() AS s LEFT JOIN pg_catalog.pg_extension AS e ON e.extname = 'snowflake_ids';
COMMENT ON VIEW snowflake_ids.metric_node IS 'which node this server is, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_node.version IS 'the version of the extension''s SQL objects';
COMMENT ON COLUMN snowflake_ids.metric_node.library IS 'the version of the library';
COMMENT ON COLUMN snowflake_ids.metric_node.info IS 'Who this server is, in its labels; always 1.';

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
       t.places::double precision AS tag_places, t.places_in_use::double precision AS tag_places_in_use
FROM snowflake_ids.status() AS s CROSS JOIN snowflake_ids_internal.segment_totals() AS t;
COMMENT ON VIEW snowflake_ids.metric_server IS 'the state of this server since it started, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_server.ready IS '1 where nothing keeps snowflake ids from being issued, or this is a standby; else 0.';
COMMENT ON COLUMN snowflake_ids.metric_server.in_recovery IS '1 on a standby.';
COMMENT ON COLUMN snowflake_ids.metric_server.drift_seconds IS 'How far the last id is ahead of the clock.';
COMMENT ON COLUMN snowflake_ids.metric_server.max_drift_seconds IS 'The setting max_drift.';
COMMENT ON COLUMN snowflake_ids.metric_server.full_ticks_total IS 'Ticks whose sequence was used up.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_steps_back_total IS 'Steps back of the clock that calls noticed.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_largest_step_back_seconds IS 'The largest of these steps.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_steps_forward_total IS 'Steps forward of a second or more that were followed.';
COMMENT ON COLUMN snowflake_ids.metric_server.clock_ahead_seconds IS 'How far the clock is ahead without being followed.';
COMMENT ON COLUMN snowflake_ids.metric_server.node_switches_total IS 'How often a step back was met by another rollback value or worker id.';
COMMENT ON COLUMN snowflake_ids.metric_server.reservations_total IS 'How often the state file was written.';
COMMENT ON COLUMN snowflake_ids.metric_server.reservations_by_callers_total IS 'Those of these writes that a call had to do itself.';
COMMENT ON COLUMN snowflake_ids.metric_server.high_water_mark_ahead_seconds IS 'Until the time up to which ids are reserved.';
COMMENT ON COLUMN snowflake_ids.metric_server.lease_remaining_seconds IS 'Until the lease of the worker id ends, by the clock that ids follow.';
COMMENT ON COLUMN snowflake_ids.metric_server.lease_duration_seconds IS 'The setting lease_duration.';
COMMENT ON COLUMN snowflake_ids.metric_server.layout_remaining_seconds IS 'Until the last tick of the server''s layout.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_refills_total IS 'Segments fetched for all tags of all databases.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_refill_seconds_total IS 'What these refills took.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_waits_total IS 'Waits of calls that found no ids of a tag, of all databases.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_wait_seconds_total IS 'What these waits took.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_places IS 'The setting max_tags.';
COMMENT ON COLUMN snowflake_ids.metric_server.tag_places_in_use IS 'Tags that have a place in shared memory.';

/* Restricted tags show to those who may read all statistics, too: an exporter is no user of tags. */
CREATE VIEW snowflake_ids.metric_tag WITH (security_barrier) AS
SELECT current_database()::text AS database, slot.tag,
       slot.ids_issued::double precision AS issued_total, slot.refills::double precision AS refills_total,
       c.refill_seconds AS refill_seconds_total, extract(epoch FROM slot.last_refill)::double precision AS last_refill_seconds,
       slot.waits::double precision AS waits_total, c.wait_seconds AS wait_seconds_total,
       extract(epoch FROM slot.longest_wait)::double precision AS longest_wait_seconds,
       c.buffered_ids::double precision AS buffered_ids,
       1 - c.buffered_ids / nullif(c.buffer_ids, 0)::double precision AS buffers_used_ratio,
       slot.step::double precision AS step_ids, c.remaining_ids::double precision AS remaining_ids,
       extract(epoch FROM slot.exhausted_at - clock_timestamp())::double precision AS remaining_seconds,
       (slot.trouble IS NOT NULL)::integer::double precision AS trouble
FROM snowflake_ids_internal.segment_slots() AS slot
    JOIN snowflake_ids_internal.segment_counts() AS c ON c.database = slot.database AND c.source = slot.source AND c.tag = slot.tag
WHERE slot.source = 'snowflake_ids.segment'::regclass
    AND slot.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database());
COMMENT ON VIEW snowflake_ids.metric_tag IS
    'the segment tags of this database that are in use, and that the reader may see, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_tag.database IS 'the database that the tag is of';
COMMENT ON COLUMN snowflake_ids.metric_tag.tag IS 'the tag';
COMMENT ON COLUMN snowflake_ids.metric_tag.issued_total IS 'Ids handed out of the buffers.';
COMMENT ON COLUMN snowflake_ids.metric_tag.refills_total IS 'Segments fetched.';
COMMENT ON COLUMN snowflake_ids.metric_tag.refill_seconds_total IS 'What these refills took.';
COMMENT ON COLUMN snowflake_ids.metric_tag.last_refill_seconds IS 'What the last refill took.';
COMMENT ON COLUMN snowflake_ids.metric_tag.waits_total IS 'Waits of calls that found no ids.';
COMMENT ON COLUMN snowflake_ids.metric_tag.wait_seconds_total IS 'What these waits took.';
COMMENT ON COLUMN snowflake_ids.metric_tag.longest_wait_seconds IS 'The longest time that a call waited.';
COMMENT ON COLUMN snowflake_ids.metric_tag.buffered_ids IS 'Ids that are left in both buffers.';
COMMENT ON COLUMN snowflake_ids.metric_tag.buffers_used_ratio IS 'The share of the ids in both buffers that is used, 0 to 1.';
COMMENT ON COLUMN snowflake_ids.metric_tag.step_ids IS 'How many ids the next segment has.';
COMMENT ON COLUMN snowflake_ids.metric_tag.remaining_ids IS 'Ids up to max_value; none of a dated tag.';
COMMENT ON COLUMN snowflake_ids.metric_tag.remaining_seconds IS 'Until max_value, at the pace since the tag was first used.';
COMMENT ON COLUMN snowflake_ids.metric_tag.trouble IS '1 while refills fail; the reason is in segment_status.';

CREATE VIEW snowflake_ids.metric_generator AS
SELECT current_database()::text AS database, g.name AS generator,
       (g.state IN ('ready', 'idle', 'in recovery'))::integer::double precision AS ready,
       extract(epoch FROM g.drift)::double precision AS drift_seconds,
       extract(epoch FROM g.high_water_mark - clock_timestamp())::double precision AS high_water_mark_ahead_seconds,
       snowflake_ids_internal.layout_seconds_left(g.layout) AS layout_remaining_seconds
FROM snowflake_ids.generator_status AS g;
COMMENT ON VIEW snowflake_ids.metric_generator IS 'the named generators of this database, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_generator.database IS 'the database that the generator is of';
COMMENT ON COLUMN snowflake_ids.metric_generator.generator IS 'its name';
COMMENT ON COLUMN snowflake_ids.metric_generator.ready IS '1 where nothing keeps ids of its layout from being issued, or this is a standby; else 0.';
COMMENT ON COLUMN snowflake_ids.metric_generator.drift_seconds IS 'How far the last id of its layout is ahead of the clock.';
COMMENT ON COLUMN snowflake_ids.metric_generator.high_water_mark_ahead_seconds IS 'Until the time up to which ids of its layout are reserved.';
COMMENT ON COLUMN snowflake_ids.metric_generator.layout_remaining_seconds IS 'Until the last tick of its layout.';

CREATE VIEW snowflake_ids.metric_series AS
SELECT current_database()::text AS database, k.kind, count(s.id)::double precision AS defined
FROM (VALUES ('gapless'), ('dense'), ('monotonic')) AS k (kind) LEFT JOIN snowflake_ids.series AS s ON s.kind = k.kind
GROUP BY k.kind;
COMMENT ON VIEW snowflake_ids.metric_series IS 'how many series this database has of each kind, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_series.database IS 'the database that they are of';
COMMENT ON COLUMN snowflake_ids.metric_series.kind IS 'gapless, dense or monotonic';
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
COMMENT ON COLUMN snowflake_ids.metric_registry.database IS 'the database that uses it';
COMMENT ON COLUMN snowflake_ids.metric_registry.registry IS 'the foreign server';
COMMENT ON COLUMN snowflake_ids.metric_registry.up IS '1 where the last question was answered, 0 where not; none before the first.';
COMMENT ON COLUMN snowflake_ids.metric_registry.calls_total IS 'Questions that were asked.';
COMMENT ON COLUMN snowflake_ids.metric_registry.failures_total IS 'Those of these questions that had no answer.';
COMMENT ON COLUMN snowflake_ids.metric_registry.failures_in_a_row IS 'Questions without an answer since the last answer.';
COMMENT ON COLUMN snowflake_ids.metric_registry.last_success_age_seconds IS 'The time since the last answer; it is asked when ids are wanted.';
COMMENT ON COLUMN snowflake_ids.metric_registry.last_call_seconds IS 'What the last answer took.';

GRANT SELECT ON snowflake_ids.metric, snowflake_ids.metric_node, snowflake_ids.metric_server, snowflake_ids.metric_tag,
    snowflake_ids.metric_generator, snowflake_ids.metric_series, snowflake_ids.metric_registry TO PUBLIC;

CREATE VIEW snowflake_ids.progress AS
SELECT p.pid, p.datid, d.datname, p.relid, p.command, p.phase, p.rows_done, p.rows_total, p.tables_done, p.tables_total, p.started_at
FROM snowflake_ids_internal.progress_places() AS p LEFT JOIN pg_catalog.pg_database AS d ON d.oid = p.datid;
COMMENT ON VIEW snowflake_ids.progress IS 'how far calls of audit, attach and detach have come';
GRANT SELECT ON snowflake_ids.progress TO PUBLIC;

CREATE OR REPLACE FUNCTION snowflake_ids.attach(relation regclass, "column" name, kind text DEFAULT 'snowflake',
    tag text DEFAULT NULL, sequence text DEFAULT 'redirect', generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.attach_here(relation regclass, "column" name, kind text, tag text, sequence text,
    generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
DECLARE
    distributed boolean := snowflake_ids_internal.is_distributed(relation);
    propagation text;
    highest bigint;
    expression text;
    former text;
BEGIN
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'waiting for the table');
    PERFORM snowflake_ids_internal.lock_table(relation);
    PERFORM snowflake_ids_internal.check_column(relation, "column", kind);
    IF kind = 'segment' AND tag IS NULL THEN
        tag := snowflake_ids_internal.default_tag(relation);
        PERFORM snowflake_ids_internal.tell_shared_tag(relation, "column", snowflake_ids_internal.id_default(kind, tag));
    END IF;
    expression := snowflake_ids_internal.id_default(kind, tag, generator);
    former := snowflake_ids_internal.default_of(relation, "column");
    IF distributed THEN
        PERFORM snowflake_ids_internal.check_tag_stays(relation, "column", tag, former);
        propagation := snowflake_ids_internal.propagate('off');
    END IF;
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'searching for the highest id');
    PERFORM snowflake_ids_internal.resume_sequences(relation, "column");
    highest := snowflake_ids_internal.highest_id(relation, "column");
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'changing defaults');
    IF kind = 'segment' THEN
        PERFORM snowflake_ids_internal.check_room_above(relation, "column", highest);
    ELSIF expression IS DISTINCT FROM former THEN
        PERFORM snowflake_ids_internal.check_snowflake_above(relation, "column", highest, expression);
    END IF;
    IF distributed THEN
        PERFORM snowflake_ids_internal.check_workers(relation, "column", kind, generator,
            CASE WHEN expression IS DISTINCT FROM former THEN highest END, expression, false);
        PERFORM snowflake_ids_internal.tell_replaced_defaults(relation, "column", expression);
        PERFORM snowflake_ids_internal.unbind_own(relation, "column", NULL);
        highest := snowflake_ids_internal.above_other_nodes(highest, former, expression);
    ELSE
        PERFORM snowflake_ids_internal.tell_replaced_defaults(relation, "column", expression);
        PERFORM snowflake_ids_internal.unbind_sequences(relation, "column", highest);
    END IF;
    PERFORM snowflake_ids_internal.drop_identities(relation, "column", sequence <> 'drop');
    PERFORM snowflake_ids_internal.set_default(relation, "column", 'SET DEFAULT ' || expression);
    -- A registry on another server keeps what it is told, even if this is rolled back: it is told after what may fail here,
    -- and before any node gives ids of the tag.
    IF kind = 'segment' THEN
        PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'raising the tag');
        PERFORM snowflake_ids_internal.seed_tag(tag, highest, snowflake_ids_internal.column_maximum(relation, "column"));
    END IF;
    IF sequence = 'redirect' THEN
        PERFORM snowflake_ids_internal.bind_sequences(relation, "column", kind, tag, generator);
    ELSIF sequence = 'drop' THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, "column");
    END IF;
    IF distributed THEN
        PERFORM snowflake_ids_internal.propagate(propagation);
    END IF;
    PERFORM snowflake_ids_internal.progress_end('attach');
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids.detach(relation regclass, "column" name, kind text DEFAULT 'sequence') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
DECLARE
    distributed boolean := snowflake_ids_internal.is_distributed(relation);
    propagation text;
    expression text;
    highest bigint;
BEGIN
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
            HINT = 'Only a default of snowflake_nextval() or segment_nextval(tag) is taken back.';
    END IF;
    IF distributed THEN
        PERFORM snowflake_ids_internal.check_workers(relation, "column", NULL, NULL, NULL, NULL, kind = 'identity');
        propagation := snowflake_ids_internal.propagate('off');
        PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'waiting for other nodes');
        -- Before the highest id is looked for: from then on no worker takes one.
        PERFORM snowflake_ids_internal.detach_workers(relation, "column", kind, expression);
        highest := snowflake_ids_internal.highest_own_id(relation, "column", expression);
        PERFORM snowflake_ids_internal.unbind_own(relation, "column", highest);
    ELSE
        PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'searching for the highest id');
        highest := snowflake_ids_internal.highest_id(relation, "column");
        PERFORM snowflake_ids_internal.unbind_sequences(relation, "column", highest);
    END IF;
    PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'changing defaults');
    IF kind = 'none' THEN
        PERFORM snowflake_ids_internal.set_default(relation, "column", 'DROP DEFAULT');
    ELSE
        PERFORM snowflake_ids_internal.check_room_above(relation, "column", highest);
        PERFORM snowflake_ids_internal.tell_numbers_go_on(relation, "column", expression, highest) WHERE NOT distributed;
        IF kind = 'sequence' THEN
            PERFORM snowflake_ids_internal.restore_sequence(relation, "column", highest);
        ELSE
            PERFORM snowflake_ids_internal.restore_identity(relation, "column", highest);
        END IF;
    END IF;
    IF distributed THEN
        PERFORM snowflake_ids_internal.propagate(propagation);
    END IF;
    PERFORM snowflake_ids_internal.tell_tag_stays(expression);
    PERFORM snowflake_ids_internal.progress_end('detach');
END
$$;

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
        stored := greatest(stored,
            snowflake_ids_internal.as_owner(member, format('SELECT max(%I) FROM ONLY %s', attribute, member)));
        looked_at := looked_at + 1;
    END LOOP;
    SELECT max(snowflake_ids_internal.highest_number(s.sequence)) INTO numbered
    FROM snowflake_ids_internal.sequences_of(relation, attribute) s;
    SELECT max(snowflake_ids_internal.highest_of_tag(t)) INTO tagged
    FROM (SELECT DISTINCT snowflake_ids_internal.tag_of_default(snowflake_ids_internal.default_of(b, attribute)) AS t
        FROM snowflake_ids_internal.table_and_below(relation) b) tags
    WHERE t IS NOT NULL;
    RETURN greatest(stored, numbered, tagged, 0);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.administration_objects(part text) RETURNS TABLE (object text, privileges text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT o.object, o.privileges
    FROM (VALUES
        (part, 'SCHEMA snowflake_ids, snowflake_ids_internal', 'USAGE'),
        ('tags', 'FUNCTION snowflake_ids.segment_create, snowflake_ids.stats_reset', 'EXECUTE'),
        ('tags', 'FUNCTION snowflake_ids.attach, snowflake_ids.detach, snowflake_ids.bind_sequence, snowflake_ids.unbind_sequence', 'EXECUTE'),
        ('tags', (SELECT 'FUNCTION ' || string_agg('snowflake_ids_internal.' || f, ', ')
            FROM unnest(ARRAY['above_other_nodes', 'attach_coordinator', 'attach_here', 'attach_in_session', 'bounded_lock_timeout', 'check_alone',
                'check_tag_stays', 'in_transaction_block', 'attach_worker', 'attach_workers', 'bind_own', 'check_coordinator', 'check_registered', 'check_worker',
                'check_workers', 'citus_run_on_workers', 'detach_worker', 'detach_workers', 'discard_received', 'highest_own_id', 'highest_stored',
                'is_distributed', 'node_group', 'numbers_of_group', 'propagate', 'reached_by_groups', 'registries_in_use',
                'registry_identity', 'unbind_own', 'advance_sequence', 'as_owner', 'bind_sequences', 'check_attach', 'check_column', 'check_detach', 'check_kind', 'check_others_of_sequence',
                'check_room_above', 'column_maximum', 'check_snowflake_above', 'check_table', 'create_sequence', 'create_sequence_for',
                'call_with', 'default_of', 'default_tag', 'drop_identities', 'drop_sequences', 'free_sequence_name', 'function_of', 'generator_keep',
                'highest_id', 'highest_number', 'highest_of_tag', 'id_default', 'identity_sequence', 'kept_sequence',
                'kind_of_default', 'lock_relation', 'lock_table', 'progress_end', 'progress_enter', 'progress_tables', 'qualified_name', 'restore_identity', 'restore_sequence', 'resume_sequences',
                'seed_tag', 'sequence_bind', 'sequence_check_layout', 'sequence_check_owned', 'sequence_check_redirects', 'sequence_course', 'sequence_forget_dropped',
                'sequence_is_bound', 'sequence_move', 'sequence_obstacle', 'sequence_position', 'sequence_put',
                'sequence_reach', 'sequence_resume_above', 'sequence_unbind', 'sequences_of', 'set_default',
                'set_sequence', 'table_and_below', 'tag_of_default', 'tell_numbers_go_on', 'tell_replaced_defaults',
                'tell_other_servers', 'tell_shared_tag', 'tell_tables_without_identity', 'tell_tag_stays', 'unbind_sequences']) AS f), 'EXECUTE'),
        ('tags', 'TABLE snowflake_ids.received', 'SELECT'),
        ('tags', 'TABLE snowflake_ids.sequence_binding', 'SELECT, INSERT, UPDATE, DELETE'),
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
        ('registry', 'FUNCTION snowflake_ids.worker_release', 'EXECUTE'),
        ('registry', 'TABLE snowflake_ids.registry_server', 'SELECT'),
        ('registry', 'TABLE snowflake_ids.received', 'SELECT'),
        ('registry', 'TABLE snowflake_ids.worker_lease', 'SELECT'),
        ('state', 'FUNCTION snowflake_ids.state_reset', 'EXECUTE'),
        ('state', 'FUNCTION snowflake_ids.state_adopt', 'EXECUTE'),
        ('state', 'FUNCTION snowflake_ids.clock_accept', 'EXECUTE')
    ) AS o (of_part, object, privileges)
    WHERE o.of_part = administration_objects.part;
    IF part IS NULL OR part NOT IN ('tags', 'generators', 'series', 'registry', 'state') THEN
        RAISE EXCEPTION 'unrecognized part of the administration: "%"', left(coalesce(part, 'null'), 128) USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'The parts are tags, generators, series, registry and state.';
    END IF;
END
$$;

REVOKE EXECUTE ON FUNCTION snowflake_ids.stats_reset(text), snowflake_ids_internal.progress_enter(text, oid, text),
    snowflake_ids_internal.progress_tables(bigint, bigint), snowflake_ids_internal.progress_end(text),
    snowflake_ids_internal.segment_counts(), snowflake_ids_internal.segment_totals(), snowflake_ids_internal.library_version(),
    snowflake_ids_internal.layout_seconds_left(text), snowflake_ids_internal.progress_places() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    snowflake_ids_internal.segment_counts(), snowflake_ids_internal.segment_totals(), snowflake_ids_internal.library_version(),
    snowflake_ids_internal.layout_seconds_left(text), snowflake_ids_internal.progress_places() TO PUBLIC;
/* What comes with the administration of tags now. */
DO $$
DECLARE
    grantee oid;
BEGIN
    FOR grantee IN SELECT a.grantee FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS a
        WHERE p.oid = 'snowflake_ids.segment_create'::regproc AND a.grantee NOT IN (0, p.proowner)
    LOOP
        PERFORM snowflake_ids.administration_grant('tags', pg_get_userbyid(grantee));
    END LOOP;
END
$$;

/* Comments on them. */
COMMENT ON FUNCTION snowflake_ids.status_history() IS 'what this server did in the last hour, a row for each sample';
COMMENT ON COLUMN snowflake_ids.segment_status.remaining_ids IS 'how many ids the tag has left up to its max_value';
COMMENT ON COLUMN snowflake_ids.segment_status.refill_time IS 'how long its refills took in all';
COMMENT ON COLUMN snowflake_ids.segment_status.wait_time IS 'how long calls waited for it in all';
COMMENT ON COLUMN snowflake_ids.segment_status.stats_reset IS 'since when its counts are counted';
COMMENT ON COLUMN snowflake_ids.progress.pid IS 'the process of the call';
COMMENT ON COLUMN snowflake_ids.progress.datid IS 'the database that it works in, by its oid';
COMMENT ON COLUMN snowflake_ids.progress.datname IS 'the database that it works in';
COMMENT ON COLUMN snowflake_ids.progress.relid IS 'the table that it works on';
COMMENT ON COLUMN snowflake_ids.progress.command IS 'what it does';
COMMENT ON COLUMN snowflake_ids.progress.phase IS 'which part of it';
COMMENT ON COLUMN snowflake_ids.progress.rows_done IS 'how many rows it has read';
COMMENT ON COLUMN snowflake_ids.progress.rows_total IS 'how many rows there are, as the planner estimates';
COMMENT ON COLUMN snowflake_ids.progress.tables_done IS 'how many tables, or partitions, are done';
COMMENT ON COLUMN snowflake_ids.progress.tables_total IS 'how many tables, or partitions, there are';
COMMENT ON COLUMN snowflake_ids.progress.started_at IS 'when the call began';
COMMENT ON COLUMN snowflake_ids.metric_node.layout IS 'what its ids look like';
COMMENT ON COLUMN snowflake_ids.metric_node.datacenter_id IS 'its datacenter';
COMMENT ON COLUMN snowflake_ids.metric_node.worker_id IS 'its worker id';
COMMENT ON COLUMN snowflake_ids.metric_node.rollback IS 'its rollback value';
COMMENT ON COLUMN snowflake_ids.metric_node.scope IS 'where the worker id comes from';
COMMENT ON COLUMN snowflake_ids.status_history.sampled_at IS 'when the later of the two readings was taken';
COMMENT ON COLUMN snowflake_ids.status_history.elapsed IS 'the time between the readings, by a clock that cannot be stepped';
COMMENT ON COLUMN snowflake_ids.status_history.ids_per_second IS 'snowflake ids';
COMMENT ON COLUMN snowflake_ids.status_history.segment_ids_per_second IS 'ids of tags, of all databases; null where it is not known';
COMMENT ON COLUMN snowflake_ids.status_history.drift IS 'how far the last id was ahead of the clock at the end';
COMMENT ON COLUMN snowflake_ids.status_history.waits IS 'calls that found the buffers of a tag used up; null where it is not known';
COMMENT ON COLUMN snowflake_ids.status_history.refills IS 'segments that were fetched; null where it is not known';
COMMENT ON COLUMN snowflake_ids.status_history.steps_back IS 'steps of the clock back';
COMMENT ON COLUMN snowflake_ids.status_history.steps_forward IS 'steps of the clock forward';
COMMENT ON COLUMN snowflake_ids.status_history.clock_ahead IS 'how far the clock was ahead without being followed';
