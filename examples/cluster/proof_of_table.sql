-- Checks the union of all shards for :table.

\set everywhere :table '_everywhere'

CREATE TABLE :"everywhere" AS
SELECT id, made_on, srvname AS shard
FROM :"table" AS r
JOIN pg_foreign_table AS t ON t.ftrelid = r.tableoid
JOIN pg_foreign_server AS s ON s.oid = t.ftserver;

INSERT INTO report (what, figures, ok)
SELECT :'table' || ': no id twice',
       format('%s rows on all shards, %s ids', count(*), count(DISTINCT id)),
       count(*) > 0 AND count(*) = count(DISTINCT id)
FROM :"everywhere";

-- There may be rows that no client was told of: if one shard fails, rows that the insert has committed on other shards stay.
INSERT INTO report (what, figures, ok)
SELECT :'table' || ': all that was committed',
       format('%s rows acknowledged, %s of them missing; %s more of inserts that failed',
              count(a.id), count(*) FILTER (WHERE e.id IS NULL), count(*) FILTER (WHERE a.id IS NULL)),
       count(a.id) > 0 AND count(*) FILTER (WHERE e.id IS NULL) = 0
FROM (SELECT unnest(ids) AS id FROM acknowledged WHERE table_name = :'table') AS a
FULL JOIN :"everywhere" AS e USING (id);
