-- The registry of worker ids. This server has a number of its own, so that all rows are made here by hand.

-- Servers that have each leased an id for an hour.
INSERT INTO snowflake_ids.worker_lease (datacenter_id, worker_id, host, token, expires_at)
SELECT 0, n, 'host' || n, n, now() + interval '1 hour' FROM generate_series(1, 4) n;
INSERT INTO snowflake_ids.worker_lease (datacenter_id, worker_id, host, token, expires_at)
VALUES (7, 1, 'elsewhere', 1, now() + interval '1 hour'), (0, 9, 'gone', 9, now() - interval '1 day');

-- Given up: the holder, which may be running, keeps its time, and can't renew it.
SELECT snowflake_ids.worker_release(1);
-- Its holder is down: free as soon as clocks that differ can't matter any more.
SELECT snowflake_ids.worker_release(2, holder_is_down => true);
-- Of another datacenter.
SELECT snowflake_ids.worker_release(1, datacenter_id => 7, holder_is_down => true);
-- Free already: nothing but the token changes.
SELECT snowflake_ids.worker_release(9, holder_is_down => true);
-- Twice is as good as once.
SELECT snowflake_ids.worker_release(2, holder_is_down => true);
SELECT datacenter_id, worker_id, token, released_at IS NOT NULL AS released,
       CASE WHEN expires_at < now() THEN 'free'
            WHEN expires_at < now() + interval '5 minutes' THEN 'free soon'
            ELSE 'free in an hour' END AS free
FROM snowflake_ids.worker_lease ORDER BY datacenter_id, worker_id;
-- What a transaction gives up and rolls back was not given up.
BEGIN;
SELECT snowflake_ids.worker_release(3);
ROLLBACK;
SELECT token FROM snowflake_ids.worker_lease WHERE datacenter_id = 0 AND worker_id = 3;

-- What is refused.
SELECT snowflake_ids.worker_release(5);
SELECT snowflake_ids.worker_release(-1);
SELECT snowflake_ids.worker_release(1, datacenter_id => 8);
SELECT snowflake_ids.worker_release(NULL);
\set VERBOSITY terse
INSERT INTO snowflake_ids.worker_lease (datacenter_id, worker_id, expires_at) VALUES (0, 1, now());
INSERT INTO snowflake_ids.worker_lease (datacenter_id, worker_id, expires_at) VALUES (0, -1, now());
INSERT INTO snowflake_ids.worker_lease (datacenter_id, worker_id, expires_at) VALUES (0, 6, 'infinity');
INSERT INTO snowflake_ids.worker_lease (datacenter_id, worker_id, expires_at) VALUES (0, 6, '-infinity');
\set VERBOSITY verbose

-- For the owner only.
CREATE ROLE worker_user;
SET ROLE worker_user;
SELECT count(*) FROM snowflake_ids.worker_lease;
SELECT snowflake_ids.worker_release(4);
SELECT snowflake_ids_internal.worker_give_up(0, 4, 4);
SELECT snowflake_ids_internal.worker_check_registry();
RESET ROLE;
DROP ROLE worker_user;

DELETE FROM snowflake_ids.worker_lease;
