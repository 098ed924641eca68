-- Ids of one shard: those that hash partitioning puts there.
CREATE TABLE hashed (id bigint) PARTITION BY HASH (id);
SELECT snowflake_ids.generator_create('third of 16', modulus => 16, remainder => 3);
SELECT snowflake_ids.generator_create('all', modulus => 1, remainder => 0);
CREATE TABLE ids (at serial, id bigint);
INSERT INTO ids (id) SELECT snowflake_nextval('third of 16') FROM generate_series(1, 1000);
INSERT INTO ids (id) SELECT snowflake_nextvals(1000, 'third of 16');
SET snowflake_ids.cache = 20;
INSERT INTO ids (id) SELECT snowflake_nextval('third of 16') FROM generate_series(1, 1000);
INSERT INTO ids (id) SELECT snowflake_nextvals(30, 'third of 16') FROM generate_series(1, 30);
RESET snowflake_ids.cache;
SELECT count(*), count(DISTINCT id), bool_and(satisfies_hash_partition('hashed'::regclass, 16, 3, id)) AS fit, bool_and(grows) AS grow
FROM (SELECT id, id > lag(id, 1, 0::bigint) OVER (ORDER BY at) AS grows FROM ids) s;
SELECT snowflake_nextval('third of 16') = snowflake_lastval() AS last;

-- As many rows as are asked for, and no more.
SELECT count(*) FROM snowflake_nextvals(1, 'third of 16');
SELECT count(*) FROM snowflake_nextvals(20000, 'third of 16');

-- Every one of a layout with little room.
SELECT snowflake_ids.generator_create('narrow', 'javascript', modulus => 512, remainder => 511);
SELECT count(DISTINCT id), bool_and(satisfies_hash_partition('hashed'::regclass, 512, 511, id)) AS fit, max(id) < 2 ^ 53 AS exact
FROM (SELECT snowflake_nextval('narrow') AS id FROM generate_series(1, 500)) s;

-- A generator that is no shard's gives every id, and a shard may change: what a session holds is looked at again.
SELECT count(DISTINCT satisfies_hash_partition('hashed'::regclass, 16, 3, id)) AS kinds
FROM (SELECT snowflake_nextval('all') AS id FROM generate_series(1, 1000)) s;
SET snowflake_ids.cache = 1000;
SELECT snowflake_nextval('third of 16') > 0 AS ok;
SELECT snowflake_ids.generator_alter('third of 16', modulus => 16, remainder => 4);
SELECT bool_and(satisfies_hash_partition('hashed'::regclass, 16, 4, snowflake_nextval('third of 16'))) AS fit FROM generate_series(1, 100);
RESET snowflake_ids.cache;

-- Attached, with a row for each partition.
CREATE TABLE parted (id bigint, note text) PARTITION BY HASH (id);
CREATE TABLE parted_4 PARTITION OF parted FOR VALUES WITH (MODULUS 16, REMAINDER 4);
ALTER TABLE parted ALTER id SET DEFAULT snowflake_nextval('third of 16');
INSERT INTO parted (note) SELECT 'row ' || i FROM generate_series(1, 1000) i;
COPY parted (note) FROM stdin;
copied
copied too
\.
SELECT tableoid::regclass, count(*) FROM parted GROUP BY 1;

-- The setting is for those that name no shard.
SHOW snowflake_ids.shard;
SET snowflake_ids.shard = '3/16';
ALTER SYSTEM SET snowflake_ids.shard = '16/16';
ALTER SYSTEM SET snowflake_ids.shard = '3';
ALTER SYSTEM SET snowflake_ids.shard = '0/65537';
SELECT snowflake_ids.generator_create('wide', 'cosid_second', modulus => 65537, remainder => 0);

DROP TABLE parted, ids, hashed;
DELETE FROM snowflake_ids.generator;
