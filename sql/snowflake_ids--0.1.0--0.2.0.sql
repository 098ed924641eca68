/* From 0.1.0 to 0.2.0. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* Functions keep the extension from being dropped while they run. */
CREATE FUNCTION snowflake_ids_internal.extension_keep() RETURNS void
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'extension_keep_wrapper';
REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.extension_keep() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_ids_internal.extension_keep() TO PUBLIC;

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

/* The transaction that creates a dense series counts its keys itself: a worker finds no row, or a table that is locked. */
DROP TRIGGER series_recounted ON snowflake_ids.series;
CREATE TRIGGER series_recounted AFTER INSERT OR UPDATE ON snowflake_ids.series
    FOR EACH ROW WHEN (NEW.kind = 'dense') EXECUTE FUNCTION snowflake_ids_internal.series_changed();
ALTER TABLE snowflake_ids.series ENABLE ALWAYS TRIGGER series_recounted;

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

CREATE  FUNCTION snowflake_ids_internal."dense_counts"() RETURNS TABLE (
	"keys" bigint,  /* i64 */
	"places" bigint,  /* i64 */
	"rounds" bigint,  /* i64 */
	"reservations" bigint,  /* i64 */
	"reserved" bigint,  /* i64 */
	"evictions" bigint,  /* i64 */
	"evicted" bigint,  /* i64 */
	"waits" bigint,  /* i64 */
	"wait_seconds" double precision  /* f64 */
)
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c /* Rust */
AS 'MODULE_PATHNAME', 'dense_counts_wrapper';

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

CREATE VIEW snowflake_ids.metric_dense AS
SELECT c.keys::double precision AS keys, c.places::double precision AS places, c.rounds::double precision AS rounds_total,
       c.reservations::double precision AS reservations_total, c.reserved::double precision AS reserved_total,
       c.evictions::double precision AS evictions_total, c.evicted::double precision AS evicted_total,
       c.waits::double precision AS waits_total, c.wait_seconds AS wait_seconds_total
FROM snowflake_ids_internal.dense_counts() AS c;
COMMENT ON VIEW snowflake_ids.metric_dense IS
    'keys of dense series of all databases in memory, and what was done for them since this server started, for exporters of metrics';
COMMENT ON COLUMN snowflake_ids.metric_dense.keys IS 'Keys in memory.';
COMMENT ON COLUMN snowflake_ids.metric_dense.places IS 'Keys that memory has room for, by the setting series_memory.';
COMMENT ON COLUMN snowflake_ids.metric_dense.rounds_total IS 'Transactions of workers that reserved numbers or had keys leave memory.';
COMMENT ON COLUMN snowflake_ids.metric_dense.reservations_total IS 'Reservations of these workers, each of one key.';
COMMENT ON COLUMN snowflake_ids.metric_dense.reserved_total IS 'Numbers that these reservations got.';
COMMENT ON COLUMN snowflake_ids.metric_dense.evictions_total IS 'Keys with numbers left that left memory for others.';
COMMENT ON COLUMN snowflake_ids.metric_dense.evicted_total IS 'Numbers that these keys had left.';
COMMENT ON COLUMN snowflake_ids.metric_dense.waits_total IS 'Calls that found no number of their key in memory.';
COMMENT ON COLUMN snowflake_ids.metric_dense.wait_seconds_total IS 'What these calls waited.';

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
    snowflake_ids.metric_generator, snowflake_ids.metric_series, snowflake_ids.metric_dense, snowflake_ids.metric_registry TO PUBLIC;

CREATE VIEW snowflake_ids.progress AS
SELECT p.pid, p.datid, d.datname, p.relid, p.command, p.phase, p.rows_done, p.rows_total, p.tables_done, p.tables_total, p.started_at
FROM snowflake_ids_internal.progress_places() AS p LEFT JOIN pg_catalog.pg_database AS d ON d.oid = p.datid;
COMMENT ON VIEW snowflake_ids.progress IS 'how far calls of audit, attach and detach have come';
GRANT SELECT ON snowflake_ids.progress TO PUBLIC;

CREATE OR REPLACE FUNCTION snowflake_ids.attach(relation regclass, "column" name, kind text DEFAULT 'snowflake',
    tag text DEFAULT NULL, sequence text DEFAULT 'redirect', generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
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
    IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
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
        PERFORM snowflake_ids_internal.seed_tag(tag, highest, snowflake_ids_internal.column_maximum(relation, "column"));
    END IF;
    IF sequence COLLATE "C" = 'redirect' THEN
        PERFORM snowflake_ids_internal.bind_sequences(relation, "column", kind, tag, generator);
    ELSIF sequence COLLATE "C" = 'drop' THEN
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
    PERFORM snowflake_ids_internal.extension_keep();
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
        PERFORM snowflake_ids_internal.check_workers(relation, "column", NULL, NULL, NULL, NULL, kind COLLATE "C" = 'identity');
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
    IF kind COLLATE "C" = 'none' THEN
        PERFORM snowflake_ids_internal.set_default(relation, "column", 'DROP DEFAULT');
    ELSE
        PERFORM snowflake_ids_internal.check_room_above(relation, "column", highest);
        PERFORM snowflake_ids_internal.tell_numbers_go_on(relation, "column", expression, highest) WHERE NOT distributed;
        IF kind COLLATE "C" = 'sequence' THEN
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
    FROM (SELECT DISTINCT snowflake_ids_internal.tag_of_default(snowflake_ids_internal.default_of(b, attribute COLLATE "C")) AS t
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
    WHERE o.of_part = administration_objects.part COLLATE "C";
    IF part IS NULL OR part COLLATE "C" NOT IN ('tags', 'generators', 'series', 'registry', 'state') THEN
        RAISE EXCEPTION 'unrecognized part of the administration: "%"', left(coalesce(part, 'null'), 128) USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'The parts are tags, generators, series, registry and state.';
    END IF;
END
$$;

REVOKE EXECUTE ON FUNCTION snowflake_ids.stats_reset(text), snowflake_ids_internal.progress_enter(text, oid, text),
    snowflake_ids_internal.progress_tables(bigint, bigint), snowflake_ids_internal.progress_end(text),
    snowflake_ids_internal.segment_counts(), snowflake_ids_internal.segment_totals(), snowflake_ids_internal.dense_counts(),
    snowflake_ids_internal.library_version(),
    snowflake_ids_internal.layout_seconds_left(text), snowflake_ids_internal.progress_places() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    snowflake_ids_internal.segment_counts(), snowflake_ids_internal.segment_totals(), snowflake_ids_internal.dense_counts(),
    snowflake_ids_internal.library_version(),
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
COMMENT ON COLUMN snowflake_ids.status_history.segment_ids_per_second IS 'ids of tags, of all databases';
COMMENT ON COLUMN snowflake_ids.status_history.drift IS 'how far the last id was ahead of the clock at the end';
COMMENT ON COLUMN snowflake_ids.status_history.waits IS 'calls that found the buffers of a tag used up, of all databases';
COMMENT ON COLUMN snowflake_ids.status_history.refills IS 'segments that were fetched, of all databases';
COMMENT ON COLUMN snowflake_ids.status_history.steps_back IS 'steps of the clock back';
COMMENT ON COLUMN snowflake_ids.status_history.steps_forward IS 'steps of the clock forward';
COMMENT ON COLUMN snowflake_ids.status_history.clock_ahead IS 'how far the clock was ahead without being followed';

/* Names are compared by their bytes, whatever the collation of what a caller gives. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.seed_tag(tag text, highest bigint, most bigint) RETURNS void
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
    IF NOT FOUND THEN
        -- From 1: RESTART of a sequence that is bound to it leads there again.
        PERFORM snowflake_ids.segment_create(tag, max_value => most);
        PERFORM snowflake_ids.segment_raise(tag, highest);
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
            MESSAGE = format('segment tag "%s" has ids that the column cannot hold', tag),
            DETAIL = format('Its max_value is %s; the highest that the column can hold is %s.', known.max_value, most),
            HINT = format('Lower it with SELECT snowflake_ids.segment_alter(%L, max_value => %s), or attach with another tag.',
                tag, most);
    ELSE
        PERFORM snowflake_ids.segment_raise(tag, highest);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_others_of_sequence(sequence regclass, relation regclass, attribute name)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other record;
BEGIN
    FOR other IN
        WITH RECURSIVE used AS (
            SELECT f.adrelid::regclass AS relation, a.attname AS attribute, a.atttypid AS type
            FROM pg_depend d JOIN pg_attrdef f ON f.oid = d.objid
                JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
            WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = sequence
                AND (f.adrelid NOT IN (SELECT snowflake_ids_internal.table_and_below(check_others_of_sequence.relation))
                    OR a.attname <> check_others_of_sequence.attribute COLLATE "C")
            UNION
            SELECT u.relation, u.attribute, t.typbasetype FROM used u JOIN pg_type t ON t.oid = u.type WHERE t.typtype = 'd'
        )
        SELECT u.relation, u.attribute, u.type::regtype AS type,
            CASE u.type WHEN 'smallint'::regtype THEN 32767 WHEN 'integer'::regtype THEN 2147483647 END AS most
        FROM used u JOIN pg_type t ON t.oid = u.type WHERE t.typtype <> 'd'
        ORDER BY most NULLS LAST, u.relation::text, u.attribute
    LOOP
        IF other.most < snowflake_ids_internal.column_maximum(relation, attribute) THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('column "%s" of relation "%s" takes ids of sequence "%s", too, and cannot hold them',
                    other.attribute, other.relation, sequence),
                DETAIL = format('It is %s, whose maximum is %s.', other.type, other.most),
                HINT = 'Attach with sequence => ''keep'', which leaves the sequence its own numbers, or widen that column first.';
        END IF;
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" gets ids, too', other.attribute, other.relation),
            DETAIL = format('Its default takes them from sequence "%s".', sequence),
            HINT = 'To leave it as it is, attach with sequence => ''keep''.';
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.restore_identity(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept regclass := snowflake_ids_internal.kept_sequence(relation, attribute);
    sequence regclass;
    course record;
BEGIN
    IF NOT (SELECT a.attnotnull FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C") THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" must be NOT NULL to be an identity',
                attribute, relation),
            HINT = format('Set it NOT NULL first: ALTER TABLE %s ALTER COLUMN %I SET NOT NULL;', relation, attribute);
    END IF;
    PERFORM snowflake_ids_internal.set_default(relation, attribute, 'DROP DEFAULT');
    IF kept IS NULL THEN
        SELECT NULL AS options INTO course;
    ELSE
        SELECT * INTO course FROM snowflake_ids_internal.sequence_course(kept);
        PERFORM snowflake_ids_internal.drop_sequences(relation, attribute);
    END IF;
    -- With the caller's rights: it makes a sequence where the owner need not be allowed to, and reads no row.
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED BY DEFAULT AS IDENTITY %s', relation, attribute,
        '(' || course.options || ')');
    sequence := snowflake_ids_internal.identity_sequence(relation, attribute);
    IF sequence IS NULL THEN
        RAISE object_in_use USING
            MESSAGE = format('the schema of relation "%s" was renamed meanwhile', relation),
            HINT = 'Try again.';
    ELSIF kept IS NOT NULL THEN
        PERFORM snowflake_ids_internal.set_sequence(sequence, course.last_value, course.is_called);
    END IF;
    PERFORM snowflake_ids_internal.advance_sequence(sequence, highest);
    PERFORM snowflake_ids_internal.tell_tables_without_identity(relation, attribute);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.kept_sequence(relation regclass, attribute name) RETURNS regclass
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept regclass := (SELECT s.sequence FROM snowflake_ids_internal.sequences_of(relation, attribute) s
        WHERE s.owner = relation ORDER BY s.sequence LIMIT 1);
BEGIN
    IF kept IS NOT NULL THEN
        PERFORM snowflake_ids_internal.as_owner(kept, format('ALTER SEQUENCE %s AS %s', kept, a.atttypid::regtype))
        FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C";
    END IF;
    RETURN kept;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_column(relation regclass, attribute name, kind text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_column pg_attribute;
BEGIN
    SELECT * INTO found_column FROM pg_attribute a
    WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C" AND a.attnum > 0;
    IF NOT FOUND THEN
        RAISE undefined_column USING
            MESSAGE = format('column "%s" of relation "%s" does not exist', attribute, relation);
    ELSIF found_column.atttypid <> 'bigint'::regtype
        AND NOT (kind COLLATE "C" = 'segment' AND found_column.atttypid = 'integer'::regtype) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('column "%s" of relation "%s" must be bigint', attribute, relation),
            DETAIL = format('It is %s; ids have 64 bits.', found_column.atttypid::regtype),
            HINT = CASE WHEN found_column.atttypid IN ('integer'::regtype, 'smallint'::regtype) THEN
                format('Widen it, which rewrites the table, and likewise the columns that refer to it: '
                    'ALTER TABLE %s ALTER COLUMN %I TYPE bigint.', relation, attribute)
                || CASE found_column.atttypid WHEN 'integer'::regtype
                    THEN ' Or attach it with kind => ''segment''.' ELSE '' END
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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_room_above(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF highest >= snowflake_ids_internal.column_maximum(relation, attribute) THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('no ids are left above those of column "%s" of relation "%s"', attribute, relation),
            DETAIL = format('The highest is %s, the end of %s.', highest,
                (SELECT a.atttypid::regtype FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C")),
            HINT = 'Give the rows at the end of the range other ids first.';
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
            MESSAGE = format('column "%s" of relation "%s" has ids above those to come', attribute, relation),
            DETAIL = format('The highest is %s; %s is at %s.', highest, replace(expression COLLATE "C", '::text', ''), following),
            HINT = CASE WHEN expression = snowflake_ids_internal.id_default('snowflake', NULL) THEN
                'They may be of another layout: set snowflake_ids.layout to theirs, or attach with kind => ''segment''.'
                ELSE 'They may be of another layout: attach with a generator of theirs, or with kind => ''segment''.' END;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.column_maximum(relation regclass, attribute name) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE a.atttypid WHEN 'integer'::regtype THEN 2147483647 ELSE 9223372036854775807 END
    FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C"
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequences_of(relation regclass, attribute name)
RETURNS TABLE (sequence regclass, owner regclass)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
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
    GROUP BY s.oid
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.identity_sequence(relation regclass, attribute name) RETURNS regclass
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.objid::regclass
    FROM pg_attribute a JOIN pg_depend d ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum
    WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C" AND d.deptype = 'i'
        AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.highest_of_tag(tag text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        RETURN (SELECT max(r.max_id) FROM snowflake_ids.received r WHERE r.tag = highest_of_tag.tag COLLATE "C");
    END IF;
    RETURN snowflake_ids.segment_raise(tag, 0);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.call_with(function text, argument text) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%s(''%s''::text)', function, replace(argument COLLATE "C", '''', ''''''))
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.kind_of_default(expression text) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN expression COLLATE "C" = snowflake_ids_internal.id_default('snowflake', NULL) THEN 'snowflake'
        ELSE (SELECT kind
            FROM (SELECT kind, snowflake_ids_internal.function_of(kind) || $q$('$q$ AS before, $q$'::text)$q$ AS behind
                FROM unnest(ARRAY['snowflake', 'segment']) AS kinds (kind)) AS ours
            WHERE starts_with(expression COLLATE "C", before) AND right(expression COLLATE "C", length(behind)) = behind
                -- One literal: quotes within it are doubled.
                AND strpos(replace(substr(expression COLLATE "C", length(before) + 1,
                    greatest(length(expression) - length(before) - length(behind), 0)), $q$''$q$, ''), $q$'$q$) = 0) END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.default_of(relation regclass, attribute name) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN snowflake_ids_internal.kind_of_default(renamed) IS NULL THEN written ELSE renamed END
    FROM (SELECT written, regexp_replace(written, E'^(snowflake|segment)_id\\(', E'\\1_nextval(') AS renamed
        FROM (SELECT pg_get_expr(d.adbin, d.adrelid) AS written
            FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C") AS w) AS r
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.above_other_nodes(highest bigint, former text, expression text) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN highest < 1::bigint << 48 OR former IS NOT DISTINCT FROM expression COLLATE "C" THEN highest
        WHEN snowflake_ids_internal.kind_of_default(former) COLLATE "C" = 'snowflake'
            THEN least(highest::numeric + (1::bigint << 42), 9223372036854775807)::bigint
        ELSE least(highest::numeric + (1::bigint << 36), 9223372036854775807)::bigint END
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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.detach_worker(relation_name text, attribute name, kind text, sequence_name text,
    reached jsonb, timeout text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
DECLARE
    relation regclass := relation_name;
    node_group int := snowflake_ids_internal.node_group();
    numbers record := snowflake_ids_internal.numbers_of_group(node_group);
    highest bigint := (reached ->> node_group::text)::bigint;
    is_wide boolean := (SELECT a.atttypid = 'bigint'::regtype FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = attribute COLLATE "C");
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
    sequence := snowflake_ids_internal.kept_sequence(relation, attribute);
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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.discard_received(tag text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    UPDATE snowflake_ids.received AS r SET version = NULL WHERE r.tag = discard_received.tag COLLATE "C";
    PERFORM snowflake_ids.segment_discard(tag);
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
            IF old <> expression COLLATE "C" THEN
                PERFORM snowflake_ids_internal.tell_tag_stays(old);
            END IF;
        ELSIF old IS NOT NULL AND NOT EXISTS (SELECT FROM snowflake_ids_internal.sequences_of(relation, attribute) s
            WHERE s.owner IS NOT NULL AND old = format('nextval(%L::regclass)', s.sequence)) THEN
            RAISE NOTICE 'default % of column "%" of relation "%" is replaced', old, attribute, member;
        END IF;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.tell_tables_without_identity(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    without text := (SELECT string_agg(b::text, ', ' ORDER BY b::text)
        FROM snowflake_ids_internal.table_and_below(relation) b
            JOIN pg_attribute a ON a.attrelid = b AND a.attname = attribute COLLATE "C"
        WHERE a.attidentity = '');
BEGIN
    IF without IS NOT NULL THEN
        RAISE NOTICE USING
            MESSAGE = format('tables below "%s" have no default for column "%s"', relation, attribute),
            DETAIL = format('Rows inserted into them directly need one: %s.', without),
            HINT = 'A sequence serves them too: detach with kind => ''sequence''.';
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.tell_shared_tag(relation regclass, attribute name, expression text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other regclass;
    other_attribute name;
BEGIN
    SELECT d.adrelid, a.attname INTO other, other_attribute
    FROM pg_depend p JOIN pg_attrdef d ON p.classid = 'pg_attrdef'::regclass AND d.oid = p.objid
        JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE p.refclassid = 'pg_proc'::regclass AND p.refobjid IN
            ('pg_catalog.segment_nextval(text)'::regprocedure, 'pg_catalog.segment_id(text)'::regprocedure)
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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_map(server name, options text[]) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    owner name;
BEGIN
    PERFORM set_config('pg_stat_statements.track_utility', 'off', true);
    SELECT pg_get_userbyid(c.relowner) INTO owner FROM pg_class AS c WHERE c.oid = 'snowflake_ids.segment'::regclass;
    IF NOT EXISTS (SELECT FROM pg_user_mappings AS m WHERE m.srvname = server COLLATE "C" AND m.usename = owner COLLATE "C"
        AND coalesce(m.umoptions, '{}') = options COLLATE "C") THEN
        EXECUTE format('DROP USER MAPPING IF EXISTS FOR %I SERVER %I', owner, server);
        EXECUTE format('CREATE USER MAPPING FOR %I SERVER %I %s', owner, server,
            (SELECT 'OPTIONS (' || string_agg(format('%I %L', o.option_name, o.option_value), ', ') || ')'
             FROM pg_options_to_table(options) AS o));
    END IF;
    RETURN '';
EXCEPTION WHEN OTHERS OR query_canceled THEN
    RETURN format('its user mapping was not made: %s', SQLERRM);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.citus_use(server name, identity text, timeline bigint) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    used    record;
    found   json;
    message text;
    detail  text;
    hint    text;
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
EXCEPTION WHEN OTHERS THEN
    -- Citus passes nothing on but the message.
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE EXCEPTION '%', concat_ws(' ', message || '.', nullif(detail, ''), nullif(hint, '')) USING ERRCODE = SQLSTATE;
END
$$;

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
BEGIN
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
            format('SELECT snowflake_ids_internal.citus_use(%L, %L, %L)', server, identity, timeline), false);
    END IF;
    -- While the coordinator gives ids of its own, none goes to the registry.
    IF NOT EXISTS (SELECT FROM snowflake_ids_internal.citus_nodes() AS n WHERE n.group_id = 0 AND told ? n.node_id::text) THEN
        told := told || snowflake_ids_internal.citus_tell(format('SELECT snowflake_ids_internal.citus_use(%L, %L, %L)',
            coalesce(server, 'citus_coordinator'), identity, timeline), true);
    END IF;
    told := told || coalesce(mapped, '{}');

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
    RAISE NOTICE '% nodes use one registry, each with a worker id of its own', nodes USING
        DETAIL = format('Worker ids: %s.', workers);
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
        WHERE EXISTS (SELECT FROM unnest(ARRAY['snowflake_nextval', 'snowflake_id', 'snowflake_uuid', 'snowflake_uuid_text']) AS call (called)
            WHERE strpos(pg_get_expr(f.adbin, f.adrelid), (called || argument) COLLATE "C") > 0
                AND EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                    AND d.refclassid = 'pg_proc'::regclass
                    AND d.refobjid = format('pg_catalog.%I(text)', called)::regprocedure))
        UNION ALL
        SELECT format('sequence %s is bound to it', b.sequence)
        FROM snowflake_ids.sequence_binding AS b
        WHERE bound AND b.generator = name COLLATE "C" AND EXISTS (SELECT FROM pg_sequence AS s WHERE s.seqrelid = b.sequence)
    ) AS u (text);
    RETURN users;
END
$$;

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
    former snowflake_ids.generator;
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.administration_change(statement text, part text, role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    object_name text;
    object_privileges text;
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    IF snowflake_ids_internal.segment_grantee(role) = 0 THEN
        RAISE EXCEPTION 'cannot grant administration to public' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'It is for roles that are trusted with it.',
            HINT = 'Name a role.';
    END IF;
    FOR object_name, object_privileges IN SELECT o.object, o.privileges FROM snowflake_ids_internal.administration_objects(part) AS o
        -- The schemas are for each of the parts: they are revoked last, with the last of them.
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

CREATE OR REPLACE FUNCTION snowflake_ids.use_registry(VARIADIC servers name[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    IF coalesce(cardinality(servers), 0) = 0 OR EXISTS (SELECT FROM unnest(servers COLLATE "C") AS s WHERE coalesce(s, '') = '') THEN
        RAISE EXCEPTION 'the name of a registry must not be null or empty' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'It is the name of a foreign server.',
            HINT = 'To do without: SELECT snowflake_ids.use_local_registry().';
    ELSIF (SELECT count(DISTINCT s) <> count(*) FROM unnest(servers COLLATE "C") AS s) THEN
        RAISE EXCEPTION 'registries must be different ones' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = format('Given are: %s.', array_to_string(servers, ', '));
    END IF;
    PERFORM snowflake_ids_internal.registry_join(to_json(servers)::text);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.registry_place(server name) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    place text;
BEGIN
    IF server COLLATE "C" = 'citus_coordinator' AND to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN
        EXECUTE 'SELECT format($f$host %s, port %s$f$, n.nodename, n.nodeport) FROM pg_catalog.pg_dist_node AS n
            WHERE n.groupid = 0 ORDER BY n.nodeid LIMIT 1' INTO place;
    ELSE
        SELECT string_agg(format('%s %s', o.option_name, o.option_value), ', ' ORDER BY o.option_name = 'port', o.option_name) INTO place
        FROM pg_foreign_server AS s, pg_options_to_table(s.srvoptions) AS o
        WHERE s.srvname = server COLLATE "C" AND o.option_name IN ('host', 'hostaddr', 'port') AND o.option_value <> '';
    END IF;
    RETURN left(place, 1000);
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
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.segment_unknown(tag);
    END IF;
    IF owner IS NOT NULL THEN
        PERFORM snowflake_ids_internal.segment_set_owner(tag, owner);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_drop(tag text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.segment_check_tag(tag);
    PERFORM snowflake_ids_internal.segment_check_home();
    DELETE FROM snowflake_ids.segment AS s WHERE s.tag = segment_drop.tag COLLATE "C";
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.segment_unknown(tag);
    END IF;
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
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.segment_unknown(tag);
    END IF;
    RETURN reserved;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_move(
    tag text, max_id bigint, exact boolean DEFAULT true, force boolean DEFAULT false
) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE snowflake_ids.segment AS s
    SET max_id = segment_move.max_id, period = greatest(s.period, snowflake_ids_internal.segment_period(s.reset, s.time_zone)),
        version = snowflake_ids_internal.random_number(), update_time = clock_timestamp(),
        life = CASE WHEN force THEN snowflake_ids_internal.random_number() ELSE s.life END,
        timeline = CASE WHEN exact THEN snowflake_ids_internal.timeline() ELSE s.timeline END,
        system_identifier = CASE WHEN exact THEN snowflake_ids_internal.system_identifier() ELSE s.system_identifier END
    WHERE s.tag = segment_move.tag COLLATE "C"
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_grantee(role name) RETURNS oid
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found_role oid := (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = role COLLATE "C");
BEGIN
    IF role IS NULL THEN
        RAISE EXCEPTION 'role must not be null' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'It is the name of a role, or public.';
    ELSIF found_role IS NULL AND lower(role COLLATE "C") <> 'public' THEN
        RAISE EXCEPTION 'role "%" does not exist', role USING
            ERRCODE = 'undefined_object',
            DETAIL = 'Privileges are granted to roles of this server, or to public.',
            HINT = 'Create it with CREATE ROLE, or correct its name.';
    END IF;
    RETURN coalesce(found_role, 0);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_restrict(tag text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM snowflake_ids.segment AS s WHERE s.tag = segment_restrict.tag COLLATE "C" FOR KEY SHARE;
    IF NOT FOUND AND NOT EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        PERFORM snowflake_ids_internal.segment_unknown(tag);
    END IF;
    -- What is left of roles that were dropped.
    DELETE FROM snowflake_ids.segment_privilege AS p
    WHERE p.tag = segment_restrict.tag COLLATE "C" AND p.grantee <> 0 AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = p.grantee);
    INSERT INTO snowflake_ids.segment_restricted AS r (tag) VALUES (segment_restrict.tag) ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_remove_privileges(tag text, grantee oid, privileges text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE snowflake_ids.segment_privilege AS p
    SET privileges = snowflake_ids_internal.segment_privileges(p.privileges, '', $3)
    WHERE p.tag = $1 COLLATE "C" AND p.grantee = $2;
    DELETE FROM snowflake_ids.segment_privilege AS p WHERE p.tag = $1 COLLATE "C" AND p.grantee = $2 AND p.privileges = ''
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.segment_set_owner(tag text, owner name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    new_owner oid := snowflake_ids_internal.segment_grantee(owner);
BEGIN
    IF new_owner = 0 THEN
        RAISE EXCEPTION 'segment tag "%" cannot belong to public', tag USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'Its owner is a role.',
            HINT = format('To have every role use it: SELECT snowflake_ids.segment_grant(%L, ''public'', ''USAGE'').', tag);
    END IF;
    PERFORM snowflake_ids_internal.segment_restrict(tag);
    PERFORM snowflake_ids_internal.segment_remove_privileges(p.tag, p.grantee, 'OWNER')
    FROM snowflake_ids.segment_privilege AS p WHERE p.tag = segment_set_owner.tag COLLATE "C";
    PERFORM snowflake_ids_internal.segment_add_privileges(tag, new_owner, 'OWNER');
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
            DETAIL = 'Nothing was revoked.',
            HINT = format('To restrict it: SELECT snowflake_ids.segment_revoke(%L, ''public'', ''ALL'').', tag);
    END IF;
    PERFORM snowflake_ids_internal.segment_remove_privileges(tag, grantee, privileges);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.sequence_raise(tag text, value bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reached bigint;
BEGIN
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        SELECT max(r.max_id) INTO reached FROM snowflake_ids.received AS r WHERE r.tag = sequence_raise.tag COLLATE "C";
        IF reached >= value OR NOT snowflake_ids_internal.registry_seed(tag, value) THEN
            RETURN reached;
        END IF;
        RETURN value;
    END IF;
    RETURN snowflake_ids_internal.segment_raise(tag, value);
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
                SELECT f.adrelid AS relation, pg_get_expr(f.adbin, f.adrelid) AS written FROM pg_attrdef AS f
                UNION ALL SELECT 0::oid, pg_get_expr(t.typdefaultbin, 0) FROM pg_type AS t WHERE t.typtype = 'd') AS f
            WHERE EXISTS (
                    SELECT FROM unnest(ARRAY['segment_nextval', 'segment_id', 'segment_nextval_text']) AS call (called)
                    WHERE strpos(f.written, snowflake_ids_internal.call_with(called, tag) COLLATE "C") > 0)
                AND f.relation NOT IN (
                    SELECT t FROM pg_depend AS d, snowflake_ids_internal.table_and_below(d.refobjid::regclass) AS t
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence AND d.refclassid = 'pg_class'::regclass
                        AND d.deptype IN ('a', 'i')));
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
            MESSAGE = format('no ids are left above the numbers of sequence "%s"', sequence),
            DETAIL = 'It stands at the end of bigint, where DROP EXTENSION, or a dump of a part of the database, leaves a bound sequence.',
            HINT = format('If it was left there, SELECT setval(%L, number) with the highest number that is in use, and bind it again.',
                sequence);
    END IF;
    IF kind COLLATE "C" = 'segment' THEN
        PERFORM snowflake_ids_internal.seed_tag(tag, greatest(highest, 0), most);
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
    PERFORM snowflake_ids_internal.sequence_forget_dropped();
    PERFORM snowflake_ids_internal.sequence_put(sequence, terms.seqmax, true);
    INSERT INTO snowflake_ids.sequence_binding (sequence, tag, last_number, generator)
    VALUES (sequence, CASE WHEN kind COLLATE "C" = 'segment' THEN tag END, highest, generator);
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
    IF new_name <> name COLLATE "C" THEN
        PERFORM snowflake_ids_internal.series_check_unused(name, 'rename');
    END IF;
    UPDATE snowflake_ids.series AS s
    SET max_value = coalesce(max_value, s.max_value),
        time_zone = coalesce(time_zone, s.time_zone),
        format = coalesce(format, s.format),
        description = coalesce(description, s.description),
        step = coalesce(step, s.step),
        max_step = coalesce(max_step, s.max_step)
    WHERE s.name = name COLLATE "C";
    -- Not above: while a column of a key is written, no worker reads the row, also where it is written as it was.
    IF new_name <> name COLLATE "C" THEN
        UPDATE snowflake_ids.series AS s SET name = new_name WHERE s.name = name COLLATE "C";
    END IF;
    IF owner IS NOT NULL THEN
        PERFORM snowflake_ids_internal.series_set_owner(coalesce(new_name, name), owner);
    END IF;
EXCEPTION WHEN unique_violation THEN
    PERFORM snowflake_ids_internal.series_taken(new_name);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.series_add_trigger(series text, relation regclass, column_name text, key_column text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    -- Of a long name, what tells it from others is at its end.
    trigger_name name := 'snowflake_ids_fill_' || CASE WHEN octet_length(column_name) <= 44 THEN column_name ELSE md5(column_name) END;
BEGIN
    EXECUTE format('CREATE TRIGGER %I BEFORE INSERT ON %s FOR EACH ROW WHEN (NEW.%I IS NULL)
        EXECUTE FUNCTION snowflake_ids_internal.series_fill(%L, %L, %L)',
        trigger_name, relation, column_name, series, column_name, key_column);
    -- Names may change hands.
    IF NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = relation AND t.tgname = trigger_name COLLATE "C") THEN
        RAISE serialization_failure USING MESSAGE = format('table %s was changed meanwhile', relation), HINT = 'Try again.';
    END IF;
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
    PERFORM snowflake_ids_internal.extension_keep();
    IF relation IS NULL OR column_name IS NULL OR key_column IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'relation, column and key_column must not be null';
    ELSIF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot attach a column to a series in a %s transaction', current_setting('transaction_isolation')),
            DETAIL = 'In an older snapshot the newest rows may be missing.',
            HINT = 'Use a transaction of isolation level read committed.';
    END IF;
    SELECT * INTO of_table FROM pg_class AS c WHERE c.oid = relation;
    IF NOT FOUND THEN
        RAISE undefined_table USING MESSAGE = format('relation with OID %s does not exist', relation::oid);
    ELSIF of_table.relkind NOT IN ('r', 'p') THEN
        RAISE wrong_object_type USING MESSAGE = format('%s is not a table', relation),
            DETAIL = 'A trigger fills the column before a row is stored.';
    ELSIF NOT pg_has_role(of_table.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', relation);
    END IF;
    -- No rows come meanwhile, and the table keeps its name.
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', table_name);
    IF relation::text <> table_name OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation AND c.relowner = of_table.relowner) THEN
        RAISE serialization_failure USING MESSAGE = format('table %s was changed meanwhile', table_name), HINT = 'Try again.';
    END IF;
    SELECT * INTO terms FROM snowflake_ids_internal.series_to_attach(series, of_table.relowner);

    SELECT * INTO of_column FROM pg_attribute AS a
    WHERE a.attrelid = relation AND a.attname = column_name COLLATE "C" AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE undefined_column USING MESSAGE = format('column "%s" of table %s does not exist', column_name, relation);
    END IF;
    SELECT * INTO of_key FROM pg_attribute AS a
    WHERE a.attrelid = relation AND a.attname = key_column COLLATE "C" AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE undefined_column USING MESSAGE = format('column "%s" of table %s does not exist', key_column, relation);
    END IF;
    column_type := of_column.atttypid;
    -- Of a domain, what it is over.
    key_name := (WITH RECURSIVE over (type, typtype, typbasetype) AS (
        SELECT t.oid, t.typtype, t.typbasetype FROM pg_type AS t WHERE t.oid = of_key.atttypid
        UNION ALL
        SELECT t.oid, t.typtype, t.typbasetype FROM pg_type AS t JOIN over AS o ON o.typtype = 'd' AND t.oid = o.typbasetype)
        SELECT format_type(o.type, NULL) FROM over AS o WHERE o.typtype <> 'd');
    IF of_column.attgenerated <> '' OR of_column.attidentity <> '' THEN
        RAISE wrong_object_type USING
            MESSAGE = format('column "%s" of table %s is %s', column_name, relation,
                CASE WHEN of_column.attgenerated <> '' THEN 'generated' ELSE 'an identity column' END),
            DETAIL = 'The server fills it by itself.',
            HINT = CASE WHEN of_column.attgenerated <> '' THEN 'Choose a plain column.'
                ELSE format('ALTER TABLE %s ALTER COLUMN %s DROP IDENTITY.', relation, quote_ident(column_name)) END;
    ELSIF of_key.attgenerated <> '' THEN
        RAISE wrong_object_type USING
            MESSAGE = format('key column "%s" of table %s is generated', key_column, relation),
            DETAIL = 'The server computes it after the trigger.',
            HINT = 'Choose a plain column.';
    ELSIF of_column.atthasdef THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of table %s has a default', column_name, relation),
            DETAIL = 'A row that brings a value keeps it, and so would each row that takes the default.',
            HINT = format('ALTER TABLE %s ALTER COLUMN %s DROP DEFAULT.', relation, quote_ident(column_name));
    ELSIF of_column.attnum = of_key.attnum THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('column "%s" cannot be its own key', column_name),
            HINT = 'Name the column whose values each have numbers of their own as the key.';
    ELSIF column_type NOT IN ('int8'::regtype, 'int4'::regtype, 'int2'::regtype, 'text'::regtype, 'varchar'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column "%s" of table %s is of type %s', column_name, relation, format_type(column_type, of_column.atttypmod)),
            DETAIL = 'A series fills columns of type bigint, integer, smallint, text or varchar; the last two with the number in its format.';
    ELSIF terms.max_value > (CASE column_type WHEN 'int4'::regtype THEN 2147483647 WHEN 'int2'::regtype THEN 32767 ELSE 9223372036854775807 END) THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('column "%s" of type %s cannot hold all numbers of series "%s"', column_name, format_type(column_type, NULL), left(series, 128)),
            DETAIL = format('Its max_value is %s.', terms.max_value),
            HINT = 'Lower it with snowflake_ids.series_alter, or make the column a bigint.';
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
            HINT = 'Detach it first: snowflake_ids.series_detach.';
    END IF;

    -- Above what is there. Of numbers that start over, or are texts, it can't be told in which period they were given. Table by
    -- table: what a table's owner has put into it, as a policy or an index, runs with no other role's rights, and is not even planned.
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
                DETAIL = 'The series goes on above them, and its owner has to read them.',
                HINT = format('Grant UPDATE on the series to role %s, which owns the table, and have that role attach it.',
                              quote_ident(pg_get_userbyid(member.relowner)));
        ELSE
            RAISE NOTICE 'series "%" does not go on above the numbers in table %', left(series, 128), member.name USING
                DETAIL = 'Of numbers that start over, or are texts, it cannot be told how far they are.',
                HINT = 'Set each key with snowflake_ids.series_set before rows come.';
            EXIT;
        END IF;
    END LOOP;
    PERFORM snowflake_ids_internal.series_make_trigger(series, relation, column_name::text, key_column::text);
END
$$;

/* Keywords are compared by their bytes, too. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_attach(relation regclass, attribute name, kind text, tag text,
    sequence text, generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF relation IS NULL OR attribute IS NULL OR sequence IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'relation, column, kind and sequence must not be null';
    ELSIF sequence COLLATE "C" NOT IN ('redirect', 'keep', 'drop') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unrecognized value for sequence: "%s"', left(sequence, 128)),
            HINT = 'Known values are redirect, keep and drop.';
    END IF;
    PERFORM snowflake_ids_internal.check_kind(kind, tag, generator);
    IF sequence COLLATE "C" = 'redirect' THEN
        PERFORM snowflake_ids_internal.sequence_check_redirects();
    END IF;
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
            HINT = 'Leave the tag out, or take kind => ''segment''.';
    ELSIF kind COLLATE "C" = 'segment' AND generator IS NOT NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'ids of a segment tag have no generator',
            DETAIL = format('The generator given is "%s".', left(generator, 128)),
            HINT = 'Leave the generator out, or take kind => ''snowflake''.';
    ELSIF generator IS NOT NULL THEN
        PERFORM snowflake_ids_internal.generator_keep(generator);
    END IF;
    PERFORM snowflake_ids_internal.check_preloaded('snowflake_ids.attach');
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.check_detach(relation regclass, attribute name, kind text)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF relation IS NULL OR attribute IS NULL OR kind IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'relation, column and kind must not be null';
    ELSIF kind COLLATE "C" NOT IN ('sequence', 'identity', 'none') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unrecognized kind "%s"', left(kind, 128)),
            HINT = 'Known kinds are sequence, identity and none.';
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.id_default(kind text, tag text, generator text DEFAULT NULL) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN kind COLLATE "C" = 'segment' THEN snowflake_ids_internal.call_with(f, tag)
        WHEN generator IS NOT NULL THEN snowflake_ids_internal.call_with(f, generator)
        ELSE f || '()' END
    FROM snowflake_ids_internal.function_of(kind) f
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.attach_workers(relation regclass, attribute name, kind text, tag text, sequence text,
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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.attach_worker(relation_name text, attribute name, expression text, kind text, tag text,
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

CREATE OR REPLACE FUNCTION snowflake_ids_internal.tell_numbers_go_on(relation regclass, attribute name, expression text,
    highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF highest > 0 AND snowflake_ids_internal.kind_of_default(expression) COLLATE "C" = 'snowflake' THEN
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" counts on from its highest id', attribute, relation),
            DETAIL = format('It is %s. Snowflake ids that are in the column stay.', highest);
    END IF;
END
$$;

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
    first bigint := snowflake_ids_internal.segment_bigint('start', start);
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
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
            HINT = 'Change it with snowflake_ids.segment_alter, or move it with snowflake_ids.segment_set.';
    END IF;
    IF owner IS NOT NULL THEN
        PERFORM snowflake_ids_internal.segment_set_owner(tag, owner);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids.bind_sequence(sequence regclass, kind text DEFAULT 'snowflake', tag text DEFAULT NULL,
    generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    obstacle record;
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    PERFORM snowflake_ids_internal.sequence_check_redirects();
    IF sequence IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'sequence must not be null';
    END IF;
    PERFORM snowflake_ids_internal.check_kind(kind, tag, generator);
    PERFORM snowflake_ids_internal.sequence_check_owned(sequence);
    PERFORM snowflake_ids_internal.lock_relation(sequence);
    PERFORM snowflake_ids_internal.sequence_check_owned(sequence);
    IF snowflake_ids_internal.sequence_is_bound(sequence) THEN
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
    END IF;
    PERFORM snowflake_ids_internal.sequence_bind(sequence, kind, tag, generator);
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
    sections    integer DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    -- The type's name as it is written with these settings.
    type_name text := coalesce(key_type::text, '');
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    IF kind COLLATE "C" IN ('dense', 'monotonic') THEN
        step := coalesce(step, least(CASE WHEN kind COLLATE "C" = 'dense' THEN 10 ELSE 1000 END, max_step));
        max_step := coalesce(max_step, greatest(CASE WHEN kind COLLATE "C" = 'dense' THEN 10000 ELSE 1000000 END, step));
    END IF;
    IF kind COLLATE "C" = 'monotonic' THEN
        sections := coalesce(sections, 16);
    END IF;
    PERFORM snowflake_ids_internal.series_check(name, kind, type_name, start, max_value, reset, time_zone, format, description, step,
        max_step, sections);
    PERFORM snowflake_ids_internal.series_check_home(kind);
    INSERT INTO snowflake_ids.series (name, kind, key_type, start, max_value, reset, time_zone, format, description, step, max_step,
        sections)
    VALUES (name, kind, type_name, start, max_value, lower(reset COLLATE "C"), time_zone, format, description, step, max_step, sections)
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

/* Settings of the session change nothing that is read of the catalog. */
CREATE OR REPLACE FUNCTION snowflake_ids_internal.default_tag(relation regclass) RETURNS text
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(CASE WHEN strpos(part, '.') > 0 OR starts_with(part, '"') AND strpos(n.nspname || c.relname, '.') > 0
        THEN quote_ident(part) ELSE part END, '.' ORDER BY place)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
        unnest(ARRAY[n.nspname::text, c.relname::text]) WITH ORDINALITY parts (part, place)
    WHERE c.oid = relation
$$;

CREATE OR REPLACE FUNCTION snowflake_ids.series_detach(relation regclass, "column" name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
DECLARE
    trigger_name name := snowflake_ids_internal.series_trigger_of(relation, "column");
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    IF trigger_name IS NULL THEN
        RAISE undefined_object USING
            MESSAGE = format('column "%s" of table %s is not attached to a series', "column", relation),
            DETAIL = 'There is no trigger of the extension that fills it.',
            HINT = 'Of a column that was renamed, give the name that it had when it was attached.';
    END IF;
    EXECUTE format('DROP TRIGGER %I ON %s', trigger_name, relation);
END
$$;

/* Functions keep the extension from being dropped while they run, continued. */
CREATE OR REPLACE FUNCTION snowflake_ids.citus_status()
RETURNS TABLE (node_id integer, node_name text, node_port integer, group_id integer, worker_id integer, layout text, registry text,
               version text, problem text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    PERFORM snowflake_ids_internal.citus_check();
    RETURN QUERY SELECT l.node_id, l.node_name, l.node_port, l.group_id, l.worker_id, l.layout, l.registry, l.version, l.problem
    FROM snowflake_ids_internal.citus_look() AS l ORDER BY l.group_id, l.node_id;
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
    -- Written out: in another server's dump it means the same.
    own_layout text := snowflake_ids_internal.server_layout();
    most integer := coalesce(current_setting('snowflake_ids.max_generators', true), '16');
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    PERFORM snowflake_ids_internal.generator_check(name, coalesce(layout, own_layout), modulus, remainder, sequence_start, cache);
    -- Two at a time could each find the last place free.
    LOCK TABLE snowflake_ids.generator IN SHARE ROW EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C") THEN
        PERFORM snowflake_ids_internal.generator_taken(name);
    ELSIF (SELECT count(*) >= most FROM snowflake_ids.generator) THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = 'too many generators',
            DETAIL = format('This database has as many as snowflake_ids.max_generators allows, which is %s.', most),
            HINT = 'Drop one with snowflake_ids.generator_drop, or raise snowflake_ids.max_generators, which takes a restart.';
    END IF;
    INSERT INTO snowflake_ids.generator (name, layout, modulus, remainder, sequence_start, cache)
    VALUES (name, coalesce(layout, own_layout), modulus, remainder, sequence_start, cache);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids_internal.generator_keep(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    PERFORM FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C" FOR KEY SHARE;
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.generator_unknown(name);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids.generator_drop(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    PERFORM FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C" FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.generator_unknown(name);
    END IF;
    PERFORM snowflake_ids_internal.generator_check_unused(name, 'drop', true);
    DELETE FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C";
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids.use_local_registry() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    IF NOT snowflake_ids_internal.registry_leave() THEN
        RAISE NOTICE 'this database is its own registry already';
        RETURN;
    END IF;
    RAISE NOTICE 'ids of segment tags go on above all that this database has received' USING
        DETAIL = 'Other servers that use the registry may get the same ids from now on.',
        HINT = 'Where they share tables, give the tags different remainders with snowflake_ids.segment_alter.';
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids.unbind_sequence(sequence regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
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
    PERFORM snowflake_ids_internal.sequence_unbind(sequence, 0);
END
$$;

CREATE OR REPLACE FUNCTION snowflake_ids.worker_release(
    worker_id      integer,
    datacenter_id  integer DEFAULT NULL,
    holder_is_down boolean DEFAULT false
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    datacenter integer;
    seen       snowflake_ids.worker_lease;
    free_from  timestamptz;
BEGIN
    PERFORM snowflake_ids_internal.extension_keep();
    PERFORM snowflake_ids_internal.worker_check_registry();
    IF worker_id IS NULL THEN
        RAISE EXCEPTION 'worker_id must not be null' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'It says which worker id to give up.';
    END IF;
    datacenter := coalesce(datacenter_id, current_setting('snowflake_ids.datacenter_id')::integer);
    SELECT w.* INTO seen FROM snowflake_ids.worker_lease AS w
    WHERE w.datacenter_id = datacenter AND w.worker_id = worker_release.worker_id FOR UPDATE;
    IF NOT FOUND THEN
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
