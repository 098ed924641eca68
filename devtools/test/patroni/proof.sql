-- Counts repeated ids and lost rows, on the primary at the end. The table `seen` has the primary's rows and the rows that were
-- acknowledged to sessions. A row that is both stored and acknowledged is in `seen` once, because of its key.

CREATE TABLE acknowledged (id bigint, number bigint, key uuid, port int, at numeric);
\copy acknowledged FROM PSTDIN
CREATE TABLE seen AS SELECT id, number, key FROM rows UNION SELECT id, number, key FROM acknowledged;

SELECT (SELECT count(*) FROM acknowledged),
       (SELECT count(*) FROM rows),
       (SELECT count(*) - count(DISTINCT id) FROM seen),
       (SELECT count(*) - count(DISTINCT number) FROM seen),
       (SELECT count(*) FROM acknowledged AS a WHERE NOT EXISTS (SELECT FROM rows AS r WHERE r.key = a.key)),
       (SELECT count(DISTINCT snowflake_worker_id(id)) FROM seen);
