-- Partitioned tables keyed by ids: shards by hash, months by range, pruned by time.
SET timezone = 'UTC';
CREATE TABLE orders (id bigint DEFAULT snowflake_nextval() PRIMARY KEY, note text) PARTITION BY HASH (id);
CREATE TABLE orders_0 PARTITION OF orders FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE orders_1 PARTITION OF orders FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO orders (note) SELECT 'row' FROM generate_series(1, 1000);
SELECT count(*), count(DISTINCT id), count(DISTINCT tableoid) AS partitions FROM orders;

CREATE TABLE events (id bigint DEFAULT snowflake_nextval() PRIMARY KEY, note text) PARTITION BY RANGE (id);
CREATE TABLE events_2026_10 PARTITION OF events FOR VALUES FROM (snowflake_min_id('2026-10-01')) TO (snowflake_min_id('2026-11-01'));
CREATE TABLE events_2026_11 PARTITION OF events FOR VALUES FROM (snowflake_min_id('2026-11-01')) TO (snowflake_min_id('2026-12-01'));
CREATE TABLE events_2026_12 PARTITION OF events FOR VALUES FROM (snowflake_min_id('2026-12-01')) TO (snowflake_min_id('2027-01-01'));
INSERT INTO events SELECT snowflake_compose('2026-10-30'::timestamptz + i * interval '1 hour', 0, 1, i) FROM generate_series(0, 99) i;
SELECT tableoid::regclass, count(*) FROM events GROUP BY 1 ORDER BY 1;

-- STABLE bounds are pruned when the query starts, IMMUTABLE ones when it is planned.
EXPLAIN (COSTS OFF) SELECT * FROM events
WHERE id BETWEEN snowflake_min_id('2026-11-01', '41/5/5/12') AND snowflake_max_id('2026-11-02', '41/5/5/12');
EXPLAIN (COSTS OFF) SELECT * FROM events
WHERE id BETWEEN snowflake_min_id('2026-11-01') AND snowflake_max_id('2026-11-02');
SELECT count(*) FROM events WHERE id BETWEEN snowflake_min_id('2026-11-01') AND snowflake_max_id('2026-11-01 23:59:59.999999');

-- One call for a span of time: the planner sees two comparisons.
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_between(id, '2026-11-01', '2026-11-02', '41/5/5/12');
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_between(id, '2026-11-01', '2026-11-02');
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE snowflake_between(id, '2026-11-01'::timestamptz, '2026-11-01'::timestamptz + interval '1 day');
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-01', '2026-11-02');
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-02', '2026-11-03');
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-01', '2026-11-03');
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-02', '2026-11-01');
SELECT snowflake_between(snowflake_min_id(now()), now(), NULL), snowflake_between(NULL::bigint, now(), now()), snowflake_between(1, now(), now(), NULL);
SELECT snowflake_between(1, '-infinity', now());
SELECT snowflake_between(1, '2000-01-01', now());
-- A foreign server gets bounds that are constants or results of subqueries.
BEGIN;
CREATE EXTENSION postgres_fdw;
CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw;
CREATE USER MAPPING FOR CURRENT_USER SERVER far;
CREATE FOREIGN TABLE far_events (id bigint) SERVER far;
CREATE FUNCTION remote_sql(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) SELECT FROM far_events WHERE ' || condition INTO plan;
    RETURN plan -> 0 -> 'Plan' ->> 'Remote SQL';
END $$;
SELECT remote_sql($$snowflake_between(id, '2026-11-01', '2026-11-02', '41/5/5/12')$$);
SELECT remote_sql('id >= (SELECT snowflake_min_id(now()))');
SELECT remote_sql($$snowflake_between(id, '2026-11-01', now(), '41/5/5/12')$$);
ROLLBACK;

-- Nothing that others could have put before pg_catalog is called.
CREATE SCHEMA planted;
CREATE FUNCTION planted.snowflake_min_id(timestamptz) RETURNS bigint LANGUAGE sql AS 'SELECT 1/0';
CREATE FUNCTION planted.ge(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT 1/0 = 1';
CREATE OPERATOR planted.>= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = planted.ge);
SET search_path = planted, pg_catalog, public;
SELECT count(*) FROM events WHERE snowflake_between(id, '2026-11-01', '2026-11-02');
RESET search_path;
DROP SCHEMA planted CASCADE;

CREATE TABLE things (id uuid PRIMARY KEY);
INSERT INTO things SELECT snowflake_min_uuid('2026-11-01'::timestamptz + i * interval '1 hour') FROM generate_series(0, 99) i;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM things WHERE snowflake_between(id, '2026-11-01', '2026-11-02');
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT count(*), min(snowflake_timestamp(id)), max(snowflake_timestamp(id)) FROM things WHERE snowflake_between(id, '2026-11-01', '2026-11-02');
SELECT snowflake_between(snowflake_uuid(), now(), now() + interval '1 day');
SELECT snowflake_min_uuid('1969-01-01'), snowflake_min_uuid('10889-08-02');
SELECT snowflake_min_uuid('10890-01-01');

-- What tools ask that partition by ranges of numbers.
SELECT snowflake_interval('1 day') = snowflake_min_id('2026-11-02') - snowflake_min_id('2026-11-01') AS a_day,
    snowflake_interval('1 hour', '34/0/10/6 unit=10s'), snowflake_interval('1 day 10 seconds', '34/0/10/6 unit=10s');
SELECT snowflake_interval('1 month');
SELECT snowflake_interval('15 seconds', '34/0/10/6 unit=10s');
SELECT snowflake_interval('0');
SELECT snowflake_interval('-1 day');
SELECT snowflake_interval('100000 years');
SELECT snowflake_interval('2000000000 days');
DROP TABLE orders, events, things;
