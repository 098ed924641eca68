-- Monotonic series: numbers of many keys that share one maximum.
SELECT snowflake_ids.series_create('chat', 'monotonic', sections => 1, step => 10, max_step => 10, format => 'M{n:4}');
SELECT tag, max_id, step, max_step, start, max_value, description FROM snowflake_ids.segment WHERE tag LIKE '% section %';
SELECT tag FROM snowflake_ids.segment_restricted WHERE tag LIKE '% section %';
SELECT series_nextval('chat', 1), series_nextval('chat', 1), series_nextval('chat', 2), series_nextval_text('chat', 1);
SELECT series_currval('chat', 1), series_currval('chat', 2);
SELECT series_currval('chat', 3);

-- Set: all keys of the section go on above.
SELECT snowflake_ids.series_set('chat', 1, 500);
SELECT series_nextval('chat', 1), series_nextval('chat', 2);
SELECT snowflake_ids.series_set('chat', 1, 20);
SELECT series_nextval('chat', 1) > 501 AS above, series_nextval('chat', 2) > 501 AS above_too;
SELECT snowflake_ids.series_set('chat', 1, 600, true);

-- Changed, with its sections.
SELECT snowflake_ids.series_alter('chat', step => 5, max_step => 50, max_value => 10000);
SELECT tag, step, max_step, max_value FROM snowflake_ids.segment WHERE tag LIKE '% section %';
SELECT snowflake_ids.series_alter('chat', new_name => 'talk');
SELECT snowflake_ids.series_set('chat', 1, 9999);
SELECT series_nextval('chat', 1);
SELECT series_nextval('chat', 1);

-- Sections are nobody's tags.
CREATE ROLE series_reader;
SET ROLE series_reader;
SELECT segment_nextval('chat section 1 of 1');
SELECT snowflake_ids.segment_alter('chat section 1 of 1', step => 1);
RESET ROLE;
DROP ROLE series_reader;

-- Other texts and uuids; from 0.
SELECT snowflake_ids.series_create('feed', 'monotonic', 'uuid', start => 0, sections => 3);
SELECT series_nextval('feed', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid) FROM generate_series(1, 3);
SELECT snowflake_ids.series_create('post', 'monotonic', 'text', start => 100, sections => 2);
SELECT series_nextval('post', k) FROM unnest(ARRAY['', 'a', repeat('x', 512)]) AS k;

-- The transaction's own.
BEGIN;
SELECT snowflake_ids.series_create('own', 'monotonic', sections => 1);
SELECT series_nextval('own', 1), series_nextval('own', 1), series_nextval('own', 2);
ROLLBACK;
SELECT series_nextval('own', 1);

-- Names.
SELECT snowflake_ids.series_create(repeat('a', 107), 'monotonic', sections => 1024);
SELECT snowflake_ids.series_drop(repeat('a', 107));
SELECT snowflake_ids.series_create(repeat('a', 108), 'monotonic');
SELECT snowflake_ids.segment_create('x section 2 of 2');
SELECT snowflake_ids.series_create('x', 'monotonic', sections => 2);
SELECT snowflake_ids.segment_drop('x section 2 of 2');

-- Without its tags.
DELETE FROM snowflake_ids.segment WHERE tag = 'post section 1 of 2';
SELECT series_nextval('post', k) IS NOT NULL FROM unnest(ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) AS k;

-- They go with the series, however that goes.
SELECT snowflake_ids.series_drop('chat');
DELETE FROM snowflake_ids.series WHERE name IN ('feed', 'post');
SELECT tag FROM snowflake_ids.segment WHERE tag LIKE '% section %';
SELECT tag FROM snowflake_ids.segment_restricted WHERE tag LIKE '% section %';
