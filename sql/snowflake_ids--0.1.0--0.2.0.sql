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
