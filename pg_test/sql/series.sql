-- Series: one sequence for each key, without gaps.
SELECT snowflake_ids.series_create('invoices'),
    snowflake_ids.series_create('messages', key_type => 'uuid'),
    snowflake_ids.series_create('tickets', key_type => 'text', start => 0, max_value => 2, format => 'T-{n:3}', description => 'of a project');
SELECT name, kind, key_type, start, max_value, reset, time_zone, format, description, restricted FROM snowflake_ids.series ORDER BY name;

-- Each key counts for itself.
SELECT series_nextval('invoices', 1), series_nextval('invoices', 1), series_nextval('invoices', 2::smallint), series_nextval('invoices', 1::bigint);
SELECT series_nextval('messages', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid), series_nextval('messages', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid);
SELECT series_nextval_text('tickets', 'web'), series_nextval_text('tickets', 'web'::varchar), series_nextval('tickets', 'app');
SELECT series_nextval_text('invoices', 1), series_nextval_text('messages', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'::uuid);
SELECT series_currval('invoices', 1), series_currval('tickets', 'web'), series_currval('messages', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid);
SELECT * FROM snowflake_ids.series_key ORDER BY series, key;
SELECT name, keys, all_keys_counted FROM snowflake_ids.series_status ORDER BY name;
SELECT last_value FROM snowflake_ids.series_key WHERE series = 'invoices' AND key_bigint = 1;

-- What is rolled back is given back.
BEGIN;
SELECT series_nextval('invoices', 1), series_nextval('invoices', 3);
SAVEPOINT a;
SELECT series_nextval('invoices', 1), series_nextval('invoices', 3);
ROLLBACK TO a;
SELECT series_nextval('invoices', 1), series_nextval('invoices', 3);
ROLLBACK;
SELECT series_nextval('invoices', 1), series_nextval('invoices', 3);

-- Several at once.
SELECT array_agg(series_nextval('invoices', k)) FROM unnest(ARRAY[1, 3, 1, 3, 4]) k;
PREPARE next (text, bigint) AS SELECT series_nextval($1, $2);
EXECUTE next ('invoices', 4);
EXECUTE next ('invoices', 5);
DEALLOCATE next;

-- The last number of a key is gone.
SELECT series_nextval('tickets', 'web');
SELECT series_nextval('tickets', 'web');
SELECT snowflake_ids.series_alter('tickets', max_value => 3);
SELECT series_nextval('tickets', 'web');
SELECT snowflake_ids.series_create('full', max_value => 9223372036854775807, start => 9223372036854775807);
SELECT series_nextval('full', 1);
SELECT series_nextval('full', 1);

-- Wrong arguments.
SELECT series_nextval('invoices', NULL::bigint);
SELECT series_nextval(NULL, 1);
SELECT series_nextval('', 1);
SELECT series_nextval(repeat('x', 129), 1);
SELECT series_nextval(repeat('x', 1000000), 1);
SELECT series_nextval(E'a\nb', 1);
SELECT series_nextval('none', 1);
SELECT series_nextval('invoices', 'one');
SELECT series_nextval('invoices', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid);
SELECT series_nextval('tickets', 1);
SELECT series_nextval_text('messages', 1);
SELECT series_currval('messages', 1);
SELECT series_nextval('tickets', repeat('x', 513));
SELECT series_nextval('tickets', repeat('x', 100000000));
SELECT series_nextval('tickets', repeat('x', 512)), series_nextval('tickets', '');
SELECT series_currval('invoices', 77);
BEGIN READ ONLY;
SELECT series_nextval('invoices', 1);
ROLLBACK;

-- Wrong terms.
SELECT snowflake_ids.series_create('invoices');
SELECT snowflake_ids.series_create(NULL);
SELECT snowflake_ids.series_create('x', kind => 'sparse');
SELECT snowflake_ids.series_create('x', kind => NULL);
SELECT snowflake_ids.series_create('x', key_type => 'integer');
SELECT snowflake_ids.series_create('x', key_type => NULL);
SELECT snowflake_ids.series_create('x', step => 10);
SELECT snowflake_ids.series_create('x', max_step => 10);
SELECT snowflake_ids.series_create('x', sections => 10);
SELECT snowflake_ids.series_create('x', start => -1);
SELECT snowflake_ids.series_create('x', start => NULL);
SELECT snowflake_ids.series_create('x', start => 5, max_value => 4);
SELECT snowflake_ids.series_create('x', reset => 'week');
SELECT snowflake_ids.series_create('x', reset => 'year', format => '{n:6}');
SELECT snowflake_ids.series_create('x', format => '{YYYY}-{n}');
SELECT snowflake_ids.series_create('x', format => 'x');
SELECT snowflake_ids.series_create('x', time_zone => 'Mars');
SELECT snowflake_ids.series_create('x', time_zone => NULL);
SELECT snowflake_ids.series_create('x', description => repeat('x', 4001));

-- Moved, as by setval.
SELECT snowflake_ids.series_set('invoices', 1, 100);
SELECT series_nextval('invoices', 1);
SELECT snowflake_ids.series_set('invoices', 1, 50);
SELECT snowflake_ids.series_set('invoices', 1, 50, force => true);
SELECT series_nextval('invoices', 1);
SELECT snowflake_ids.series_set('invoices', 9, 0);
SELECT series_nextval('invoices', 9);
SELECT snowflake_ids.series_set('tickets', 'new', 1);
SELECT series_nextval('tickets', 'new');
SELECT snowflake_ids.series_set('messages', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a13'::uuid, 41);
SELECT series_nextval('messages', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a13'::uuid);
SELECT snowflake_ids.series_set('invoices', 1, -1);
SELECT snowflake_ids.series_set('tickets', 'new', 4);
SELECT snowflake_ids.series_set('invoices', 1, NULL);
SELECT snowflake_ids.series_set('invoices', NULL::bigint, 1);
SELECT snowflake_ids.series_set('tickets', 1, 1);

-- Numbers that start over each year, month or day.
SELECT snowflake_ids.series_create('receipts', reset => 'Year', time_zone => 'Europe/Zurich', format => '{YYYY}/{n:4}', max_value => 9999);
SELECT snowflake_ids.series_create('slips', key_type => 'text', reset => 'day');
SELECT series_nextval_text('receipts', 7) = to_char(now() AT TIME ZONE 'Europe/Zurich', 'YYYY') || '/0001' AS first;
SELECT series_nextval_text('receipts', 7) = to_char(now() AT TIME ZONE 'Europe/Zurich', 'YYYY') || '/0002' AS second;
SELECT series_nextval_text('slips', 'a') ~ '^\d{8}-000001$' AS first;
UPDATE snowflake_ids.series_bigint SET period = '2020-01-01' WHERE key = 7;
SELECT series_nextval('receipts', 7);
SELECT period = date_trunc('year', now() AT TIME ZONE 'Europe/Zurich') AS this_year FROM snowflake_ids.series_key WHERE series = 'receipts';
UPDATE snowflake_ids.series_bigint SET period = '2020-01-01', last_value = 9999 WHERE key = 7;
SELECT series_nextval('receipts', 7);
-- A clock that is set back does not bring a period back.
UPDATE snowflake_ids.series_bigint SET period = '9000-01-01' WHERE key = 7;
SELECT series_nextval_text('receipts', 7), series_nextval_text('receipts', 7);
UPDATE snowflake_ids.series_bigint SET last_value = 9999 WHERE key = 7;
SELECT series_nextval('receipts', 7);
-- In a new period a lower value is none that was given out.
UPDATE snowflake_ids.series_bigint SET period = '2020-01-01' WHERE key = 7;
SELECT snowflake_ids.series_set('receipts', 7, 10);
SELECT series_nextval('receipts', 7);

-- Changed, renamed, dropped.
SELECT snowflake_ids.series_alter('invoices', format => 'R{n:5}', description => 'bills', new_name => 'bills');
SELECT series_nextval_text('bills', 1);
SELECT series_nextval('invoices', 1);
SELECT snowflake_ids.series_alter('bills', new_name => 'tickets');
SELECT snowflake_ids.series_alter('bills', max_value => 0);
SELECT snowflake_ids.series_alter('none', max_value => 10);
SELECT snowflake_ids.series_drop('bills');
SELECT snowflake_ids.series_drop('bills');
SELECT snowflake_ids.series_create('bills');
SELECT series_nextval('bills', 1);
BEGIN;
SELECT snowflake_ids.series_drop('bills');
SAVEPOINT a;
SELECT series_nextval('bills', 1);
ROLLBACK TO a;
SELECT snowflake_ids.series_create('bills', start => 70);
SELECT series_nextval('bills', 1);
ROLLBACK;
SELECT series_nextval('bills', 1);
BEGIN;
SELECT snowflake_ids.series_create('short-lived');
SELECT series_nextval('short-lived', 1);
ROLLBACK;
SELECT series_nextval('short-lived', 1);
SELECT count(*) FROM snowflake_ids.series_bigint AS k WHERE NOT EXISTS (SELECT FROM snowflake_ids.series AS s WHERE s.id = k.series);

-- DISCARD forgets what the session got, as for sequences.
SELECT series_currval('bills', 1);
DISCARD SEQUENCES;
SELECT series_currval('bills', 1);

-- Nothing of a caller's is found by a name.
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.plus(bigint, integer) RETURNS bigint LANGUAGE sql AS 'SELECT 666::bigint';
CREATE OPERATOR hostile.+ (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = hostile.plus);
SET search_path = hostile, pg_catalog;
SELECT pg_catalog.series_nextval('bills', 1), pg_catalog.series_nextval('receipts', 7), pg_catalog.series_nextval('slips', 'a');
RESET search_path;
DROP SCHEMA hostile CASCADE;

-- Who may use them.
CREATE ROLE series_user;
CREATE ROLE series_group;
GRANT series_group TO series_user;
SELECT snowflake_ids.series_create('private', owner => 'series_group');
SET ROLE series_user;
SELECT series_nextval('bills', 1), series_nextval('private', 1);
SELECT snowflake_ids.series_set('private', 1, 10);
SELECT snowflake_ids.series_set('bills', 1, 10);
SELECT snowflake_ids.series_alter('bills', max_value => 10);
SELECT snowflake_ids.series_drop('bills');
SELECT snowflake_ids.series_create('mine');
SELECT * FROM snowflake_ids.series_bigint;
RESET ROLE;
-- What a role may do is looked at again when it changes.
REVOKE series_group FROM series_user;
SET ROLE series_user;
SELECT series_nextval('private', 1);
RESET ROLE;
GRANT series_group TO series_user;
CREATE ROLE series_other;
SET ROLE series_other;
SELECT series_nextval('private', 1);
SELECT series_currval('private', 1);
SELECT name FROM snowflake_ids.series_status ORDER BY name;
SELECT DISTINCT series FROM snowflake_ids.series_key ORDER BY series;
RESET ROLE;
SELECT snowflake_ids.series_grant('private', 'series_other', 'USAGE');
SET ROLE series_other;
SELECT series_nextval('private', 1);
SELECT snowflake_ids.series_set('private', 1, 20);
SELECT snowflake_ids.has_series_privilege('private', 'USAGE'), snowflake_ids.has_series_privilege('private', 'UPDATE'),
       snowflake_ids.has_series_privilege('none', 'ALL');
RESET ROLE;
SELECT snowflake_ids.series_revoke('private', 'series_other', 'ALL');
SET ROLE series_other;
SELECT series_nextval('private', 1);
RESET ROLE;
SELECT snowflake_ids.series_grant('bills', 'series_other', 'UPDATE');
SELECT snowflake_ids.series_grant('bills', 'public', 'USAGE');
SELECT snowflake_ids.series_revoke('slips', 'series_other', 'ALL');
SELECT snowflake_ids.series_revoke('slips', 'public', 'ALL');
SELECT snowflake_ids.series_grant('slips', 'nobody', 'ALL');
SELECT snowflake_ids.series_grant('slips', 'series_other', 'EVERYTHING');
SELECT snowflake_ids.series_alter('slips', owner => 'public');
SET ROLE series_other;
SELECT series_nextval('slips', 'a');
SELECT series_nextval('bills', 2);
RESET ROLE;

-- A part of the administration.
SELECT snowflake_ids.administration_grant('series', 'series_other');
SET ROLE series_other;
SELECT snowflake_ids.series_create('theirs');
SELECT series_nextval('private', 1);
SELECT snowflake_ids.series_drop('theirs');
-- Of tags that are others', none becomes a section.
INSERT INTO snowflake_ids.series (name, kind, step, max_step, sections) VALUES ('theirs', 'monotonic', 1, 1, 1);
SELECT snowflake_ids.series_create('theirs', 'monotonic', sections => 1);
SELECT snowflake_ids.series_drop('theirs');
RESET ROLE;
SELECT snowflake_ids.administration_revoke('series', 'series_other');

SELECT snowflake_ids.series_drop(name) FROM (SELECT name FROM snowflake_ids.series) AS s;
SELECT count(*) FROM snowflake_ids.series_privilege;
DROP ROLE series_user, series_group, series_other;

-- A registry counts from the moment on that it is used, also for what the session knows already.
SELECT snowflake_ids.series_create('at home');
SELECT series_nextval('at home', 1);
CREATE FOREIGN DATA WRAPPER series_wrapper;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER series_wrapper;
BEGIN;
INSERT INTO snowflake_ids.registry_server (position, server, identity, timeline) VALUES (0, 'elsewhere', 'other', 1);
SELECT series_nextval('at home', 1);
ROLLBACK;
SELECT series_nextval('at home', 1);
-- Not where each key is one server's.
BEGIN;
INSERT INTO snowflake_ids.registry_server (position, server, identity, timeline) VALUES (0, 'elsewhere', 'other', 1);
SELECT snowflake_ids.series_create('of a shard', scope => 'node');
SELECT series_nextval('of a shard', 1), series_nextval('of a shard', 2), series_nextval('of a shard', 1);
SELECT snowflake_ids.series_set('of a shard', 1, 10);
SELECT series_nextval('of a shard', 1);
UPDATE snowflake_ids.series SET scope = 'global' WHERE name = 'of a shard';
SELECT series_nextval('of a shard', 1);
ROLLBACK;
SELECT snowflake_ids.series_create('x', scope => 'shard');
SELECT snowflake_ids.series_create('x', 'monotonic', scope => 'node');
SELECT snowflake_ids.series_create('x', scope => NULL);
UPDATE snowflake_ids.series SET scope = 'planet';
DROP FOREIGN DATA WRAPPER series_wrapper CASCADE;
SELECT snowflake_ids.series_drop('at home');
-- A text is read as the series' own type: clients send parameters as text.
SELECT snowflake_ids.series_create('by number'), snowflake_ids.series_create('by uuid', 'monotonic', key_type => 'uuid');
PREPARE numbered AS SELECT series_nextval('by number', $1);
EXECUTE numbered('5');
EXECUTE numbered(' 5 ');
SELECT series_nextval('by number', 5), series_currval('by number', '5'), series_nextval_text('by number', '5');
SELECT snowflake_ids.series_set('by number', '5', 10);
SELECT series_nextval('by number', 5);
PREPARE of_uuid AS SELECT series_nextval('by uuid', $1), series_nextval('by uuid', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid);
EXECUTE of_uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
EXECUTE numbered('five');
EXECUTE numbered('9223372036854775808');
EXECUTE of_uuid('5');
DEALLOCATE ALL;
SELECT snowflake_ids.series_drop(name) FROM unnest(array['by number', 'by uuid']) AS name;
