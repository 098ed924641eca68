-- The type snowflake_id: a bigint whose JSON is a string.
CREATE TABLE customers (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE orders (id bigserial PRIMARY KEY, customer_id bigint REFERENCES customers);
CREATE INDEX ON orders (customer_id);
INSERT INTO customers (id, name) SELECT 911811189128851456 + n, 'c' || n FROM generate_series(1, 1000) AS n;
INSERT INTO orders (customer_id) SELECT id FROM customers;

-- ALTER rewrites neither tables nor indexes, and foreign keys stay, in both directions.
CREATE TEMP TABLE files AS SELECT relname, relfilenode FROM pg_class WHERE relname ~ '^(customers|orders)' AND relkind IN ('r', 'i');
ALTER TABLE customers ALTER id TYPE snowflake_id;
INSERT INTO orders (customer_id) SELECT min(id) FROM customers;
ALTER TABLE orders ALTER customer_id TYPE snowflake_id;
ALTER TABLE customers ALTER id TYPE bigint;
DELETE FROM customers WHERE name = 'c2';
INSERT INTO orders (customer_id) VALUES (5);
ALTER TABLE customers ALTER id TYPE snowflake_id;
INSERT INTO orders (customer_id) SELECT max(id) FROM customers;
ALTER TABLE orders ALTER id TYPE snowflake_id;
SELECT count(*), count(*) FILTER (WHERE c.relfilenode <> f.relfilenode) AS rewritten FROM files AS f JOIN pg_class AS c USING (relname);
ANALYZE customers, orders;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'customers'::regclass;

-- Stored as a bigint.
SELECT i.typlen = b.typlen AND i.typbyval = b.typbyval AND i.typalign = b.typalign AND i.typstorage = b.typstorage AS same, i.typcategory
FROM pg_type AS i, pg_type AS b WHERE i.oid = 'snowflake_id'::regtype AND b.oid = 'bigint'::regtype;

-- JSON writes a string, and reads strings and numbers.
SELECT row_to_json(c), to_jsonb(c.id), json_agg(c.id), jsonb_build_object('id', c.id, 'ids', ARRAY[c.id]), to_jsonb(c.id + 0) AS bigint
FROM customers AS c WHERE name = 'c1' GROUP BY c.id;
SELECT * FROM jsonb_populate_record(NULL::customers, '{"id": "911811189128851457", "name": "text"}');
SELECT * FROM jsonb_to_record('{"id": 911811189128851457}') AS r (id snowflake_id);
SELECT '911811189128851457 '::snowflake_id, '-1'::snowflake_id;
SELECT '1.5'::snowflake_id;
SELECT '9223372036854775808'::snowflake_id;

-- A call with a literal names a generator, as before there was the type; a call with a number is a cast.
SELECT snowflake_ids.generator_create('web');
SELECT snowflake_id('web') < snowflake_id('web'::text) AS grows, pg_typeof(snowflake_id('web')) AS call, snowflake_id(NULL),
    pg_typeof(snowflake_id(7::bigint)) AS cast;
SELECT snowflake_id('nobody');
SELECT snowflake_id(repeat('x', 1000)), snowflake_id('');
CREATE TABLE named (id bigint DEFAULT snowflake_id('web'), v int);
INSERT INTO named (v) VALUES (1), (2);
COPY named (v) FROM STDIN;
3
\.
SELECT count(DISTINCT id), pg_get_expr(adbin, adrelid) FROM named, pg_attrdef WHERE adrelid = 'named'::regclass GROUP BY 2;
SELECT snowflake_ids.generator_drop('web');
SELECT action FROM snowflake_ids.attach_plan('public') WHERE relation = 'named'::regclass;
SELECT snowflake_ids.attach('named', 'id');
SELECT snowflake_ids.attach('named', 'id', generator => 'web');
ALTER TABLE named ALTER id SET DEFAULT snowflake_id('web');
SELECT snowflake_ids.attach('named', 'id', generator => 'web');
DROP TABLE named;
SELECT snowflake_ids.generator_drop('web');

-- Indexes serve.
CREATE FUNCTION scans(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line !~ 'Scan';
        RETURN NEXT regexp_replace(line, '.*->  ', '');
    END LOOP;
END
$$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
PREPARE by_id AS SELECT * FROM customers WHERE id = $1;
SELECT parameter_types FROM pg_prepared_statements WHERE name = 'by_id';
SELECT query, scans(query) FROM unnest(ARRAY[
    $$SELECT * FROM customers WHERE id = '911811189128851457'$$,
    $$SELECT * FROM customers WHERE id = 911811189128851457$$,
    $$SELECT * FROM customers WHERE id = 5$$,
    $$SELECT * FROM customers WHERE id = ANY ('{1,2}'::bigint[])$$,
    $$SELECT * FROM customers WHERE id >= snowflake_min_id('2026-01-01') AND id < 5 ORDER BY id DESC LIMIT 1$$,
    $$SELECT max(id) FROM customers$$,
    $$SELECT min(id) FROM customers$$,
    $$SELECT * FROM customers AS c JOIN orders AS o ON o.customer_id = c.id WHERE c.id = 7$$,
    'EXECUTE by_id(7)']) AS query;
RESET enable_bitmapscan;
RESET enable_seqscan;
CREATE INDEX ON customers USING brin (id);
CREATE INDEX ON customers USING hash (id);
CREATE UNIQUE INDEX ON customers (id DESC, name);
SELECT count(DISTINCT id), max(id), min(id), pg_typeof(max(id)) FROM customers WHERE name <> 'c5';

-- Casts. Beside a bigint it is a bigint; an integer wants a cast there.
INSERT INTO customers (id) VALUES (1), (2::smallint), (3::bigint), ('4');
INSERT INTO customers (id) VALUES (5.0);
UPDATE customers SET id = id + 10 WHERE id < 5;
SELECT id, id::bigint AS big, id::text AS text, id % 4 AS shard, pg_typeof(id + 1) AS sum, greatest(id, 3::bigint) FROM customers WHERE id < 100 ORDER BY id LIMIT 2;
SELECT pg_typeof(x) FROM (SELECT id FROM customers UNION SELECT 1::bigint) AS u (x) LIMIT 1;
SELECT pg_typeof(coalesce(id, 0::bigint)), pg_typeof(coalesce(id, '0')), pg_typeof(ARRAY[id]) FROM customers LIMIT 1;
SELECT coalesce(id, 0) FROM customers;
DELETE FROM customers WHERE id < 100;
-- Where PostgreSQL would make a numeric or a double of a bigint, or compares types of ranges and arrays, it wants a bigint.
CREATE FUNCTION state(expression text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT %s FROM customers', expression);
    RETURN '00000';
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate;
END
$$;
SELECT expression, state(format(expression, 'id')) AS id, state(format(expression, 'id::bigint')) AS bigint FROM unnest(ARRAY[
    '%s = 5::numeric', '5.0 = %s', 'random() < %s', '%s > 5::real', '%s * 1.5', 'int8range(1, 5) @> %s', '%s <@ int8range(1, 5)',
    'array[%s] <@ array[5::bigint]', 'width_bucket(%s, 1, 5, 5)', 'percentile_cont(0.5) WITHIN GROUP (ORDER BY %s)',
    'corr(%s, 1)', 'round(%s, -2)', 'ceil(%s)', 'sqrt(%s)', 'power(%s, 2)', 'div(%s, 3)', 'lag(%s, 1, 0) OVER ()',
    '(%s)::numeric', '(%s)::float8', '(%s)::bit(64)']) AS expression;
SELECT expression, state(expression) FROM unnest(ARRAY['id = 5', 'id = ''5''', '5::smallint < id', 'id IN (1, 2)', 'id = ANY (''{1}'')',
    'id = ANY (ARRAY[1, 2])', 'abs(id)', 'id << 2', 'sum(id)', 'avg(id)', 'mode() WITHIN GROUP (ORDER BY id)', 'int8range(id, NULL)',
    'width_bucket(id, ARRAY[1::bigint])', 'percentile_disc(0.5) WITHIN GROUP (ORDER BY id)', 'id || ''x''', 'lag(id) OVER ()',
    'generate_series(id, id)', 'nullif(id, 5)', 'to_hex(id)']) AS expression;
DROP FUNCTION state;

-- The functions of the extension take it.
SELECT snowflake_timestamp(id) = snowflake_timestamp(id::bigint) AS same, snowflake_encode(id, 'base58'), (snowflake_decode(id)).worker_id,
    snowflake_between(id, '2020-01-01', '2080-01-01') FROM customers WHERE name = 'c1';
SELECT snowflake_encode(id, 'base58', 'cus'), snowflake_decode_text(snowflake_encode(id, 'base58', 'cus', true), 'base58', 'cus') = id AS reads_back
FROM customers WHERE name = 'c1';

-- COPY, as text and binary: bytes are those of bigint.
COPY (SELECT id, name FROM customers WHERE name = 'c1') TO STDOUT;
CREATE TABLE copied (id bigint, name text);
CREATE TABLE back (id snowflake_id, name text);
SELECT current_setting('data_directory') || '/snowflake_id.copy' AS file \gset
COPY customers TO :'file' (FORMAT binary);
COPY copied FROM :'file' (FORMAT binary);
COPY copied TO :'file' (FORMAT binary);
COPY back FROM :'file' (FORMAT binary);
SELECT count(*) FROM customers JOIN copied USING (id, name) JOIN back USING (id, name);

-- Partitions by hash and by range; those by hash take a row to where a bigint of that value goes.
CREATE TABLE hashed (id snowflake_id PRIMARY KEY) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE hashed_big (id bigint PRIMARY KEY) PARTITION BY HASH (id);
CREATE TABLE hashed_big_0 PARTITION OF hashed_big FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_big_1 PARTITION OF hashed_big FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO hashed SELECT id FROM customers;
INSERT INTO hashed_big SELECT id FROM customers;
SELECT count(*) AS same FROM hashed AS h JOIN hashed_big AS b USING (id)
WHERE right(h.tableoid::regclass::text, 1) = right(b.tableoid::regclass::text, 1);
SELECT scans('SELECT * FROM hashed WHERE id = 911811189128851457') ~ 'hashed_\d_pkey';
CREATE TABLE ranged (id snowflake_id PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
CREATE TABLE ranged_0 PARTITION OF ranged FOR VALUES FROM (0) TO (1000);
CREATE TABLE ranged_1 PARTITION OF ranged FOR VALUES FROM ('1000') TO (MAXVALUE);
INSERT INTO ranged VALUES (7), (DEFAULT);
SELECT tableoid::regclass, count(*) FROM ranged GROUP BY 1 ORDER BY 1;
SELECT scans('SELECT * FROM ranged WHERE id < 5') ~ 'ranged_0';

-- attach, and a domain over the type; keys of series.
SELECT snowflake_ids.attach('orders', 'id', 'segment', tag => 'typed');
INSERT INTO orders (customer_id) SELECT max(id) FROM customers RETURNING id, lastval(), currval('orders_id_seq');
SELECT snowflake_ids.detach('orders', 'id');
CREATE DOMAIN order_id AS snowflake_id CHECK (VALUE > 0);
CREATE TABLE domains (id order_id, at date);
SELECT snowflake_ids.attach('domains', 'id');
INSERT INTO domains DEFAULT VALUES;
INSERT INTO domains VALUES (DEFAULT), (DEFAULT);
SELECT id > 911811189128851456 AS is_new, to_json(id)::text ~ '^"\d+"$' AS is_string FROM domains;
SELECT is_fault, finding, count FROM snowflake_ids.audit('domains', 'id') WHERE finding = 'total' OR is_fault;
SELECT snowflake_ids.segment_drop('typed');
-- A former identity, which the type cannot be.
CREATE TABLE former (id bigint GENERATED ALWAYS AS IDENTITY);
SELECT snowflake_ids.attach('former', 'id', 'segment');
ALTER TABLE former ALTER id TYPE snowflake_id;
SELECT snowflake_ids.detach('former', 'id');
INSERT INTO former DEFAULT VALUES RETURNING id;
DROP TABLE former;
SELECT snowflake_ids.segment_drop('public.former');
CREATE TABLE numbered (customer_id bigint, number bigint);
SELECT snowflake_ids.series_create('of_customers');
SELECT snowflake_ids.series_attach('numbered', 'number', 'of_customers', 'customer_id');
INSERT INTO numbered (customer_id) VALUES (7) RETURNING number;
ALTER TABLE numbered ALTER customer_id TYPE snowflake_id;
INSERT INTO numbered (customer_id) VALUES (7) RETURNING number;
SELECT snowflake_ids.series_detach('numbered', 'number');
SELECT snowflake_ids.series_attach('numbered', 'number', 'of_customers', 'customer_id');
INSERT INTO numbered (customer_id) VALUES (7) RETURNING number;

-- ALTER is refused by what has read the column.
CREATE TABLE used (id bigint PRIMARY KEY, of bigint GENERATED ALWAYS AS (id / 2) STORED, counted bigint GENERATED ALWAYS AS IDENTITY);
ALTER TABLE used ALTER counted TYPE snowflake_id;
-- The SQLSTATE is another one before 15, and DETAIL ends in a period from 19 on.
\set VERBOSITY terse
ALTER TABLE used ALTER id TYPE snowflake_id;
ALTER TABLE used DROP of;
CREATE VIEW seen AS SELECT id FROM used;
ALTER TABLE used ALTER id TYPE snowflake_id;
DROP VIEW seen;
CREATE POLICY own ON used USING (id > 0);
ALTER TABLE used ALTER id TYPE snowflake_id;
DROP POLICY own ON used;
CREATE TRIGGER t BEFORE UPDATE OF id ON used FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
ALTER TABLE used ALTER id TYPE snowflake_id;
\set VERBOSITY verbose
DROP TABLE used;

-- DROP EXTENSION would take columns, and whole tables that are partitioned by them: refused, by whatever way it comes.
CREATE ROLE owner_of_type;
CREATE DATABASE dropped OWNER owner_of_type;
\c dropped
SET client_min_messages = warning;
SET ROLE owner_of_type;
CREATE EXTENSION snowflake_ids;
DROP EXTENSION snowflake_ids;
RESET ROLE;
-- A NOTICE names types that the name no longer means, even those of tables.
CREATE DOMAIN snowflake_id AS text;
CREATE SCHEMA "Own";
CREATE TABLE "Own".snowflake_id (id int);
CREATE TYPE pg_temp.snowflake_id AS ENUM ();
SET client_min_messages = notice;
CREATE EXTENSION snowflake_ids;
SHOW client_min_messages;
SET client_min_messages = error;
DROP EXTENSION snowflake_ids;
CREATE EXTENSION snowflake_ids;
DROP EXTENSION snowflake_ids;
SET client_min_messages = warning;
DROP SCHEMA "Own" CASCADE;
DROP TYPE pg_temp.snowflake_id;
DROP DOMAIN public.snowflake_id;
SET ROLE owner_of_type;
CREATE EXTENSION snowflake_ids;
RESET ROLE;
CREATE SCHEMA planted;
CREATE FUNCTION planted.equal(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR planted.= (FUNCTION = planted.equal, LEFTARG = oid, RIGHTARG = oid);
CREATE DOMAIN planted.key AS snowflake_id;
CREATE TABLE "Plain" (id snowflake_id, v text);
SET search_path = planted, pg_catalog;
DROP EXTENSION snowflake_ids CASCADE;
RESET search_path;
\set VERBOSITY terse
DROP EXTENSION snowflake_ids;
\set VERBOSITY verbose
DROP EXTENSION plpgsql CASCADE;
DROP TYPE snowflake_id CASCADE;
DROP SCHEMA snowflake_ids CASCADE;
DO $$ BEGIN DROP EXTENSION snowflake_ids CASCADE; EXCEPTION WHEN dependent_objects_still_exist THEN RAISE WARNING 'refused'; END $$;
DROP OWNED BY owner_of_type CASCADE;
-- In one transaction with what makes it right.
BEGIN; ALTER TABLE "Plain" ALTER id TYPE bigint; DROP EXTENSION snowflake_ids CASCADE; ROLLBACK;
BEGIN; ALTER TABLE "Plain" DROP id; DROP EXTENSION snowflake_ids CASCADE; ROLLBACK;
BEGIN; DROP TABLE "Plain"; DROP EXTENSION snowflake_ids CASCADE; ROLLBACK;
-- And with what makes it wrong.
BEGIN; ALTER TABLE "Plain" DROP id, ADD new snowflake_id; DROP EXTENSION snowflake_ids CASCADE; ROLLBACK;
DROP TABLE "Plain";
-- Each way of having the type.
CREATE TABLE arrays (ids snowflake_id[]);
DROP EXTENSION snowflake_ids CASCADE;
DROP TABLE arrays;
CREATE TABLE domains (id planted.key, ids planted.key[]);
SET search_path = planted, pg_catalog;
DROP EXTENSION snowflake_ids CASCADE;
RESET search_path;
DROP TABLE domains;
CREATE TYPE pair AS (a snowflake_id, b int);
DROP EXTENSION snowflake_ids CASCADE;
DROP TYPE pair;
CREATE TABLE parts (id snowflake_id) PARTITION BY HASH (id);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
DROP EXTENSION snowflake_ids CASCADE;
DROP TABLE parts;
CREATE TABLE by_cast (id bigint) PARTITION BY HASH ((id::snowflake_id));
DROP EXTENSION snowflake_ids CASCADE;
DROP TABLE by_cast;
CREATE VIEW cast_to AS SELECT 1::bigint::snowflake_id AS id;
DROP EXTENSION snowflake_ids CASCADE;
DROP VIEW cast_to;
CREATE TYPE id_range AS RANGE (subtype = snowflake_id);
CREATE TABLE ranges (ids id_range);
DROP EXTENSION snowflake_ids CASCADE;
DROP TABLE ranges;
DROP TYPE id_range;
-- Rowtypes of the extension go with it.
CREATE TABLE rowtypes (of snowflake_ids.segment_status);
BEGIN; DROP EXTENSION snowflake_ids CASCADE; ROLLBACK;
DROP TABLE rowtypes;
-- A type of the same name elsewhere does not matter, nor a column that is gone.
CREATE TYPE planted.snowflake_id AS (a int);
CREATE TABLE others (id planted.snowflake_id, once snowflake_id);
ALTER TABLE others DROP once;
DROP TYPE planted.snowflake_id CASCADE;
DROP DOMAIN planted.key;
DROP EXTENSION snowflake_ids;
\c regression
DROP DATABASE dropped;
DROP ROLE owner_of_type;
SELECT snowflake_ids.series_detach('numbered', 'number');
SELECT snowflake_ids.series_drop('of_customers');
DROP FUNCTION scans;
DROP TABLE numbered, domains, ranged, hashed, hashed_big, copied, back, orders, customers;
DROP DOMAIN order_id;
