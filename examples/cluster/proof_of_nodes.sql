-- The distribution of the rows of both tables.

INSERT INTO report (what, figures, ok)
SELECT 'shards even within 2 %',
       format('%s; at most %s %% off', string_agg(format('%s: %s', shard, rows), ', ' ORDER BY shard),
              round(100 * max(abs(rows / mean - 1)), 2)),
       count(*) = 4 AND max(abs(rows / mean - 1)) <= 0.02
FROM (
    SELECT shard, count(*) AS rows, sum(count(*)) OVER () / 4 AS mean
    FROM (SELECT shard FROM orders_everywhere UNION ALL SELECT shard FROM invoices_everywhere) AS r
    GROUP BY shard
) AS s;

-- The worker ids in orders. A node may have had several worker ids, but no worker id that another node had, too.

INSERT INTO report (what, figures, ok)
SELECT 'no worker id twice',
       string_agg(format('%s: %s', made_on, worker_id), ', ' ORDER BY made_on, worker_id),
       count(DISTINCT made_on) = 5 AND count(DISTINCT worker_id) = count(*)
FROM (SELECT DISTINCT made_on, snowflake_worker_id(id) AS worker_id FROM orders_everywhere) AS o;
