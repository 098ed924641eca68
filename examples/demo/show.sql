-- Shows the million orders, the invoices and posts, and the state of the server.

VACUUM ANALYZE orders;

\echo
\echo 'The last orders'
SELECT * FROM orders ORDER BY id DESC LIMIT 5;

\echo 'What their ids say'
SELECT d.* FROM (SELECT id FROM orders ORDER BY id DESC LIMIT 5) AS o, snowflake_decode(o.id) AS d;

\echo 'The last id as JSON and as short text'
SELECT jsonb_pretty(snowflake_decode_json(id)) AS json, snowflake_encode(id, 'base62') AS base62
FROM (SELECT max(id) AS id FROM orders) AS o;

\echo 'Orders in each shard'
SELECT left(tableoid::regclass::text, length('orders_0')) AS shard, count(*) AS orders
FROM orders GROUP BY shard ORDER BY shard;

\echo 'No id twice'
SELECT count(*) AS orders, count(DISTINCT id) AS ids FROM orders;

\echo 'The orders of a tenth of a second: time is searched by the primary key'
PREPARE orders_between(timestamptz, timestamptz) AS
SELECT count(*) AS orders, min(created_at) AS first, max(created_at) AS last
FROM orders
WHERE id BETWEEN snowflake_min_id($1) AND snowflake_max_id($2);

SELECT t AS "from", t + interval '0.1 second' AS "to"
FROM (SELECT min(created_at) + (max(created_at) - min(created_at)) / 2 AS t FROM orders) AS middle \gset
EXECUTE orders_between(:'from', :'to');

\echo 'Its plan: of 12 partitions, the 8 of other months are removed before it starts'
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE orders_between(:'from', :'to');

\echo 'The invoices of the four sessions: dense, 1 to their number'
SELECT count(*) AS invoices, min(id), max(id), max(id) - min(id) + 1 - count(*) AS gaps FROM invoices;

\echo 'The posts, by the generator that counts for browsers'
SELECT count(*) AS posts, count(DISTINCT id) AS ids, max(id) AS last, snowflake_timestamp(max(id), 'web') AS at,
       max(id) < 2::bigint ^ 53 AS "exact in JavaScript"
FROM posts;

\echo 'How the server issues ids'
\x on
SELECT * FROM snowflake_ids.status;

\echo 'Those of the generator'
SELECT * FROM snowflake_ids.generator_status;

\echo 'And those of tags'
SELECT * FROM snowflake_ids.segment_status;
