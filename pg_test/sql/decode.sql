-- Ids taken apart, put together and bounded. Everything here names its layout or composes its ids.
SET timezone = 'UTC';

-- With a known id of Twitter's, and one of Discord's.
SELECT * FROM snowflake_decode(1541815603606036480, 'twitter');
SELECT * FROM snowflake_decode(175928847299117063, 'discord');
SELECT snowflake_decode_json(1541815603606036480, 'twitter');
SELECT snowflake_timestamp(1541815603606036480, 'twitter'), snowflake_datacenter_id(1541815603606036480, 'twitter'),
       snowflake_worker_id(1541815603606036480, 'twitter'), snowflake_sequence(1541815603606036480, 'twitter');
SELECT (snowflake_decode(175928847299117063, 'discord')).sequence;

-- The server's own layout.
SELECT snowflake_compose('2026-11-20 12:00:00.123+00', 3, 5, 7) AS id \gset
SELECT :id AS id, * FROM snowflake_decode(:id);
SELECT snowflake_decode_json(:id);
SELECT snowflake_timestamp(:id), snowflake_datacenter_id(:id), snowflake_worker_id(:id), snowflake_sequence(:id);

-- Every preset: compose and decode are each other's reverse, and fields stand where the system puts them.
SELECT layout, c.id, d."timestamp" = '2026-06-01 12:00:00+00' AS at, d.datacenter_id, d.worker_id, d.rollback, d.sequence
FROM unnest(ARRAY['twitter', 'leaf', 'bwmarrin', 'shardingsphere', 'stateless', 'cosid', 'cosid_second', 'javascript',
                  'javascript_second', 'yitter', 'sonyflake', 'sonyflake_v1', 'discord', 'instagram', 'pgedge']) layout,
     LATERAL (SELECT snowflake_compose('2026-06-01 12:00:00+00', 0, 5, 7, layout)) c(id),
     LATERAL snowflake_decode(c.id, layout) d;
SELECT * FROM snowflake_decode(snowflake_compose('2026-11-20', 1, 2, 3, '41/5/3/2r/12', 2), '41/5/3/2r/12');

-- NULL in, NULL out.
SELECT snowflake_timestamp(NULL), snowflake_worker_id(NULL), snowflake_min_id(NULL), snowflake_encode(NULL, 'hex'),
       snowflake_timestamp(1, NULL);
SELECT * FROM snowflake_decode(NULL);

-- Bounds: inclusive on both sides, whole ticks, right up to the last one.
SELECT snowflake_min_id('2026-11-20 12:00:00.123456+00') = snowflake_compose('2026-11-20 12:00:00.123+00', 0, 0, 0) AS least,
       snowflake_max_id('2026-11-20 12:00:00.123456+00') = snowflake_compose('2026-11-20 12:00:00.123+00', 31, 31, 4095) AS largest;
SELECT snowflake_min_id('2020-01-01 00:00:00+00'), snowflake_max_id('2089-09-06 15:47:35.551999+00') = 9223372036854775807 AS last;
SELECT snowflake_max_id('2024-11-20 21:24:15.999999+00', 'baidu') = 9223372036854775807 AS baidus_last;
SELECT snowflake_min_id('2022-06-28 16:07:40.105+00', 'twitter') <= 1541815603606036480
   AND 1541815603606036480 <= snowflake_max_id('2022-06-28 16:07:40.105+00', 'twitter') AS within;

-- The time zone of the session changes what is shown and nothing else.
SET timezone = 'Asia/Shanghai';
SELECT snowflake_timestamp(1541815603606036480, 'twitter');
SELECT snowflake_decode_json(1541815603606036480, 'twitter') ->> 'timestamp';
SET timezone = 'UTC';

-- With a layout the functions can be indexed.
CREATE TABLE tweets (id bigint);
CREATE INDEX ON tweets (snowflake_timestamp(id, 'twitter'));
\set VERBOSITY sqlstate
CREATE INDEX ON tweets (snowflake_timestamp(id));
\set VERBOSITY verbose
DROP TABLE tweets;

-- Errors.
SELECT snowflake_timestamp(-1);
SELECT * FROM snowflake_decode(9223372036854775807, 'javascript');
SELECT snowflake_min_id('2019-12-31 23:59:59.999+00');
SELECT snowflake_max_id('2089-09-06 15:47:35.552+00');
SELECT snowflake_min_id('infinity');
SELECT snowflake_min_id('-infinity', 'twitter');
SELECT snowflake_min_id('294276-12-31 23:59:59+00');
SELECT snowflake_min_id('4713-01-01 00:00:00+00 BC');
SELECT snowflake_compose('2026-11-20', 32, 0, 0);
SELECT snowflake_compose('2026-11-20', 0, -1, 0);
SELECT snowflake_compose('2026-11-20', 0, 0, 4096);
SELECT snowflake_compose('2026-11-20', 0, 0, 0, '41/5/5/12', 1);
SELECT snowflake_compose('2010-01-01', 0, 0, 0, 'twitter');
SELECT snowflake_timestamp(1, 'snow');
SELECT snowflake_timestamp(1, '');
SELECT snowflake_timestamp(1, '41/5/5/13');
SELECT snowflake_timestamp(1, '41/5/5/12 unit=3ms');
SELECT snowflake_timestamp(1, '41/5/5/12 epoch=2020-02-30');
SELECT snowflake_timestamp(1, '50/0/1/12 unit=1s epoch=2020-01-01');
SELECT snowflake_timestamp(1, '50/0/1/12 unit=86400s');
