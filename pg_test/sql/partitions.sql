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
DROP TABLE orders, events;
