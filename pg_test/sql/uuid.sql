-- UUIDs of version 7 from the same generator as ids.
CREATE TABLE events (at serial, id uuid PRIMARY KEY DEFAULT snowflake_uuid(), as_text text DEFAULT snowflake_uuid_text());
INSERT INTO events SELECT FROM generate_series(1, 5000);
SELECT count(DISTINCT id) AS ids, count(DISTINCT as_text) AS texts, count(DISTINCT replace(id::text, '-', '')) AS digits,
       bool_and(id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$') AS of_version_7,
       bool_and(as_text ~ '^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$') AS without_dashes,
       bool_and(as_text::uuid > id) AS grow
FROM events;
SELECT bool_and(grows) AS grows FROM (SELECT id > lag(id) OVER (ORDER BY at) AS grows FROM events) s;
-- The time, and the node, which is worker 1 here.
SELECT bool_and(snowflake_timestamp(id) BETWEEN now() - interval '1 minute' AND clock_timestamp() + interval '1 minute') AS timely,
       array_agg(DISTINCT snowflake_worker_id(id)) AS workers, array_agg(DISTINCT snowflake_datacenter_id(id)) AS datacenters,
       array_agg(DISTINCT snowflake_worker_id(id, '41/5/5/12')) AS workers_of_layout,
       array_agg(DISTINCT snowflake_datacenter_id(id, '41/5/5/12')) AS datacenters_of_layout,
       bool_and(snowflake_timestamp(as_text::uuid) = snowflake_timestamp(as_text)) AS of_texts
FROM events;
-- What fills them up is not the same twice: 52 bits in this layout.
SELECT count(DISTINCT right(id::text, 12)) FROM events;

-- One counter: no position is an id's and a UUID's, and all grow in their order. A position is the milliseconds and the sequence.
CREATE TABLE positions (at serial, millis bigint, sequence integer);
CREATE VIEW of_id AS SELECT round(extract(epoch FROM snowflake_timestamp(id)) * 1000)::bigint AS millis, snowflake_sequence(id) AS sequence
    FROM (SELECT snowflake_nextval() AS id OFFSET 0) s;
CREATE VIEW of_uuid AS SELECT round(extract(epoch FROM snowflake_timestamp(id)) * 1000)::bigint AS millis,
    ('x' || substr(id::text, 16, 3))::bit(12)::integer AS sequence FROM (SELECT snowflake_uuid() AS id OFFSET 0) s;
CREATE FUNCTION take_in_turns() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..500 LOOP
        INSERT INTO positions (millis, sequence) SELECT * FROM of_id;
        INSERT INTO positions (millis, sequence) SELECT * FROM of_uuid;
    END LOOP;
END
$$;
SELECT take_in_turns();
SET snowflake_ids.cache = 100;
SELECT take_in_turns();
RESET snowflake_ids.cache;
SELECT count(*), count(DISTINCT (millis, sequence)), bool_and(grows) AS grows
FROM (SELECT millis, sequence, (millis, sequence) > lag((millis, sequence)) OVER (ORDER BY at) AS grows FROM positions) s;
-- A block's next id and next UUID are neighbours.
SET snowflake_ids.cache = 10;
SELECT snowflake_timestamp(id) = snowflake_timestamp(uuid) AS same_tick,
       ('x' || substr(uuid::text, 16, 3))::bit(12)::integer - snowflake_sequence(id) AS next
FROM (SELECT snowflake_nextval() AS first OFFSET 0) f, LATERAL (SELECT f.first AS id, snowflake_uuid() AS uuid OFFSET 0) s;
RESET snowflake_ids.cache;
-- Both are counted, and the last id is that of ids.
\c -
SELECT ids_issued AS before FROM snowflake_ids.status \gset
SELECT snowflake_nextval() AS last \gset
SELECT count(snowflake_uuid()) AS uuids, count(snowflake_uuid_text()) AS texts FROM generate_series(1, 100);
SELECT snowflake_lastval() = :last AS untouched, ids_issued - :before AS issued FROM snowflake_ids.status;

-- COPY keeps its batches; a column that is added gives each row its own.
CREATE FUNCTION tell_rows(relation regclass) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    rows bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM %s', relation) INTO rows;
    RAISE NOTICE '% rows in %', rows, relation;
    RETURN true;
END
$$;
CREATE TABLE copied (id uuid DEFAULT snowflake_uuid(), as_text text DEFAULT snowflake_uuid_text(), note text CONSTRAINT tells CHECK (tell_rows('copied')));
COPY copied (note) FROM stdin;
a
b
c
\.
SELECT count(DISTINCT id), count(DISTINCT as_text) FROM copied;
ALTER TABLE copied DROP CONSTRAINT tells, ADD COLUMN added uuid DEFAULT snowflake_uuid();
SELECT count(DISTINCT added) FROM copied;

-- Any UUID of version 7 says its time; a text or a parameter may say an id or a UUID.
SELECT snowflake_timestamp('017f22e2-79b0-7cc3-98c4-dc0c0c07398f'::uuid), snowflake_timestamp(NULL::uuid);
SELECT snowflake_timestamp('017f22e2-79b0-7cc3-98c4-dc0c0c07398f'), snowflake_timestamp('017f22e279b07cc398c4dc0c0c07398f');
SELECT snowflake_worker_id('911811189128851456', 'twitter'), snowflake_datacenter_id('911811189128851456', 'twitter'),
       snowflake_worker_id('911811189128851456'), snowflake_timestamp('911811189128851456');
PREPARE any_key AS SELECT snowflake_timestamp($1), snowflake_worker_id($1), snowflake_datacenter_id($1, '41/5/5/12');
EXECUTE any_key('911811189128851456');
EXECUTE any_key('019aa495-2bc0-7000-8023-456789abcdef');
-- The layout says where the node stands.
SELECT snowflake_worker_id('019aa495-2bc0-7000-8023-456789abcdef'::uuid, layout) AS worker,
       snowflake_datacenter_id('019aa495-2bc0-7000-8023-456789abcdef'::uuid, layout) AS datacenter, layout
FROM unnest(ARRAY['twitter', 'javascript', 'cosid', 'instagram', '41/5/5/2r/10']) AS layout;
CREATE INDEX ON events (snowflake_timestamp(id));
CREATE INDEX ON events (snowflake_worker_id(id, '41/5/5/12'));

-- Of a named generator: by the counter of its layout, with the node where that layout has it.
SELECT snowflake_ids.generator_create('browser', 'javascript');
SELECT snowflake_ids.generator_create('same', cache => 20);
CREATE TABLE of_generators (at serial, id uuid DEFAULT snowflake_uuid('browser'), as_text text DEFAULT snowflake_uuid_text('browser'),
    same uuid DEFAULT snowflake_uuid('same'), own uuid DEFAULT snowflake_uuid(), number bigint DEFAULT snowflake_nextval('browser'));
INSERT INTO of_generators SELECT FROM generate_series(1, 1000);
SELECT count(DISTINCT id) AS ids, count(DISTINCT as_text) AS texts, count(DISTINCT same) AS same, count(DISTINCT own) AS own,
       array_agg(DISTINCT snowflake_worker_id(id, 'browser')) AS workers, array_agg(DISTINCT snowflake_worker_id(same, 'same')) AS workers_of_same,
       bool_and(snowflake_timestamp(id) BETWEEN now() - interval '1 minute' AND clock_timestamp() + interval '1 minute') AS timely
FROM of_generators;
SELECT bool_and(grows) AS grows FROM (SELECT id > lag(id) OVER (ORDER BY at) AND same > lag(same) OVER (ORDER BY at) AS grows FROM of_generators) s;
-- No position of a layout twice, whichever function took it: 9 bits of sequence in one, 12 in the other.
SELECT count(*) AS positions, count(DISTINCT (millis, sequence)) AS different
FROM (SELECT round(extract(epoch FROM snowflake_timestamp(id)) * 1000), ('x' || substr(id::text, 16, 3))::bit(12)::integer >> 3
    FROM (SELECT id FROM of_generators UNION ALL SELECT as_text::uuid FROM of_generators) u
    UNION ALL SELECT round(extract(epoch FROM snowflake_timestamp(number, 'browser')) * 1000), snowflake_sequence(number, 'browser')
    FROM of_generators) s (millis, sequence);
SELECT count(DISTINCT left(u::text, 18)) FROM (SELECT same AS u FROM of_generators UNION ALL SELECT own FROM of_generators) s;
ALTER TABLE of_generators ADD CONSTRAINT tells CHECK (tell_rows('of_generators')) NOT VALID;
COPY of_generators (at) FROM stdin;
-1
-2
\.
SELECT count(DISTINCT id), count(DISTINCT as_text) FROM of_generators WHERE at < 0;
SELECT snowflake_uuid(NULL) IS NULL AS strict, snowflake_uuid_text(NULL) IS NULL AS strict_text;
SELECT snowflake_nextval('browser') AS last \gset
SELECT count(snowflake_uuid('browser')) FROM generate_series(1, 10);
SELECT snowflake_lastval() = :last AS untouched;
SELECT snowflake_ids.generator_drop('browser');
DROP TABLE of_generators;
SELECT snowflake_ids.generator_drop('browser');
SELECT snowflake_ids.generator_drop('same');
SELECT snowflake_uuid('browser');
SELECT snowflake_uuid_text('browser');
SELECT snowflake_uuid('');

-- Errors.
\set VERBOSITY verbose
SELECT snowflake_timestamp('919108f7-52d1-4320-9bac-f847db4148a8'::uuid);
SELECT snowflake_worker_id('919108f7-52d1-4320-9bac-f847db4148a8'::uuid);
SELECT snowflake_datacenter_id('017f22e2-79b0-7cc3-d8c4-dc0c0c07398f'::uuid);
SELECT snowflake_timestamp('919108f752d143209bacf847db4148a8');
SELECT snowflake_worker_id('017f22e2-79b0-7cc3-98c4-dc0c0c07398f'::uuid, '41/5/5/12 epoch=2024-01-01');
SELECT snowflake_worker_id('019aa495-2bc1-7000-8023-456789abcdef'::uuid, 'cosid_second');
SELECT snowflake_timestamp('tomorrow');
SELECT snowflake_worker_id(repeat('x', 1000000));
SELECT snowflake_worker_id('1', 'snow');

DROP TABLE events, positions, copied;
DROP VIEW of_id, of_uuid;
DROP FUNCTION take_in_turns(), tell_rows(regclass);
