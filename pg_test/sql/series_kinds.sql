-- Series of kinds that take numbers from memory: what they are made of.
\set SHOW_CONTEXT never
SELECT snowflake_ids.series_create('messages', 'dense');
SELECT snowflake_ids.series_create('small', 'dense', step => 3, max_step => 5);
SELECT snowflake_ids.series_create('least', 'dense', max_step => 2);
SELECT snowflake_ids.series_create('large', 'dense', step => 20000);
SELECT snowflake_ids.series_create('receipts', 'dense', reset => 'year', format => '{YYYY}-{n:5}');
SELECT snowflake_ids.series_create('chats', 'monotonic', 'uuid');
SELECT snowflake_ids.series_create('feeds', 'monotonic', step => 2000000, sections => 1);
SELECT name, kind, step, max_step, sections FROM snowflake_ids.series_status ORDER BY name;

-- Wrong terms.
SELECT snowflake_ids.series_create('x', 'dense', sections => 2);
SELECT snowflake_ids.series_create('x', 'dense', step => 0);
SELECT snowflake_ids.series_create('x', 'dense', step => 11, max_step => 10);
SELECT snowflake_ids.series_create('x', 'dense', max_step => 0);
SELECT snowflake_ids.series_create('x', 'dense', max_step => -2147483648);
SELECT snowflake_ids.series_create('x', 'monotonic', step => 1000000001);
SELECT snowflake_ids.series_create('x', 'monotonic', reset => 'year');
SELECT snowflake_ids.series_create('x', 'monotonic', sections => 0);
SELECT snowflake_ids.series_create('x', 'monotonic', sections => 1025);
SELECT snowflake_ids.series_create('x', 'Dense');
INSERT INTO snowflake_ids.series (name, kind) VALUES ('x', 'dense');
INSERT INTO snowflake_ids.series (name, kind, step, max_step) VALUES ('x', 'monotonic', 1, 1);

-- Changed.
SELECT snowflake_ids.series_alter('small', step => 7, max_step => 9);
SELECT snowflake_ids.series_alter('small', step => 10);
SELECT snowflake_ids.series_alter('small', max_step => 6);
SELECT name, kind, step, max_step FROM snowflake_ids.series_status WHERE name = 'small';
UPDATE snowflake_ids.series SET kind = 'gapless', step = NULL, max_step = NULL WHERE name = 'small';
UPDATE snowflake_ids.series SET sections = 2 WHERE name = 'feeds';
UPDATE snowflake_ids.series SET description = 'of a user' WHERE name = 'feeds';

-- Gapless and dense series are of one database. Monotonic ones draw from a registry, as tags do.
CREATE FOREIGN DATA WRAPPER series_wrapper;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER series_wrapper;
BEGIN;
INSERT INTO snowflake_ids.registry_server (position, server, identity, timeline) VALUES (0, 'elsewhere', 'other', 1);
SAVEPOINT a;
SELECT snowflake_ids.series_create('x', 'gapless');
ROLLBACK TO a;
SELECT snowflake_ids.series_create('x', 'dense');
ROLLBACK TO a;
SELECT series_nextval('messages', 1);
ROLLBACK;
DROP FOREIGN DATA WRAPPER series_wrapper CASCADE;

-- Wrong arguments.
SELECT series_nextval('messages', NULL::bigint);
SELECT series_nextval('messages', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid);
SELECT series_nextval('chats', 1);
SELECT series_currval('messages', 1);
BEGIN READ ONLY;
SELECT series_nextval('messages', 1);
ROLLBACK;
SELECT snowflake_ids.series_set('messages', 1, -1);
SELECT snowflake_ids.series_drop(name) FROM (SELECT name FROM snowflake_ids.series) AS s;
