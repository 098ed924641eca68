-- Ids as column defaults and in queries.
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
INSERT INTO orders (note) VALUES ('one'), ('two'), ('three');
INSERT INTO orders (note) SELECT 'row ' || i FROM generate_series(1, 10000) i;
COPY orders (note) FROM stdin;
copied
copied too
\.
SELECT count(*), count(DISTINCT id), bool_and(id > 0) FROM orders;
SELECT note FROM orders ORDER BY id LIMIT 3;
SELECT bool_and(snowflake_timestamp(id) BETWEEN now() - interval '1 minute' AND clock_timestamp() + interval '1 minute') AS timely,
       array_agg(DISTINCT snowflake_worker_id(id)) AS workers, array_agg(DISTINCT snowflake_datacenter_id(id)) AS datacenters
FROM orders;

-- Adding a column gives every existing row an id of its own.
CREATE TABLE old AS SELECT i FROM generate_series(1, 1000) i;
ALTER TABLE old ADD COLUMN id bigint NOT NULL DEFAULT snowflake_nextval();
SELECT count(DISTINCT id) FROM old;

-- Of one session each id is larger than the one before, whichever function gave it and however many
-- were taken at once.
CREATE TABLE seen (at serial, id bigint);
INSERT INTO seen (id) SELECT snowflake_nextval() FROM generate_series(1, 100);
INSERT INTO seen (id) SELECT snowflake_nextvals(1000);
SET snowflake_ids.cache = 64;
INSERT INTO seen (id) SELECT snowflake_nextval() FROM generate_series(1, 100);
INSERT INTO seen (id) SELECT snowflake_nextvals(20);
INSERT INTO seen (id) SELECT snowflake_nextvals(1000);
INSERT INTO seen (id) SELECT snowflake_nextval() FROM generate_series(1, 100);
SET snowflake_ids.cache = 1;
INSERT INTO seen (id) SELECT snowflake_nextval() FROM generate_series(1, 100);
SELECT count(*), count(DISTINCT id), bool_and(grows) AS grows
FROM (SELECT id, id > lag(id, 1, 0::bigint) OVER (ORDER BY at) AS grows FROM seen) s;
SELECT snowflake_lastval() = max(id) FROM seen;

-- A block's ids are neighbours.
SELECT count(*), max(id) - min(id) AS spread FROM snowflake_nextvals(10) id;

-- The status counts what was issued.
SELECT ids_issued AS before FROM snowflake_ids.status \gset
SELECT count(*) FROM (SELECT snowflake_nextval() FROM generate_series(1, 500) OFFSET 0) s;
SELECT ids_issued - :before AS issued, last_id = snowflake_lastval() AS last, last_timestamp = snowflake_timestamp(last_id) AS at,
       drift >= '0' AND drift < '1 minute' AS drift, steps_back, years_left > 50 AS years
FROM snowflake_ids.status;

-- Rolled back ids are gone for good.
BEGIN;
SELECT snowflake_nextval() AS rolled_back \gset
ROLLBACK;
SELECT snowflake_nextval() > :rolled_back AS grows;

-- Errors.
\set ON_ERROR_STOP off
SELECT snowflake_nextvals(0);
SELECT snowflake_nextvals(-5);
SELECT count(*) FROM snowflake_nextvals(2147483647);
SELECT count(*) FROM snowflake_nextvals(NULL);
\c -
SELECT snowflake_lastval();

DROP TABLE orders, old, seen;
