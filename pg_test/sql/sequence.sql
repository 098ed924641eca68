-- Sequences that give ids of ours.
\set SHOW_CONTEXT never
\pset null -
CREATE SEQUENCE unbound;
CREATE SEQUENCE numbers;
SELECT nextval('numbers'), nextval('numbers'), nextval('unbound');
PREPARE next_number AS SELECT nextval('numbers');
EXECUTE next_number;
SELECT snowflake_ids.bind_sequence('numbers', 'segment');
SELECT sequence, kind, tag, increment, owner, last_number FROM snowflake_ids.sequence_status;
-- Its numbers go on as the tag's ids; a plan that was made before is made anew.
EXECUTE next_number;
SELECT nextval('numbers'), currval('numbers'), lastval(), segment_nextval('public.numbers');
SELECT nextval(s::regclass) FROM unnest(ARRAY['numbers', 'unbound']) AS s;
SELECT lastval();
CREATE FUNCTION take(sequence regclass) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval(sequence); END $$;
SELECT take('numbers'), take('unbound');
CREATE TABLE rows (id bigint DEFAULT nextval('numbers'), note text);
INSERT INTO rows (note) VALUES ('default'), ('default') RETURNING id;
-- What no plan reaches fails, and gives no old number.
COPY rows (note) FROM stdin;
copied
\.
\echo :LAST_ERROR_SQLSTATE
-- setval raises the tag, and never lowers it.
SELECT setval('numbers', 100), currval('numbers');
SELECT nextval('numbers');
SELECT setval('numbers', 50);
SELECT nextval('numbers');
SELECT setval('numbers', 200, false);
SELECT nextval('numbers');
SELECT setval('numbers', 0);
\echo :LAST_ERROR_SQLSTATE
-- Renamed, it stays bound. Rights are the sequence's.
ALTER SEQUENCE numbers RENAME TO renamed;
CREATE ROLE reader;
GRANT SELECT ON SEQUENCE renamed TO reader;
SET ROLE reader;
SELECT nextval('renamed');
\echo :LAST_ERROR_SQLSTATE
SELECT setval('renamed', 1000);
SELECT currval('renamed');
RESET ROLE;
-- Rolled back, it is what it was.
BEGIN;
SELECT snowflake_ids.unbind_sequence('renamed');
SELECT nextval('renamed');
ROLLBACK;
SELECT nextval('renamed') > 200 AS goes_on;
-- Its own numbers again, above all that were given.
SELECT segment_nextval('public.numbers') AS given \gset
SELECT snowflake_ids.unbind_sequence('renamed');
SELECT nextval('renamed') > :given AS above;
SELECT snowflake_ids.segment_drop('public.numbers');
BEGIN;
SELECT snowflake_ids.bind_sequence('unbound', 'segment', 'unbound');
SELECT nextval('unbound');
ROLLBACK;
SELECT nextval('unbound');

-- An identity column, without rights on its sequence; snowflake ids.
CREATE TABLE people (id bigint GENERATED ALWAYS AS IDENTITY, note text);
INSERT INTO people (note) VALUES ('one');
SELECT snowflake_ids.bind_sequence('people_id_seq');
GRANT SELECT, INSERT ON people TO reader;
SET ROLE reader;
INSERT INTO people (note) VALUES ('two'), ('three');
INSERT INTO people (note) VALUES ('four') RETURNING id = lastval() AS last;
SELECT nextval('people_id_seq');
RESET ROLE;
SELECT count(*), bool_and(snowflake_timestamp(id) > now() - interval '1 minute') FROM people WHERE id > 1;
SELECT setval('people_id_seq', 5);
SELECT max(id) AS given FROM people \gset
SELECT snowflake_ids.unbind_sequence('people_id_seq');
INSERT INTO people (note) VALUES ('five') RETURNING id > :given AS above;

-- Blocks by INCREMENT BY, for which the ids around a number are free.
CREATE SEQUENCE pooled INCREMENT BY 50;
SELECT nextval('pooled'), nextval('pooled');
SELECT snowflake_ids.bind_sequence('pooled', 'segment', 'pooled');
SELECT nextval('pooled') AS first, segment_nextval('pooled') AS single, nextval('pooled') AS second;
SELECT snowflake_ids.unbind_sequence('pooled');
SELECT nextval('pooled');
SELECT snowflake_ids.segment_drop('pooled');
ALTER SEQUENCE pooled RESTART;
SELECT snowflake_ids.bind_sequence('pooled');
SELECT bool_and(snowflake_sequence(v - 50) + 99 = snowflake_sequence(v + 49)) FROM (SELECT nextval('pooled') AS v FROM generate_series(1, 100)) AS n;

-- What is refused.
CREATE VIEW seen AS SELECT 1;
SELECT snowflake_ids.bind_sequence('seen');
\echo :LAST_ERROR_SQLSTATE
CREATE TEMP SEQUENCE fleeting;
SELECT snowflake_ids.bind_sequence('fleeting');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_ids.bind_sequence('pooled');
\echo :LAST_ERROR_SQLSTATE
CREATE SEQUENCE narrow AS integer;
SELECT snowflake_ids.bind_sequence('narrow');
\echo :LAST_ERROR_SQLSTATE
CREATE SEQUENCE cycles CYCLE;
SELECT snowflake_ids.bind_sequence('cycles');
CREATE SEQUENCE down INCREMENT BY -1;
SELECT snowflake_ids.bind_sequence('down');
CREATE SEQUENCE wide INCREMENT BY 10001;
SELECT snowflake_ids.bind_sequence('wide');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_ids.bind_sequence('unbound', 'serial');
SELECT snowflake_ids.bind_sequence('unbound', generator => 'none');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_ids.bind_sequence(NULL);
SELECT snowflake_ids.unbind_sequence('unbound');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_ids.segment_create('daily', reset => 'day');
SELECT snowflake_ids.bind_sequence('unbound', 'segment', 'daily');
\echo :LAST_ERROR_SQLSTATE
SET ROLE reader;
SELECT snowflake_ids.bind_sequence('unbound');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
-- Its tag was dropped: calls say so.
SELECT snowflake_ids.bind_sequence('unbound', 'segment', 'dropped');
SELECT snowflake_ids.segment_drop('dropped');
SELECT nextval('unbound');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_ids.unbind_sequence('unbound');
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_ids.segment_create('dropped', start => 500);
SELECT snowflake_ids.unbind_sequence('unbound');
SELECT nextval('unbound');
-- An error that the planner raises stays an error.
SELECT snowflake_ids.bind_sequence('unbound', 'segment', 'dropped');
SELECT 1 / 0;
\echo :LAST_ERROR_SQLSTATE
SELECT snowflake_ids.unbind_sequence('unbound');
-- Dropped itself, it is bound no more.
DROP SEQUENCE pooled;
SELECT count(*) FROM snowflake_ids.sequence_status;

-- attach redirects the sequence that a column owns; detach gives it back, above what was given.
CREATE TABLE adopted (id bigserial PRIMARY KEY, note text);
INSERT INTO adopted (note) VALUES ('one'), ('two');
SELECT snowflake_ids.attach('adopted', 'id', 'segment');
SELECT nextval(pg_get_serial_sequence('adopted', 'id'));
INSERT INTO adopted (note) VALUES ('four') RETURNING id;
SELECT setval(pg_get_serial_sequence('adopted', 'id'), (SELECT max(id) FROM adopted));
SELECT nextval('adopted_id_seq');
SELECT snowflake_ids.attach('adopted', 'id', 'segment');
SELECT nextval('adopted_id_seq');
SELECT snowflake_ids.detach('adopted', 'id');
INSERT INTO adopted (note) VALUES ('seven') RETURNING id;
SELECT snowflake_ids.attach('adopted', 'id', 'segment', sequence => 'unknown');
\echo :LAST_ERROR_SQLSTATE
DROP TABLE rows, people, adopted;
DROP FUNCTION take(regclass);
DROP VIEW seen;
DROP SEQUENCE unbound, renamed, narrow, cycles, down, wide, fleeting;
DROP ROLE reader;
DELETE FROM snowflake_ids.sequence_binding;
SELECT snowflake_ids.segment_drop(tag) FROM snowflake_ids.segment \g /dev/null
