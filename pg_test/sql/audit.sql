-- What an audit finds in a table: what is wrong with its ids, and how many there are of each worker and day.
\pset null -
SET timezone = 'UTC';
CREATE SCHEMA audited;
SET search_path = audited, public;
CREATE FUNCTION faults(relation regclass, attribute name DEFAULT 'id') RETURNS TABLE (finding text, id bigint, count bigint, detail text)
LANGUAGE sql AS $$
    SELECT a.finding, a.id, a.count, regexp_replace(a.detail, 'stands at [^ ]+', 'stands at ....')
    FROM snowflake_ids.audit(relation, attribute) a WHERE a.is_fault
$$;

-- Ids that are right have no faults.
CREATE TABLE orders (id bigint DEFAULT snowflake_nextval(), note text) PARTITION BY LIST (note);
CREATE TABLE orders_a PARTITION OF orders FOR VALUES IN ('a');
CREATE TABLE orders_b PARTITION OF orders FOR VALUES IN ('b');
INSERT INTO orders SELECT snowflake_compose('2021-01-01'::timestamptz + i * interval '6 hours', 0, i % 3, i), 'a' FROM generate_series(1, 9) i;
SELECT * FROM snowflake_ids.audit('orders', 'id');
INSERT INTO orders (note) SELECT 'b' FROM generate_series(1, 1000);
SELECT * FROM faults('orders');
SELECT count FROM snowflake_ids.audit('orders', 'id') WHERE finding = 'total';

-- What is wrong is found, and nothing else.
INSERT INTO orders VALUES (snowflake_compose('2021-01-01 06:00', 0, 1, 1), 'b'),
    (-5, 'a'), (NULL, 'b'), (snowflake_compose('2080-01-01', 1, 2, 3), 'a'), (snowflake_compose('2080-01-01', 1, 2, 3), 'b');
SELECT * FROM faults('orders');
SELECT finding, count, detail FROM snowflake_ids.audit('orders', 'id') WHERE finding IN ('null', 'total');
-- A partition by itself has less of it.
SELECT * FROM faults('orders_a');

-- Children of a table that is inherited from count, too.
CREATE TABLE parent (id bigint);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE "Grand ""child" () INHERITS (child);
INSERT INTO parent VALUES (4194304000);
INSERT INTO "Grand ""child" VALUES (4194304000);
SELECT * FROM faults('parent');

-- Another layout than the server's, a smaller one.
CREATE TABLE small (id integer);
INSERT INTO small VALUES (1), (2147483647);
SELECT * FROM snowflake_ids.audit('small', 'id', '16/0/4/4 unit=1s epoch=2020-01-01');
SELECT * FROM snowflake_ids.audit('small', 'id', 'nobody''s');
SELECT * FROM snowflake_ids.audit('small', 'id', '16/0/4');
-- Or a generator's: named, or by the column's default.
SELECT snowflake_ids.generator_create('audited', '31/0/4/18 unit=1s epoch=2020-01-01');
CREATE TABLE web (id bigint DEFAULT snowflake_nextval('audited'));
INSERT INTO web SELECT snowflake_compose('2021-01-01', 0, 1, i, 'audited') FROM generate_series(1, 10) i;
INSERT INTO web VALUES (1::bigint << 53);
SELECT * FROM faults('web');
SELECT id, detail FROM snowflake_ids.audit('web', 'id', 'audited') WHERE is_fault;
SELECT count(*) FROM snowflake_ids.audit('web', 'id', 'javascript') WHERE is_fault;
ALTER TABLE web ALTER COLUMN id SET DEFAULT snowflake_id('audited');
SELECT count(*) FROM faults('web');
ALTER TABLE web ALTER COLUMN id DROP DEFAULT;
SELECT snowflake_ids.generator_drop('audited');
SELECT * FROM snowflake_ids.audit('web', 'id', 'audited');

-- No more of a sort are listed than asked for.
CREATE TABLE twice (id bigint);
INSERT INTO twice SELECT i % 5 FROM generate_series(1, 10) i;
SELECT finding, is_fault, id, count, detail FROM snowflake_ids.audit('twice', 'id', max_findings => 2);
SELECT * FROM snowflake_ids.audit('twice', 'id', max_findings => 0);
SELECT * FROM snowflake_ids.audit('twice', 'id', max_findings => 100001);
SELECT * FROM snowflake_ids.audit('twice', 'id', max_findings => NULL);

-- Numbers of a tag: the column's default names it.
SELECT snowflake_ids.segment_create('it''s', increment => 2, remainder => 1);
CREATE TABLE invoices (id bigint DEFAULT segment_nextval('it''s'), note text);
INSERT INTO invoices (note) SELECT 'x' FROM generate_series(1, 10);
SELECT * FROM snowflake_ids.audit('invoices', 'id');
DELETE FROM invoices WHERE id IN (5, 7, 11);
INSERT INTO invoices VALUES (4), (99999999), (1);
SELECT * FROM snowflake_ids.audit('invoices', 'id');
-- Within the transaction that made the tag.
BEGIN;
SELECT snowflake_ids.segment_create('own');
CREATE TABLE own (id bigint DEFAULT segment_id('own'));
INSERT INTO own SELECT FROM generate_series(1, 5);
SELECT * FROM snowflake_ids.audit('own', 'id');
ROLLBACK;
-- Or it is named; of both one can be right only.
SELECT finding, id, count FROM snowflake_ids.audit('twice', 'id', tag => 'it''s') WHERE finding <> 'duplicate';
SELECT * FROM snowflake_ids.audit('invoices', 'id', 'twitter') WHERE is_fault;
SELECT * FROM snowflake_ids.audit('invoices', 'id', 'twitter', tag => 'it''s');
SELECT * FROM snowflake_ids.audit('invoices', 'id', tag => 'nobody''s');
SELECT * FROM snowflake_ids.audit('invoices', 'id', tag => '');
-- A default that only looks like ours names no tag.
CREATE FUNCTION audited.segment_nextval(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE TABLE alike (id bigint DEFAULT audited.segment_nextval('it''s'));
SELECT finding FROM snowflake_ids.audit('alike', 'id');
DROP TABLE alike;
DROP FUNCTION audited.segment_nextval(text);

-- Columns of domains and of smaller integers.
CREATE DOMAIN key AS bigint CHECK (value > 0);
CREATE TABLE of_domain (id key, short smallint);
INSERT INTO of_domain VALUES (1, 1), (2, 1);
SELECT * FROM faults('of_domain');
SELECT * FROM faults('of_domain', 'short');

-- What can't be audited.
CREATE VIEW shown AS SELECT * FROM twice;
CREATE TABLE other (id uuid, n numeric);
SELECT * FROM snowflake_ids.audit('shown', 'id');
SELECT * FROM snowflake_ids.audit('other', 'id');
SELECT * FROM snowflake_ids.audit('other', 'n');
SELECT * FROM snowflake_ids.audit('twice', 'nothing');
SELECT * FROM snowflake_ids.audit('twice', 'ctid');
SELECT * FROM snowflake_ids.audit('twice', 'tableoid');
SELECT * FROM snowflake_ids.audit('nothing', 'id');
SELECT * FROM snowflake_ids.audit(1::oid::regclass, 'id');
SELECT * FROM snowflake_ids.audit(NULL, 'id');
SELECT * FROM snowflake_ids.audit('twice', NULL);

-- It takes the right to read, and no more: the table's or the column's.
CREATE ROLE reader;
GRANT USAGE ON SCHEMA audited TO reader;
CREATE FOREIGN DATA WRAPPER idle;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER idle;
SET ROLE reader;
SELECT * FROM snowflake_ids.audit('twice', 'id');
RESET ROLE;
GRANT SELECT (id) ON twice TO reader;
GRANT SELECT ON orders TO reader;
SET ROLE reader;
SELECT count(*) FROM snowflake_ids.audit('twice', 'id', max_findings => 2) WHERE is_fault;
SELECT detail FROM snowflake_ids.audit('twice', 'id') WHERE id = 3;
-- Of partitions the right to read the whole is enough.
SELECT count(*) FROM snowflake_ids.audit('orders', 'id') WHERE is_fault;
SELECT * FROM snowflake_ids.audit('orders_a', 'id');
-- A tag's numbers take the right to see how far it came.
RESET ROLE;
GRANT SELECT ON invoices TO reader;
SELECT snowflake_ids.segment_grant('it''s', 'pg_monitor', 'USAGE');
SET ROLE reader;
SELECT * FROM snowflake_ids.audit('invoices', 'id');
-- Another server's table takes a right to use that server.
SELECT * FROM snowflake_ids.audit('twice', 'id', connections => '{elsewhere}');
RESET ROLE;
-- Rows that row security hides are not passed over.
ALTER TABLE twice ENABLE ROW LEVEL SECURITY;
SET ROLE reader;
SELECT * FROM snowflake_ids.audit('twice', 'id');
RESET ROLE;
SELECT count(*) FROM snowflake_ids.audit('twice', 'id') WHERE is_fault;

-- Connections that are none.
SELECT * FROM snowflake_ids.audit('twice', 'id', connections => '{}') WHERE finding = 'total';
SELECT * FROM snowflake_ids.audit('twice', 'id', connections => '{NULL}');
SELECT * FROM snowflake_ids.audit('twice', 'id', connections => '{nosuchserver}');
SELECT * FROM snowflake_ids.audit('twice', 'id', connections => array_fill('elsewhere'::text, '{65}'));
SELECT * FROM snowflake_ids.audit('twice', 'id', connections => ARRAY[repeat('x', 100000)]);
-- The owner of a server says where a superuser would connect.
GRANT USAGE ON FOREIGN DATA WRAPPER idle TO reader;
ALTER SERVER elsewhere OWNER TO reader;
SELECT * FROM snowflake_ids.audit('twice', 'id', connections => '{elsewhere}');
SET client_min_messages = warning;
DROP FOREIGN DATA WRAPPER idle CASCADE;
RESET client_min_messages;

-- Nothing of it stays: no cursor, no setting, no rights.
BEGIN;
SELECT count(*) FROM snowflake_ids.audit('twice', 'id') WHERE is_fault;
SELECT count(*) FROM pg_cursors WHERE statement LIKE '%tableoid%';
SHOW row_security;
SHOW search_path;
COMMIT;
-- Its statements see what the transaction has done, in the snapshot of the call.
BEGIN;
INSERT INTO small VALUES (1);
SELECT finding, id, count FROM snowflake_ids.audit('small', 'id') WHERE is_fault;
ROLLBACK;

SET client_min_messages = warning;
SELECT snowflake_ids.segment_drop('it''s');
DROP SCHEMA audited CASCADE;
DROP ROLE reader;
