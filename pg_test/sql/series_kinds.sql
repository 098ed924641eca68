-- Series of kinds that take numbers from memory: what they are made of.
SELECT snowflake_ids.series_create('chats', 'monotonic', 'uuid');
SELECT snowflake_ids.series_create('feeds', 'monotonic', step => 2000000, sections => 1);
SELECT name, kind, step, max_step, sections FROM snowflake_ids.series_status ORDER BY name;

-- Wrong terms.
SELECT snowflake_ids.series_create('x', 'monotonic', step => 0);
SELECT snowflake_ids.series_create('x', 'monotonic', step => 11, max_step => 10);
SELECT snowflake_ids.series_create('x', 'monotonic', max_step => 0);
SELECT snowflake_ids.series_create('x', 'monotonic', step => 1000000001);
SELECT snowflake_ids.series_create('x', 'monotonic', reset => 'year');
SELECT snowflake_ids.series_create('x', 'monotonic', sections => 0);
SELECT snowflake_ids.series_create('x', 'Gapless');
INSERT INTO snowflake_ids.series (name, kind) VALUES ('x', 'monotonic');
INSERT INTO snowflake_ids.series (name, kind, step, max_step) VALUES ('x', 'monotonic', 1, 1);

-- Changed.
SELECT snowflake_ids.series_create('small', 'monotonic', step => 3, max_step => 5);
SELECT snowflake_ids.series_alter('small', step => 7, max_step => 9);
SELECT snowflake_ids.series_alter('small', step => 10);
SELECT snowflake_ids.series_alter('small', max_step => 6);
SELECT name, kind, step, max_step FROM snowflake_ids.series_status WHERE name = 'small';
UPDATE snowflake_ids.series SET kind = 'gapless', step = NULL, max_step = NULL WHERE name = 'small';
UPDATE snowflake_ids.series SET sections = 2 WHERE name = 'feeds';
UPDATE snowflake_ids.series SET description = 'of a user' WHERE name = 'feeds';

-- Gapless series are of one database. Monotonic ones draw from a registry, as tags do, but not from several.
CREATE FOREIGN DATA WRAPPER series_wrapper;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER series_wrapper;
BEGIN;
INSERT INTO snowflake_ids.registry_server (position, server, identity, timeline) VALUES (0, 'elsewhere', 'other', 1);
SAVEPOINT a;
SELECT snowflake_ids.series_create('x', 'gapless');
ROLLBACK TO a;
INSERT INTO snowflake_ids.registry_server (position, server, identity, timeline) VALUES (1, 'elsewhere too', 'another', 1);
SAVEPOINT b;
SELECT snowflake_ids.series_create('x', 'monotonic');
ROLLBACK TO b;
SELECT series_nextval('feeds', 1);
ROLLBACK;
DROP FOREIGN DATA WRAPPER series_wrapper CASCADE;

SELECT snowflake_ids.series_create('messages', 'monotonic');
-- Who may take numbers is looked at again when a role, or the series, changes.
CREATE ROLE series_kinds_group;
CREATE ROLE series_kinds_user IN ROLE series_kinds_group;
SELECT snowflake_ids.series_alter('messages', owner => 'series_kinds_group');
SET ROLE series_kinds_user;
SELECT series_nextval('messages', 5) < series_nextval('messages', 5) AS grows;
RESET ROLE;
REVOKE series_kinds_group FROM series_kinds_user;
SET ROLE series_kinds_user;
SELECT series_nextval('messages', 5) > 0 AS taken;
RESET ROLE;
SELECT snowflake_ids.series_grant('messages', 'public', 'USAGE');
SET ROLE series_kinds_user;
SELECT series_nextval('messages', 5) > 0 AS taken;
RESET ROLE;
SELECT snowflake_ids.series_revoke('messages', 'public', 'USAGE');
SET ROLE series_kinds_user;
SELECT series_nextval('messages', 5) > 0 AS taken;
RESET ROLE;
DROP OWNED BY series_kinds_group, series_kinds_user;
SELECT snowflake_ids.series_alter('messages', owner => current_user::text);
DROP ROLE series_kinds_group, series_kinds_user;

-- In a read-only transaction, and where several registries count from now on, there is none either, though memory has some.
SELECT series_nextval('messages', 5) > 0 AS taken;
BEGIN READ ONLY;
SELECT series_nextval('messages', 5) > 0 AS taken;
ROLLBACK;
CREATE FOREIGN DATA WRAPPER series_wrapper;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER series_wrapper;
BEGIN;
INSERT INTO snowflake_ids.registry_server (position, server, identity, timeline)
VALUES (0, 'elsewhere', 'other', 1), (1, 'elsewhere too', 'another', 1);
SELECT series_nextval('messages', 5) > 0 AS taken;
ROLLBACK;
DROP FOREIGN DATA WRAPPER series_wrapper CASCADE;

-- Wrong arguments.
SELECT series_nextval('chats', 1);
SELECT snowflake_ids.series_set('messages', 1, -1);
SELECT snowflake_ids.series_drop(name) FROM (SELECT name FROM snowflake_ids.series) AS s;
