-- A trigger fills a column from the key in another one.
SELECT snowflake_ids.series_create('invoices'),
    snowflake_ids.series_create('small', max_value => 32767),
    snowflake_ids.series_create('dated', key_type => 'text', reset => 'year', format => '{YYYY}-{n:4}'),
    snowflake_ids.series_create('messages', key_type => 'uuid', format => 'M{n}');

CREATE TABLE invoice (id serial PRIMARY KEY, tenant integer NOT NULL, number bigint NOT NULL, UNIQUE (tenant, number));
SELECT snowflake_ids.series_attach('invoice', 'number', 'invoices', 'tenant');
INSERT INTO invoice (tenant) VALUES (1), (2), (1), (1), (2) RETURNING id, tenant, number;
-- A row that brings a number keeps it, and takes none; the series goes on above it, if the key has a counter.
INSERT INTO invoice (tenant, number) VALUES (1, 1000), (1, NULL) RETURNING tenant, number;
INSERT INTO invoice (tenant) SELECT k % 3 FROM generate_series(1, 9) AS k;
COPY invoice (tenant) FROM stdin;
1
7
1
7
\.
COPY invoice (tenant, number) FROM stdin;
8	55
8	\N
\.
SELECT tenant, array_agg(number ORDER BY id) AS in_order FROM invoice GROUP BY tenant ORDER BY tenant;
INSERT INTO invoice (tenant) VALUES (NULL);
INSERT INTO invoice (tenant, number) VALUES (1, 1) ON CONFLICT DO NOTHING;
WITH more AS (INSERT INTO invoice (tenant) VALUES (1) RETURNING number) SELECT number FROM more;
BEGIN;
INSERT INTO invoice (tenant) VALUES (1) RETURNING number;
ROLLBACK;
INSERT INTO invoice (tenant) VALUES (1) RETURNING number;
UPDATE invoice SET tenant = 2 WHERE tenant = 7 RETURNING number;
SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'invoice'::regclass ORDER BY tgname;

-- While it is used, the series stays, and keeps its name.
SELECT snowflake_ids.series_drop('invoices');
SELECT snowflake_ids.series_alter('invoices', new_name => 'bills');
SELECT snowflake_ids.series_attach('invoice', 'number', 'invoices', 'tenant');
ALTER TABLE invoice RENAME number TO no;
INSERT INTO invoice (tenant) VALUES (1);
ALTER TABLE invoice RENAME no TO number;
ALTER TABLE invoice ALTER tenant TYPE numeric;
INSERT INTO invoice (tenant) VALUES (1);
ALTER TABLE invoice ALTER tenant TYPE integer;
SELECT snowflake_ids.series_detach('invoice', 'number');
SELECT snowflake_ids.series_detach('invoice', 'number');

-- It goes on above the rows that are there: of keys without a counter, too.
DELETE FROM invoice;
INSERT INTO invoice (tenant, number) VALUES (1, 2000), (30, 5), (30, 6);
SELECT snowflake_ids.series_attach('invoice', 'number', 'invoices', 'tenant');
INSERT INTO invoice (tenant) VALUES (1), (30), (31), (2) RETURNING tenant, number;
SELECT snowflake_ids.series_detach('invoice', 'number');

-- Smaller numbers, texts, domains, partitions.
CREATE DOMAIN project AS varchar(20);
CREATE TABLE ticket (id serial, project project, number varchar(9), small smallint, tenant smallint);
SELECT snowflake_ids.series_attach('ticket', 'number', 'dated', 'project');
SELECT snowflake_ids.series_attach('ticket', 'small', 'small', 'tenant');
INSERT INTO ticket (project, tenant) VALUES ('web', 1), ('app', 1), ('web', 2);
SELECT project, number = to_char(now() AT TIME ZONE 'UTC', 'YYYY') || '-' || CASE WHEN id = 3 THEN '0002' ELSE '0001' END AS number, small FROM ticket ORDER BY id;
SELECT snowflake_ids.series_set('dated', 'web', 9999);
-- The message has the year in it.
\set VERBOSITY sqlstate
INSERT INTO ticket (project, tenant) VALUES ('web', 1);
\set VERBOSITY verbose
SELECT snowflake_ids.series_set('small', 1, 32767);
INSERT INTO ticket (project, tenant) VALUES ('app', 1);
SELECT snowflake_ids.series_alter('small', max_value => 40000);
INSERT INTO ticket (project, tenant) VALUES ('app', 1);

CREATE TABLE message (conversation uuid, number text, part integer) PARTITION BY LIST (part);
CREATE TABLE message_1 PARTITION OF message FOR VALUES IN (1);
SELECT snowflake_ids.series_attach('message', 'number', 'messages', 'conversation');
CREATE TABLE message_2 (gone integer, part integer, number text, conversation uuid);
ALTER TABLE message_2 DROP COLUMN gone;
ALTER TABLE message ATTACH PARTITION message_2 FOR VALUES IN (2);
INSERT INTO message (conversation, part) SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1 + k % 2 FROM generate_series(1, 4) AS k RETURNING number, part;
INSERT INTO message_2 (conversation, part) VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 2) RETURNING number, part;
SELECT snowflake_ids.series_drop('messages');
CREATE TABLE parted (tenant bigint, number bigint) PARTITION BY LIST (number);
SELECT snowflake_ids.series_attach('parted', 'number', 'invoices', 'tenant');
DROP TABLE parted;
SELECT snowflake_ids.series_detach('message', 'number');
SELECT count(*) FROM pg_trigger WHERE tgrelid IN ('message'::regclass, 'message_1'::regclass, 'message_2'::regclass);

-- What cannot be attached.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT snowflake_ids.series_attach('ticket', 'id', 'invoices', 'tenant');
ROLLBACK;
CREATE TABLE wrong (tenant bigint, number bigint, narrow integer, always bigint GENERATED ALWAYS AS IDENTITY,
                    twice bigint GENERATED ALWAYS AS (tenant * 2) STORED, full_one bigint DEFAULT 1, price numeric, name text, dom project);
CREATE VIEW wrong_view AS SELECT * FROM wrong;
SELECT snowflake_ids.series_attach(NULL, 'number', 'invoices', 'tenant');
SELECT snowflake_ids.series_attach('wrong', 'number', NULL, 'tenant');
SELECT snowflake_ids.series_attach('wrong_view', 'number', 'invoices', 'tenant');
SELECT snowflake_ids.series_attach('wrong', 'number', 'none', 'tenant');
SELECT snowflake_ids.series_attach('wrong', 'none', 'invoices', 'tenant');
SELECT snowflake_ids.series_attach('wrong', 'number', 'invoices', 'none');
SELECT snowflake_ids.series_attach('wrong', 'number', 'invoices', 'number');
SELECT snowflake_ids.series_attach('wrong', 'narrow', 'invoices', 'tenant');
SELECT snowflake_ids.series_attach('wrong', 'always', 'invoices', 'tenant');
SELECT snowflake_ids.series_attach('wrong', 'twice', 'invoices', 'tenant');
SELECT snowflake_ids.series_attach('wrong', 'number', 'invoices', 'twice');
SELECT snowflake_ids.series_attach('wrong', 'full_one', 'invoices', 'tenant');
SELECT snowflake_ids.series_attach('wrong', 'price', 'invoices', 'tenant');
SELECT snowflake_ids.series_attach('wrong', 'dom', 'invoices', 'tenant');
SELECT snowflake_ids.series_attach('wrong', 'number', 'invoices', 'name');
SELECT snowflake_ids.series_attach('wrong', 'number', 'messages', 'tenant');
SELECT snowflake_ids.series_detach('wrong', 'number');
CREATE TRIGGER misused BEFORE UPDATE ON wrong FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.series_fill('invoices', 'number', 'tenant');
INSERT INTO wrong (tenant) VALUES (1);
UPDATE wrong SET tenant = 2;
SELECT snowflake_ids_internal.series_fill();

-- The table's owner is who takes the numbers.
CREATE ROLE series_owner;
CREATE ROLE series_writer;
GRANT CREATE ON SCHEMA public TO series_owner;
SELECT snowflake_ids.series_create('private', owner => 'series_owner');
SET ROLE series_owner;
SELECT snowflake_ids.series_attach('wrong', 'number', 'private', 'tenant');
CREATE TABLE owned (tenant bigint, number bigint);
INSERT INTO owned VALUES (1, 7);
SELECT snowflake_ids.series_attach('owned', 'number', 'private', 'tenant');
GRANT INSERT, SELECT ON owned TO series_writer;
RESET ROLE;
SELECT snowflake_ids.series_detach('owned', 'number');
SELECT snowflake_ids.series_attach('owned', 'number', 'private', 'tenant');
SET ROLE series_owner;
SELECT snowflake_ids.series_attach('owned', 'number', 'private', 'tenant');
RESET ROLE;
SET ROLE series_writer;
INSERT INTO owned (tenant) VALUES (1) RETURNING number;
SELECT series_nextval('private', 1);
RESET ROLE;
SET ROLE series_writer;
CREATE TEMP TABLE thief (tenant bigint, number bigint);
SELECT snowflake_ids.series_attach('thief', 'number', 'private', 'tenant');
CREATE TRIGGER thief BEFORE INSERT ON thief FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.series_fill('private', 'number', 'tenant');
INSERT INTO thief (tenant) VALUES (1);
RESET ROLE;
SELECT snowflake_ids.series_attach('thief', 'number', 'private', 'tenant');
-- Who may make triggers on a table does not have its owner's rights.
SET ROLE series_owner;
GRANT TRIGGER ON owned TO series_writer;
RESET ROLE;
SET ROLE series_writer;
CREATE TRIGGER thief BEFORE INSERT ON owned FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.series_fill('private', 'number', 'tenant');
SELECT snowflake_ids.series_attach('owned', 'number', 'private', 'tenant');
-- as_owner is for roles that may become the owner.
SELECT snowflake_ids_internal.as_owner('owned'::regclass, 'SELECT count(*) FROM public.owned');
SELECT snowflake_ids_internal.as_owner('thief'::regclass, 'SELECT count(*) FROM set_config(''role'', ''series_owner'', true)');
RESET ROLE;

-- What a table's owner has put into an index runs with no other role's rights.
SET ROLE series_owner;
CREATE FUNCTION public.whose(integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RAISE NOTICE 'the index is looked at as %', current_user;
    RETURN $1 = 1;
END
$$;
CREATE TABLE trap (tenant bigint, number bigint);
CREATE INDEX ON trap (number) WHERE public.whose(1);
RESET ROLE;
SELECT snowflake_ids.series_create('trap');
SELECT snowflake_ids.series_attach('trap', 'number', 'trap', 'tenant');
SELECT snowflake_ids.series_detach('trap', 'number');
-- Row security hides no numbers.
CREATE TABLE hidden (tenant text, number bigint);
INSERT INTO hidden VALUES ('a', 9);
ALTER TABLE hidden OWNER TO series_owner;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
ALTER TABLE hidden FORCE ROW LEVEL SECURITY;
SELECT snowflake_ids.series_create('hidden', key_type => 'text', owner => 'series_owner');
SET ROLE series_owner;
SELECT snowflake_ids.series_attach('hidden', 'number', 'hidden', 'tenant');
RESET ROLE;
-- Numbers that cannot be gone on above are told of.
CREATE TABLE old_texts (tenant text, number text);
INSERT INTO old_texts VALUES ('a', '2020-0001');
SELECT snowflake_ids.series_attach('old_texts', 'number', 'dated', 'tenant');

-- A number is taken for a row that is not stored then.
CREATE TABLE unstored (tenant bigint, number bigint, mail text UNIQUE);
SELECT snowflake_ids.series_create('unstored');
SELECT snowflake_ids.series_attach('unstored', 'number', 'unstored', 'tenant');
INSERT INTO unstored (tenant, mail) VALUES (1, 'a'), (1, 'a'), (1, 'b') ON CONFLICT DO NOTHING;
SELECT number, mail FROM unstored ORDER BY number;
-- Looked up first it is not.
INSERT INTO unstored (tenant, mail) SELECT 1, m.mail FROM (VALUES ('a'), ('c')) AS m (mail)
    WHERE NOT EXISTS (SELECT FROM unstored AS u WHERE u.mail = m.mail) RETURNING number, mail;

-- A counter follows the numbers that rows bring, upwards alone.
CREATE VIEW counter AS SELECT key, last_value FROM snowflake_ids.series_key WHERE series = 'brought' ORDER BY key;
CREATE TABLE brought (tenant bigint, number integer, UNIQUE (tenant, number));
SELECT snowflake_ids.series_create('brought', max_value => 1000);
SELECT snowflake_ids.series_attach('brought', 'number', 'brought', 'tenant');
INSERT INTO brought (tenant) VALUES (1), (2) RETURNING *;
INSERT INTO brought VALUES (1, 5), (1, NULL), (1, 3), (1, 9), (2, 2), (2, NULL) RETURNING *;
COPY brought FROM stdin;
1	20
1	19
2	\N
1	30
1	\N
1	40
\.
SELECT * FROM counter;
-- Not to numbers that the series does not have, nor where there is no key or no counter.
INSERT INTO brought VALUES (1, 1001), (1, -5), (NULL, 6), (3, 7);
SELECT * FROM counter;
-- A rollback takes it back, to a savepoint, too.
BEGIN;
INSERT INTO brought VALUES (1, 50);
SAVEPOINT a;
INSERT INTO brought VALUES (1, 60), (2, 60);
SAVEPOINT b;
INSERT INTO brought VALUES (1, 70);
RELEASE b;
INSERT INTO brought VALUES (2, 80);
ROLLBACK TO a;
INSERT INTO brought (tenant) VALUES (2) RETURNING *;
INSERT INTO brought VALUES (1, 55), (1, 52);
COMMIT;
SELECT * FROM counter;
-- What is counted between such rows counts.
BEGIN;
INSERT INTO brought VALUES (1, 100), (1, 110);
SAVEPOINT a;
SELECT snowflake_ids.series_set('brought', 1, 105);
ROLLBACK TO a;
SELECT snowflake_ids.series_set('brought', 1, 105, force => true);
INSERT INTO brought VALUES (2, 100), (2, 110);
SELECT series_nextval('brought', 1), series_nextval('brought', 2);
COMMIT;
SELECT * FROM counter;
INSERT INTO brought VALUES (1, 1), (3, 1) ON CONFLICT DO NOTHING;
UPDATE brought SET number = 500 WHERE number = 110;
SELECT * FROM counter;
-- No counter is begun: in a data-only restore it is loaded after the rows.
BEGIN;
DELETE FROM snowflake_ids.series_bigint;
INSERT INTO brought VALUES (1, 600), (2, 600);
INSERT INTO snowflake_ids.series_bigint (series, key, last_value) SELECT id, 1, 650 FROM snowflake_ids.series WHERE name = 'brought';
SELECT * FROM counter;
INSERT INTO brought (tenant) VALUES (1) RETURNING *;
INSERT INTO brought VALUES (1, 700), (1, 701);
COMMIT;
SELECT * FROM counter;
-- It takes the table owner's right to series_set. A row that is refused, or that a trigger changes, raises nothing.
CREATE TABLE tenants (tenant bigint, number bigint);
ALTER TABLE tenants OWNER TO series_owner;
SELECT snowflake_ids.series_attach('tenants', 'number', 'brought', 'tenant');
INSERT INTO tenants VALUES (1, 900);
SELECT snowflake_ids.series_grant('brought', 'series_owner', 'USAGE');
INSERT INTO tenants VALUES (1, 900);
SELECT * FROM counter;
SELECT snowflake_ids.series_grant('brought', 'series_owner', 'UPDATE');
GRANT INSERT ON tenants TO series_writer;
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON tenants USING (tenant = 2) WITH CHECK (tenant = 2);
SET ROLE series_writer;
INSERT INTO tenants VALUES (1, 1000);
INSERT INTO tenants VALUES (1, 1000) ON CONFLICT DO NOTHING;
INSERT INTO tenants VALUES (2, 900);
RESET ROLE;
CREATE FUNCTION public.own_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.tenant := 2;
    RETURN NEW;
END
$$;
CREATE TRIGGER tenant BEFORE INSERT ON tenants FOR EACH ROW EXECUTE FUNCTION public.own_tenant();
SET ROLE series_writer;
INSERT INTO tenants VALUES (1, 950);
RESET ROLE;
SELECT * FROM counter;
SELECT snowflake_ids.series_detach('tenants', 'number'), snowflake_ids.series_detach('brought', 'number');
SELECT count(*) FROM pg_trigger WHERE tgrelid IN ('tenants'::regclass, 'brought'::regclass);
DROP TABLE brought, tenants;
DROP FUNCTION public.own_tenant;
DROP VIEW counter;

-- Names that begin alike, and as long as can be.
CREATE TABLE long_names (tenant bigint, a_name_that_is_as_long_as_names_of_columns_can_be_in_postgres_1 bigint,
    a_name_that_is_as_long_as_names_of_columns_can_be_in_postgres_2 bigint);
SELECT snowflake_ids.series_attach('long_names', 'a_name_that_is_as_long_as_names_of_columns_can_be_in_postgres_1', 'unstored', 'tenant');
SELECT snowflake_ids.series_attach('long_names', 'a_name_that_is_as_long_as_names_of_columns_can_be_in_postgres_2', 'unstored', 'tenant');
INSERT INTO long_names (tenant) VALUES (2) RETURNING *;
DROP TABLE long_names;
SELECT snowflake_ids.series_attach(0, 'number', 'unstored', 'tenant');

-- Triggers of other forms are in nobody's way.
CREATE TRIGGER other BEFORE INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.series_fill();
-- Backslashes escape in plain literals before 19.
SELECT current_setting('server_version_num')::int < 190000 AS escapes \gset
\if :escapes
SET standard_conforming_strings = off;
SET escape_string_warning = off;
\endif
SELECT snowflake_ids.series_create('scs');
SELECT snowflake_ids.series_drop('scs');
SELECT snowflake_ids.series_drop('unstored');
SELECT snowflake_ids.series_detach('unstored', 'number');
\if :escapes
RESET standard_conforming_strings;
RESET escape_string_warning;
\endif
SET quote_all_identifiers = on;
SELECT snowflake_ids.series_create('quoted', key_type => 'uuid');
RESET quote_all_identifiers;
DROP TABLE trap, hidden, old_texts, unstored;
DROP FUNCTION public.whose;
DROP TABLE owned, thief, wrong, invoice, ticket, message CASCADE;
DROP DOMAIN project;
SELECT snowflake_ids.series_drop(name) FROM (SELECT name FROM snowflake_ids.series) AS s;
REVOKE CREATE ON SCHEMA public FROM series_owner;
DROP ROLE series_owner, series_writer;
