-- Named generators.
SELECT snowflake_ids.generator_create('web', 'javascript');
SELECT snowflake_ids.generator_create('plain');
SELECT snowflake_ids.generator_create('tuned', sequence_start => 'random', cache => 50);
SELECT * FROM snowflake_ids.generator ORDER BY name;

-- Of the server's own layout, by the same counter: what one gives, no other does.
CREATE TABLE ids (at serial, id bigint, of text);
INSERT INTO ids (id, of) SELECT snowflake_nextval('plain'), 'plain' FROM generate_series(1, 1000);
INSERT INTO ids (id, of) SELECT snowflake_nextval('tuned'), 'tuned' FROM generate_series(1, 1000);
INSERT INTO ids (id, of) SELECT snowflake_nextval(), 'own' FROM generate_series(1, 1000);
INSERT INTO ids (id, of) SELECT snowflake_id('plain'), 'plain' FROM generate_series(1, 1000);
INSERT INTO ids (id, of) SELECT snowflake_nextvals(1000, 'plain'), 'plain';
INSERT INTO ids (id, of) SELECT snowflake_nextvals(1000, 'tuned'), 'tuned';
SELECT count(*), count(DISTINCT id) FROM ids;
SELECT of, bool_and(grows) AS grows
FROM (SELECT of, id > lag(id, 1, 0::bigint) OVER (PARTITION BY of ORDER BY at) AS grows FROM ids) s GROUP BY of ORDER BY of;

-- Of another layout, by a counter of its own.
CREATE TABLE web (at serial, id bigint);
INSERT INTO web (id) SELECT snowflake_nextval('web') FROM generate_series(1, 1000);
INSERT INTO web (id) SELECT snowflake_nextvals(1000, 'web');
INSERT INTO web (id) SELECT snowflake_id('web') FROM generate_series(1, 1000);
SELECT count(*), count(DISTINCT id), bool_and(grows) AS grows, max(id) < 2 ^ 53 AS exact, array_agg(DISTINCT snowflake_worker_id(id, 'web')) AS workers,
       bool_and(snowflake_timestamp(id, 'web') BETWEEN now() - interval '1 minute' AND clock_timestamp() + interval '1 minute') AS timely
FROM (SELECT id, id > lag(id, 1, 0::bigint) OVER (ORDER BY at) AS grows FROM web) s;
SELECT snowflake_nextval('web') = snowflake_lastval() AS last;
SELECT name, layout, modulus, remainder, shard, sequence_start, cache, slot IS NOT NULL AS has_slot, last_id IS NOT NULL AS issued, last_timestamp = snowflake_timestamp(last_id, name) AS at,
       high_water_mark > last_timestamp AS marked, drift < '1 minute' AS drift, years_left > 40 AS years, fits, state
FROM snowflake_ids.generator_status ORDER BY name;
DROP TABLE web;

-- The last id of the session is one of whichever function.
SELECT snowflake_nextval('plain') = snowflake_lastval() AS last;
SELECT max(id) = snowflake_lastval() AS last FROM snowflake_nextvals(3, 'tuned') id;
SELECT snowflake_nextval() = snowflake_lastval() AS last;

-- What was taken is of the layout that the generator had then.
CREATE FUNCTION widened() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    UPDATE snowflake_ids.generator SET layout = 'twitter' WHERE name = 'web';
    RETURN snowflake_nextval('web');
END
$$;
BEGIN;
SELECT bool_and(id < 2 ^ 53) AS narrow, bool_and(wide > 2 ^ 53) AS wide
FROM (SELECT snowflake_nextvals(3, 'web') AS id, widened() AS wide OFFSET 0) s;
ROLLBACK;
SELECT snowflake_nextval('web') < 2 ^ 53 AS narrow;
DROP FUNCTION widened;

-- As a default, in COPY too.
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval('plain'), note text);
INSERT INTO orders (note) SELECT 'row ' || i FROM generate_series(1, 1000) i;
COPY orders (note) FROM stdin;
copied
copied too
\.
SELECT count(*), bool_and(snowflake_timestamp(id) BETWEEN now() - interval '1 minute' AND clock_timestamp() + interval '1 minute') AS timely
FROM orders;

-- Each call may name another one.
SELECT count(DISTINCT snowflake_nextval(name)) FROM (VALUES ('plain'), ('tuned'), ('plain')) v (name);
SELECT snowflake_nextval(NULL) IS NULL AS strict;

-- Functions that take ids apart take a name for its layout.
SELECT snowflake_worker_id(id, 'web'), snowflake_sequence(id, 'web'), snowflake_decode(id, 'web') = snowflake_decode(id, 'javascript') AS same
FROM (VALUES (1234567890123)) v (id);
SELECT snowflake_min_id('2026-01-01', 'web') = snowflake_min_id('2026-01-01', 'javascript') AS same;
SELECT snowflake_min_id('2026-01-01', 'plain') = snowflake_min_id('2026-01-01') AS same;
PREPARE worker AS SELECT snowflake_worker_id(8192 + 512, 'passing');
BEGIN;
SELECT snowflake_ids.generator_create('passing', 'javascript');
EXECUTE worker;
SELECT snowflake_ids.generator_drop('passing');
SELECT snowflake_ids.generator_create('passing', '41/5/5/12');
EXECUTE worker;
ROLLBACK;
\set ON_ERROR_STOP off
EXECUTE worker;

-- A generator serves the transaction that makes it, and goes with it.
BEGIN;
SELECT snowflake_ids.generator_create('passing');
SELECT snowflake_nextval('passing') > 0 AS ok;
SAVEPOINT before;
SELECT snowflake_ids.generator_alter('passing', cache => 10, new_name => 'passed');
SELECT snowflake_nextval('passed') > 0 AS ok;
ROLLBACK TO before;
SELECT snowflake_nextval('passing') > 0 AS ok;
ROLLBACK;
SELECT snowflake_nextval('passing');
SELECT snowflake_nextval('passed');
BEGIN;
SELECT snowflake_ids.generator_drop('tuned');
SELECT snowflake_nextval('tuned');
ROLLBACK;
SELECT snowflake_nextval('tuned') > 0 AS ok;

-- What may change, changes; what is null stays.
SELECT snowflake_ids.generator_alter('tuned', modulus => 16, remainder => 3);
SELECT snowflake_ids.generator_alter('tuned', cache => 0, sequence_start => 'rotate');
SELECT * FROM snowflake_ids.generator WHERE name = 'tuned';
SELECT snowflake_ids.generator_alter('tuned', modulus => 0, sequence_start => 'default', new_name => 'turned');
SELECT * FROM snowflake_ids.generator WHERE name IN ('tuned', 'turned');

-- A column is attached to a generator, with its sequence.
CREATE TABLE items (id bigserial PRIMARY KEY, note text);
INSERT INTO items (note) VALUES ('one'), ('two');
SELECT snowflake_ids.attach('items', 'id', generator => 'it''s');
\set ON_ERROR_STOP off
SELECT snowflake_ids.attach('items', 'id', 'segment', generator => 'plain');
SELECT snowflake_ids.generator_create('it''s');
SELECT snowflake_ids.attach('items', 'id', generator => 'it''s');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'items'::regclass;
INSERT INTO items (note) VALUES ('three') RETURNING id = snowflake_lastval() AS last, id = currval('items_id_seq') AS noted;
SELECT nextval('items_id_seq') = snowflake_lastval() AS last, lastval() = snowflake_lastval() AS noted;
SELECT sequence, kind, tag, generator FROM snowflake_ids.sequence_status;
SELECT setval('items_id_seq', 7);
SELECT snowflake_ids.bind_sequence('items_id_seq');
SELECT snowflake_ids.generator_drop('it''s');
SELECT snowflake_ids.generator_alter('it''s', new_name => 'its');
SELECT snowflake_ids.attach('items', 'id', generator => 'it''s');
SELECT snowflake_ids.attach('items', 'id', generator => 'plain');
SELECT snowflake_ids.generator_drop('it''s');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'items'::regclass;
SELECT snowflake_ids.attach('items', 'id');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'items'::regclass;
SELECT snowflake_ids.attach('items', 'id', generator => 'plain');
ALTER TABLE items ALTER id SET DEFAULT snowflake_id('plain');
SET client_min_messages = warning;
SELECT snowflake_ids.detach('items', 'id');
RESET client_min_messages;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'items'::regclass;
DROP TABLE items;
-- One that gives ids of a generator follows its name; its default does not, so that it is not renamed while there is one.
CREATE SEQUENCE loose;
SELECT snowflake_ids.generator_create('first');
SELECT snowflake_ids.bind_sequence('loose', generator => 'first');
SELECT snowflake_ids.generator_alter('first', new_name => 'second');
SELECT nextval('loose') = snowflake_lastval() AS last;
SELECT generator FROM snowflake_ids.sequence_status WHERE sequence = 'loose'::regclass;
SELECT snowflake_ids.generator_drop('second');
DELETE FROM snowflake_ids.generator WHERE name = 'second';
SELECT nextval('loose');
SELECT snowflake_ids.generator_create('second');
SELECT snowflake_ids.unbind_sequence('loose');
SELECT nextval('loose') > 1 AS above;
ALTER SEQUENCE loose INCREMENT BY 50;
SELECT snowflake_ids.bind_sequence('loose', generator => 'second');
SELECT nextval('loose') > 1 AS above;
DROP SEQUENCE loose;
SELECT snowflake_ids.generator_drop('second');

-- Errors.
SELECT snowflake_ids.generator_create('narrow', '41/0/0/21');
SELECT snowflake_nextval('narrow');
SELECT fits, state FROM snowflake_ids.generator_status WHERE name = 'narrow';
SELECT snowflake_ids.generator_drop('narrow');
SELECT snowflake_nextval('nobody');
SELECT snowflake_nextval('no''body');
SELECT count(*) FROM snowflake_nextvals(3, 'nobody');
SELECT snowflake_nextval('');
SELECT snowflake_nextval(repeat('a', 10000000));
SELECT count(*) FROM snowflake_nextvals(0, 'plain');
SELECT snowflake_timestamp(1, 'nobody');
SELECT snowflake_ids.generator_create('plain');
SELECT snowflake_ids.generator_alter('turned', new_name => 'plain');
SELECT snowflake_ids.generator_alter('nobody', cache => 2);
SELECT snowflake_ids.generator_drop('nobody');
SELECT snowflake_ids.generator_drop(NULL);
SELECT snowflake_ids.generator_drop('plain');
SELECT snowflake_ids.generator_alter('plain', new_name => 'simple');
SELECT snowflake_ids.generator_create('half', modulus => 16);
SELECT snowflake_ids.generator_create('half', remainder => 3);
SELECT snowflake_ids.generator_alter('turned', modulus => 16);
SELECT snowflake_ids.generator_create('part', modulus => 16, remainder => 16);
SELECT snowflake_ids.generator_create('part', 'javascript', modulus => 513, remainder => 16);
SELECT snowflake_ids.generator_create('part', modulus => -1, remainder => 0);
SELECT snowflake_ids.generator_create('sum', '41/10/10/12');
SELECT snowflake_ids.generator_create('starts', sequence_start => 'late');
SELECT snowflake_ids.generator_create('cached', cache => 2000000);
SELECT snowflake_ids.generator_create(NULL);
SELECT snowflake_ids.generator_create(repeat('ä', 129));
SELECT snowflake_ids.generator_create(E'two\nlines');
SELECT snowflake_ids.generator_create('twitter', 'javascript');
SELECT snowflake_ids.generator_create('41/5/5/12');
SELECT snowflake_ids.generator_create('twitter', 'twitter');
SELECT snowflake_ids.generator_create('many' || i) FROM generate_series(1, 300) i;
INSERT INTO snowflake_ids.generator VALUES ('by hand', '41/41/41/41');
UPDATE snowflake_ids.generator SET cache = 0 WHERE name = 'plain';

-- A row that nothing checked says what is wrong with it when it is used.
BEGIN;
ALTER TABLE snowflake_ids.generator DISABLE TRIGGER generator_check;
INSERT INTO snowflake_ids.generator VALUES ('by hand', '41/41/41/41');
SAVEPOINT used;
SELECT snowflake_nextval('by hand');
ROLLBACK TO used;
SELECT snowflake_timestamp(1, 'by hand');
ROLLBACK;

-- Nobody but those that are allowed to changes one; everybody may use it.
CREATE ROLE passer_by;
GRANT ALL ON ids TO passer_by;
SET ROLE passer_by;
SELECT snowflake_nextval('plain') > 0 AS ok, snowflake_worker_id(1, 'web') AS worker, count(*) AS rows FROM snowflake_ids.generator;
SELECT snowflake_ids.generator_create('mine');
SELECT snowflake_ids.generator_alter('plain', cache => 3);
SELECT snowflake_ids.generator_drop('web');
DELETE FROM snowflake_ids.generator;
RESET ROLE;
SELECT snowflake_ids.administration_grant('generators', 'passer_by');
SET ROLE passer_by;
SELECT snowflake_ids.generator_create('mine');
SELECT snowflake_ids.generator_alter('mine', cache => 3, new_name => 'ours');
SELECT snowflake_nextval('ours') > 0 AS ok;
SELECT snowflake_ids.generator_drop('ours');
RESET ROLE;
SELECT snowflake_ids.administration_revoke('generators', 'passer_by');
DROP TABLE ids, orders;
DROP ROLE passer_by;

DELETE FROM snowflake_ids.generator;
SELECT snowflake_nextval('plain');
