-- What held, on the primary at the end. Its rows, and those that sessions were told of, come together in one table: a row
-- that is stored and acknowledged is there once, by its key.

CREATE TABLE acknowledged (id bigint, number bigint, key uuid, port int, at numeric);
\copy acknowledged FROM PSTDIN
CREATE TABLE seen AS SELECT id, number, key FROM rows UNION SELECT id, number, key FROM acknowledged;

SELECT (SELECT count(*) FROM acknowledged),
       (SELECT count(*) FROM rows),
       (SELECT count(*) - count(DISTINCT id) FROM seen),
       (SELECT count(*) - count(DISTINCT number) FROM seen),
       (SELECT count(*) FROM acknowledged AS a WHERE NOT EXISTS (SELECT FROM rows AS r WHERE r.key = a.key)),
       (SELECT count(DISTINCT snowflake_worker_id(id)) FROM seen);
