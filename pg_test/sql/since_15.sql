-- What servers before 15 do otherwise. There no sequence is unlogged; here such a one gives no ids of ours.
CREATE UNLOGGED SEQUENCE unlogged;
SELECT snowflake_ids.bind_sequence('unlogged');
DROP SEQUENCE unlogged;
-- A setting that is misspelt is refused.
SET snowflake_ids.wroker_id = 1;
SELECT current_setting('server_version_num')::int < 150000 AS is_14 \gset
\if :is_14
\quit
\endif
-- A table that becomes unlogged keeps its bound sequence durable. The sequence becomes unlogged when it is unbound.
CREATE TABLE volatile (id bigserial, note text);
SELECT snowflake_ids.attach('volatile', 'id', 'segment');
CREATE FUNCTION persistence() RETURNS TABLE (relation regclass, of "char", unlogged boolean) LANGUAGE sql AS $$
    SELECT c.oid, c.relpersistence, b.unlogged FROM pg_class c LEFT JOIN snowflake_ids.sequence_binding b ON b.sequence = c.oid
    WHERE c.relname LIKE 'volatile%' ORDER BY c.relname
$$;
ALTER TABLE volatile SET UNLOGGED;
INSERT INTO volatile DEFAULT VALUES RETURNING id, currval('volatile_id_seq');
BEGIN;
ALTER TABLE volatile SET LOGGED;
SAVEPOINT one;
ALTER TABLE volatile SET UNLOGGED, ALTER note SET DEFAULT 'n';
ROLLBACK TO one;
SELECT * FROM persistence();
ROLLBACK;
SELECT * FROM persistence();
INSERT INTO volatile DEFAULT VALUES RETURNING id;
ALTER SEQUENCE volatile_id_seq SET UNLOGGED;
SELECT snowflake_ids.detach('volatile', 'id');
SELECT * FROM persistence();
SELECT snowflake_ids.segment_drop('public.volatile');
DROP FUNCTION persistence();
DROP TABLE volatile;
