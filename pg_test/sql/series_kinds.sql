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

-- Gapless series are of one database. The others draw from a registry, as tags do, but not from several; what a transaction would
-- count itself, it cannot.
CREATE FOREIGN DATA WRAPPER series_wrapper;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER series_wrapper;
BEGIN;
INSERT INTO snowflake_ids.registry_server (position, server, identity, timeline) VALUES (0, 'elsewhere', 'other', 1);
SAVEPOINT a;
SELECT snowflake_ids.series_create('x', 'gapless');
ROLLBACK TO a;
SELECT snowflake_ids.series_create('x', 'dense');
SELECT series_nextval('x', 1);
ROLLBACK TO a;
SELECT snowflake_ids.series_set('messages', 1, 5);
ROLLBACK TO a;
INSERT INTO snowflake_ids.registry_server (position, server, identity, timeline) VALUES (1, 'elsewhere too', 'another', 1);
SAVEPOINT b;
SELECT snowflake_ids.series_create('x', 'dense');
ROLLBACK TO b;
SELECT series_nextval('messages', 1);
ROLLBACK;
DROP FOREIGN DATA WRAPPER series_wrapper CASCADE;

-- Dense: n calls give 1 to n, from whichever statement, and whatever becomes of the others.
SELECT series_nextval('messages', 1), series_nextval('messages', 1), series_nextval('messages', 2::smallint);
SELECT array_agg(series_nextval('messages', k)) FROM unnest(ARRAY[1, 2, 1, 3, 1]) AS k;
SELECT count(DISTINCT n), min(n), max(n) FROM (SELECT series_nextval('messages', 4) AS n FROM generate_series(1, 10000)) AS s;
SELECT series_currval('messages', 1), series_currval('messages', 4);
SELECT key, last_value >= 5 AS is_reserved FROM snowflake_ids.series_key WHERE series = 'messages' AND key_bigint = 1;
BEGIN;
SELECT series_nextval('messages', 1);
ROLLBACK;
SELECT series_nextval('messages', 1);
SELECT snowflake_ids.series_create('by text', 'dense', 'text', start => 0, max_value => 3, format => 'T-{n:3}');
SELECT series_nextval_text('by text', 'web'), series_nextval_text('by text', 'web'), series_nextval_text('by text', '');
SELECT series_nextval('by text', repeat('x', 512)), series_nextval('by text', repeat('x', 512)), series_nextval('by text', repeat('x', 511));
SELECT series_nextval('by text', 'web'), series_nextval('by text', 'web');
SELECT series_nextval('by text', 'web');
SELECT snowflake_ids.series_alter('by text', max_value => 4);
SELECT series_nextval('by text', 'web');
SELECT series_nextval_text('receipts', 7) = to_char(now() AT TIME ZONE 'UTC', 'YYYY') || '-00001' AS first,
       series_nextval_text('receipts', 7) = to_char(now() AT TIME ZONE 'UTC', 'YYYY') || '-00002' AS second;

-- Set, as by setval. Until the transaction ends the key counts as those of gapless series do.
SELECT snowflake_ids.series_set('messages', 1, 100);
SELECT series_nextval('messages', 1);
SELECT snowflake_ids.series_set('messages', 1, 50);
SELECT snowflake_ids.series_set('messages', 1, 50, force => true);
SELECT series_nextval('messages', 1);
BEGIN;
SELECT snowflake_ids.series_set('messages', 1, 200);
SELECT series_nextval('messages', 1), series_nextval('messages', 1);
ROLLBACK;
SELECT series_nextval('messages', 1) BETWEEN 52 AND 201 AS goes_on;
BEGIN;
SELECT snowflake_ids.series_create('of a transaction', 'dense');
SELECT series_nextval('of a transaction', 1), series_nextval('of a transaction', 1);
COMMIT;
SELECT series_nextval('of a transaction', 1);
SELECT snowflake_ids.series_drop('of a transaction');
SELECT series_nextval('of a transaction', 1);
SELECT snowflake_ids.series_create('of a transaction', 'dense');
SELECT series_nextval('of a transaction', 1);

-- A column, also under COPY.
CREATE TABLE message (chat bigint NOT NULL, number integer NOT NULL, PRIMARY KEY (chat, number));
INSERT INTO message VALUES (1, 41), (2, 3);
SELECT snowflake_ids.series_create('of a column', 'dense', max_value => 2147483647);
SELECT snowflake_ids.series_attach('message', 'number', 'of a column', 'chat');
INSERT INTO message (chat) VALUES (1), (3), (1), (2) RETURNING *;
COPY message (chat) FROM stdin;
1
2
3
3
\.
SELECT * FROM message ORDER BY chat, number;
DROP TABLE message;

-- Who may take numbers is looked at again when a role, or the series, changes.
CREATE ROLE series_kinds_group;
CREATE ROLE series_kinds_user IN ROLE series_kinds_group;
SELECT snowflake_ids.series_alter('messages', owner => 'series_kinds_group');
SET ROLE series_kinds_user;
SELECT series_nextval('messages', 5), series_nextval('messages', 5);
RESET ROLE;
REVOKE series_kinds_group FROM series_kinds_user;
SET ROLE series_kinds_user;
SELECT series_nextval('messages', 5);
RESET ROLE;
SELECT snowflake_ids.series_grant('messages', 'public', 'USAGE');
SET ROLE series_kinds_user;
SELECT series_nextval('messages', 5);
BEGIN READ ONLY;
SELECT series_nextval('messages', 5);
ROLLBACK;
RESET ROLE;
SELECT snowflake_ids.series_revoke('messages', 'public', 'USAGE');
SET ROLE series_kinds_user;
SELECT series_nextval('messages', 5);
RESET ROLE;
DROP OWNED BY series_kinds_group, series_kinds_user;
SELECT snowflake_ids.series_alter('messages', owner => current_user::text);
DROP ROLE series_kinds_group, series_kinds_user;

-- In a read-only transaction, and where several registries count from now on, there is none either, though memory has some.
SELECT series_nextval('messages', 5);
BEGIN READ ONLY;
SELECT series_nextval('messages', 5);
ROLLBACK;
CREATE FOREIGN DATA WRAPPER series_wrapper;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER series_wrapper;
BEGIN;
SELECT series_nextval('messages', 5);
INSERT INTO snowflake_ids.registry_server (position, server, identity, timeline)
VALUES (0, 'elsewhere', 'other', 1), (1, 'elsewhere too', 'another', 1);
SELECT series_nextval('messages', 5);
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
