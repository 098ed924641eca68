/*
 * snowflake_ids in plain SQL, for servers that do not have the library, such as managed services and CI.
 *
 * Run it once per database, as a role that may create schemas there and objects in the first schema of its search_path:
 *
 *     PGOPTIONS='-c snowflake_ids.worker_id=3' psql -v ON_ERROR_STOP=1 -1 -f sql/plain/snowflake_ids.sql
 *
 * The functions have the names and the meaning that they have in the extension, so a schema, a migration or an application
 * runs unchanged with either: snowflake_nextval(), snowflake_id(), snowflake_nextvals(count), snowflake_lastval(),
 * segment_nextval(tag), segment_id(tag), segment_nextvals(tag, count), segment_currval(tag), snowflake_ids.segment_create(tag,
 * start), snowflake_ids.segment_drop(tag), and the functions that decode ids of the default layout, 41/5/5/12
 * epoch=2020-01-01.
 *
 * Snowflake ids are unique among all sessions of a database, and after crashes. Ids of different databases and servers are
 * unique if each database has a worker id of its own. snowflake_ids.worker_set(datacenter_id, worker_id) changes the worker
 * id. A clock that is set back causes no duplicates: ids continue above the last id.
 *
 * The limits:
 * - You choose the worker id. Nothing detects that two databases have the same worker id. A copy of a database (a restored
 *   dump, a clone, a template) has the worker id of the original: set another worker id before the copy issues its first id.
 * - Snowflake ids are issued one at a time, each under a lock that is held for some microseconds. A server issues tens of
 *   thousands of ids per second, not millions. COPY inserts row by row, as with each volatile default. Queries that issue ids
 *   are not parallel.
 * - After a failover to an asynchronous standby, or after a backup is restored, ids of tags may repeat, like the numbers of
 *   any sequence. Snowflake ids may repeat if the new server's clock is behind.
 * - Ids of a tag come from a sequence, and have gaps after a crash or a rollback. There are no dated tags, no formats, no steps
 *   or shares, no registries, no rights on tags, no other layouts, no other generators and no attach.
 *
 * to_extension.sql, in the same folder, changes the database to the extension. New ids are then above all issued ids.
 */

-- On a server that has the library, a setting may be 'auto': the server then leases its worker id from a registry.
DO $$
DECLARE
    name pg_catalog.text;
BEGIN
    FOREACH name IN ARRAY ARRAY['snowflake_ids.datacenter_id', 'snowflake_ids.worker_id'] LOOP
        IF pg_catalog.current_setting(name, true) OPERATOR(pg_catalog.~) '[^0-9]' THEN
            IF EXISTS (SELECT FROM pg_catalog.pg_settings AS s WHERE s.name OPERATOR(pg_catalog.=) 'snowflake_ids.worker_id') THEN
                RAISE object_not_in_prerequisite_state USING
                    MESSAGE = 'the server has the library of snowflake_ids',
                    DETAIL = pg_catalog.format('Its %s is "%s", which the functions in plain SQL cannot have.',
                        name, pg_catalog.current_setting(name)),
                    HINT = 'Use the extension: CREATE EXTENSION snowflake_ids.';
            END IF;
            RAISE invalid_parameter_value USING
                MESSAGE = pg_catalog.format('invalid value for %s: "%s"', name, pg_catalog.current_setting(name)),
                DETAIL = 'It is part of each id.',
                HINT = 'Give a number from 0 to 31.';
        END IF;
    END LOOP;
END
$$;

CREATE SCHEMA snowflake_ids;

-- The worker id of this database, and the schema of the functions. The table has one row.
CREATE TABLE snowflake_ids.plain (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    datacenter_id integer NOT NULL CHECK (datacenter_id BETWEEN 0 AND 31),
    worker_id     integer NOT NULL CHECK (worker_id BETWEEN 0 AND 31),
    functions     name    NOT NULL
);
INSERT INTO snowflake_ids.plain (datacenter_id, worker_id, functions) VALUES (
    coalesce(nullif(current_setting('snowflake_ids.datacenter_id', true), '')::integer, 0),
    coalesce(nullif(current_setting('snowflake_ids.worker_id', true), '')::integer, 0),
    current_schema);

-- The last snowflake id. This is a sequence, so that a rollback does not set the value back.
CREATE SEQUENCE snowflake_ids.plain_last MINVALUE 0 START 0;

-- Tags, and the sequence of each tag.
CREATE TABLE snowflake_ids.plain_segment (
    tag      text     COLLATE "C" PRIMARY KEY CHECK (length(tag) BETWEEN 1 AND 128),
    sequence regclass NOT NULL UNIQUE
);

CREATE FUNCTION snowflake_ids.worker_set(datacenter_id integer, worker_id integer) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE snowflake_ids.plain SET datacenter_id = worker_set.datacenter_id, worker_id = worker_set.worker_id
$$;
REVOKE EXECUTE ON FUNCTION snowflake_ids.worker_set(integer, integer) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_ids.worker_set IS 'has ids issued as another worker';

-- Returns the next id. The inner block always ends in an error, and its rollback releases the lock. So the lock is not kept until
-- the transaction ends, nor after a cancelled call. The value of the sequence is not rolled back.
CREATE FUNCTION snowflake_ids.plain_take() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last_id bigint;
    next_id bigint;
    node bigint;
BEGIN
    SELECT p.datacenter_id << 5 | p.worker_id INTO STRICT node FROM snowflake_ids.plain p;
    BEGIN
        PERFORM pg_advisory_xact_lock(class_id, object_id) FROM (VALUES
            ('snowflake_ids.plain_last'::regclass::oid::integer, 1397114702)) AS lock (class_id, object_id);
        SELECT s.last_value INTO last_id FROM snowflake_ids.plain_last s;
        -- A new millisecond starts with sequence number 0. After sequence number 4095, the id takes the next millisecond.
        next_id := greatest(
            floor(extract(epoch FROM clock_timestamp()) * 1000 - 1577836800000)::bigint,
            (last_id >> 22) + CASE WHEN last_id & 4095 = 4095 THEN 1 ELSE 0 END);
        next_id := (next_id << 22) | (node << 12)
            | CASE WHEN next_id = last_id >> 22 THEN (last_id & 4095) + 1 ELSE 0 END;
        PERFORM setval('snowflake_ids.plain_last', next_id);
        RAISE SQLSTATE 'SF000';
    EXCEPTION WHEN SQLSTATE 'SF000' THEN
        RETURN next_id;
    END;
END
$$;
REVOKE EXECUTE ON FUNCTION snowflake_ids.plain_take() FROM PUBLIC;

-- Returns the sequence of a tag.
CREATE FUNCTION snowflake_ids.plain_sequence(tag text) RETURNS regclass
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found regclass;
BEGIN
    SELECT s.sequence INTO found FROM snowflake_ids.plain_segment s WHERE s.tag = plain_sequence.tag;
    IF found IS NULL THEN
        RAISE undefined_object USING
            MESSAGE = CASE WHEN tag IS NULL THEN 'tag must not be null'
                ELSE format('segment tag "%s" does not exist', left(tag, 128)) END,
            HINT = 'Create it with SELECT snowflake_ids.segment_create(tag).';
    END IF;
    RETURN found;
END
$$;
REVOKE EXECUTE ON FUNCTION snowflake_ids.plain_sequence(text) FROM PUBLIC;

CREATE FUNCTION snowflake_ids.segment_create(tag text, start numeric DEFAULT 1, description text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence_name text;
BEGIN
    IF EXISTS (SELECT FROM snowflake_ids.plain_segment s WHERE s.tag = segment_create.tag) THEN
        RAISE duplicate_object USING MESSAGE = format('segment tag "%s" already exists', left(tag, 128));
    END IF;
    sequence_name := format('snowflake_ids.plain_segment_%s', (SELECT count(*) + 1 FROM snowflake_ids.plain_segment));
    WHILE to_regclass(sequence_name) IS NOT NULL LOOP
        sequence_name := sequence_name || '_';
    END LOOP;
    EXECUTE format('CREATE SEQUENCE %s MINVALUE %s START %s', sequence_name, least(start, 1)::bigint, start::bigint);
    EXECUTE format('COMMENT ON SEQUENCE %s IS %L', sequence_name, description);
    INSERT INTO snowflake_ids.plain_segment (tag, sequence) VALUES (segment_create.tag, sequence_name::regclass);
END
$$;
REVOKE EXECUTE ON FUNCTION snowflake_ids.segment_create(text, numeric, text) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_ids.segment_create IS 'creates a segment tag';

CREATE FUNCTION snowflake_ids.segment_drop(tag text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    dropped regclass := snowflake_ids.plain_sequence(tag);
BEGIN
    DELETE FROM snowflake_ids.plain_segment s WHERE s.tag = segment_drop.tag;
    EXECUTE format('DROP SEQUENCE %s', dropped);
END
$$;
REVOKE EXECUTE ON FUNCTION snowflake_ids.segment_drop(text) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_ids.segment_drop IS 'drops a segment tag';

GRANT USAGE ON SCHEMA snowflake_ids TO PUBLIC;

/* The functions that column defaults call, in the first schema of the search_path. All roles may call them. */

CREATE FUNCTION snowflake_nextval() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT snowflake_ids.plain_take()';

CREATE FUNCTION snowflake_id() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT snowflake_ids.plain_take()';

CREATE FUNCTION snowflake_nextvals(count integer) RETURNS SETOF bigint
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT snowflake_ids.plain_take() FROM generate_series(1, count)';

CREATE FUNCTION snowflake_lastval() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$SELECT currval('snowflake_ids.plain_last')$$;

CREATE FUNCTION segment_nextval(tag text) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT nextval(snowflake_ids.plain_sequence(tag))';

CREATE FUNCTION segment_id(tag text) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT nextval(snowflake_ids.plain_sequence(tag))';

CREATE FUNCTION segment_nextvals(tag text, count integer) RETURNS SETOF bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT nextval(snowflake_ids.plain_sequence(tag)) FROM generate_series(1, count)';

CREATE FUNCTION segment_currval(tag text) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'SELECT currval(snowflake_ids.plain_sequence(tag))';

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz LANGUAGE sql STABLE STRICT PARALLEL SAFE
AS 'SELECT pg_catalog.to_timestamp(((id >> 22) + 1577836800000) / 1000.0::double precision)';
CREATE FUNCTION snowflake_datacenter_id(id bigint) RETURNS integer LANGUAGE sql STABLE STRICT PARALLEL SAFE
AS 'SELECT (id >> 17 & 31)::integer';
CREATE FUNCTION snowflake_worker_id(id bigint) RETURNS integer LANGUAGE sql STABLE STRICT PARALLEL SAFE
AS 'SELECT (id >> 12 & 31)::integer';
CREATE FUNCTION snowflake_sequence(id bigint) RETURNS integer LANGUAGE sql STABLE STRICT PARALLEL SAFE
AS 'SELECT (id & 4095)::integer';
CREATE FUNCTION snowflake_min_id(at timestamptz) RETURNS bigint LANGUAGE sql STABLE STRICT PARALLEL SAFE
AS 'SELECT pg_catalog.floor(extract(epoch FROM at) * 1000 - 1577836800000)::bigint << 22';
CREATE FUNCTION snowflake_max_id(at timestamptz) RETURNS bigint LANGUAGE sql STABLE STRICT PARALLEL SAFE
AS 'SELECT pg_catalog.floor(extract(epoch FROM at) * 1000 - 1577836800000)::bigint << 22 | 4194303';
CREATE FUNCTION snowflake_compose(at timestamptz, datacenter_id integer, worker_id integer, sequence integer) RETURNS bigint
LANGUAGE sql STABLE STRICT PARALLEL SAFE AS $$
    SELECT pg_catalog.floor(extract(epoch FROM at) * 1000 - 1577836800000)::bigint << 22
        | ((datacenter_id & 31)::bigint << 17) | ((worker_id & 31)::bigint << 12) | (sequence & 4095)
$$;
