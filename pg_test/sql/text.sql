-- Ids as text and back.
SELECT format, snowflake_encode(0, format) AS zero, snowflake_encode(911804767842365440, format) AS id,
       snowflake_encode(9223372036854775807, format) AS largest, snowflake_encode(42, format, true) AS fixed
FROM unnest(ARRAY['base62', 'base58', 'base36', 'crockford32', 'hex']) format;

SELECT bool_and(snowflake_decode_text(snowflake_encode(id, format, fixed), format) = id) AS reads_back
FROM unnest(ARRAY['base62', 'base58', 'base36', 'crockford32', 'hex']) format, unnest(ARRAY[true, false]) fixed,
     unnest(ARRAY[0, 1, 31, 32, 57, 58, 61, 62, 911804767842365440, 9223372036854775807]) id;

-- Of fixed width, text sorts like the ids.
SELECT format, array_agg(id ORDER BY snowflake_encode(id, format, true) COLLATE "C") = array_agg(id ORDER BY id) AS sorts
FROM unnest(ARRAY['base62', 'base58', 'base36', 'crockford32', 'hex']) format,
     (SELECT (7 * i)::bigint ^ 5 FROM generate_series(1, 500) i) ids(wide), LATERAL (SELECT wide::bigint AS id) i
GROUP BY format ORDER BY format;

-- What people misread.
SELECT snowflake_decode_text('0s9v-1kbx-wowo6', 'crockford32') = snowflake_decode_text('0S9V1KBXW0W06', 'crockford32') AS same;

-- A prefix tells kinds of ids apart.
SELECT snowflake_encode(57, 'base58', prefix => 'cus'), snowflake_encode(57, 'hex', 'sk_live', true),
       snowflake_decode_text('cus_z', 'base58', prefix => 'cus'), snowflake_try_decode_text('usr_z', 'base58', 'cus') AS other,
       snowflake_try_decode_text('z', 'base58', 'cus') AS without, snowflake_encode(57, 'base58', prefix => NULL) AS none;
SELECT snowflake_decode_text('usr_z', 'base58', prefix => 'cus');
SELECT snowflake_decode_text('cus_0', 'base58', 'cus');
SELECT snowflake_encode(57, 'base58', 'Cus');
SELECT snowflake_encode(57, 'base58', 'a2345678901234567');
SELECT snowflake_encode(57, 'base58', repeat('a', 10000000));
SELECT snowflake_encode(57, 'morse', 'cus');

-- Errors.
SELECT snowflake_encode(1, 'base64');
SELECT snowflake_encode(-1, 'hex');
SELECT snowflake_decode_text('', 'hex');
SELECT snowflake_decode_text('12g4', 'hex');
SELECT snowflake_decode_text('0OIl', 'base58');
SELECT snowflake_decode_text('zzzzzzzzzzzz', 'base62');
SELECT snowflake_decode_text('8000000000000000', 'hex');
SELECT snowflake_decode_text('1', 'morse');
-- No error where the text may come from outside.
SELECT left(text, 16) AS text, snowflake_try_decode_text(text, 'hex')
FROM unnest(ARRAY['ff', '0000000000000000', '', '12g4', '8000000000000000', repeat('1', 1025), E'1\n', NULL]) AS text;
SELECT snowflake_try_decode_text('1', 'morse');

-- What is too long for any layout, format or id is refused by its length, and what is quoted is cut.
SELECT snowflake_encode(1, repeat('x', 1025));
SELECT snowflake_decode_text(repeat('1', 1025), 'hex');
SELECT snowflake_worker_id(1, repeat('x', 10000000));
SELECT snowflake_encode(1, repeat('x', 1024));
SELECT snowflake_encode(1, E'a\tb');
SELECT snowflake_decode_text(E'1\n', 'hex');
SELECT snowflake_worker_id(1, repeat('x', 1024));
SELECT snowflake_worker_id(1, '41/5/5/12 ' || repeat('x', 1000));
-- Compressed, it is not taken apart for that.
CREATE TABLE long (a text);
INSERT INTO long VALUES (repeat('x', 1000000));
SELECT pg_column_size(a) < 20000 AS compressed FROM long;
SELECT snowflake_worker_id(1, a) FROM long;
DROP TABLE long;

-- In a database of another encoding too.
CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\c latin
CREATE EXTENSION snowflake_ids;
SELECT snowflake_decode_text('ff', 'hex'), snowflake_worker_id(1, 'twitter');
DO $$ BEGIN PERFORM snowflake_decode_text(chr(233), 'hex'); EXCEPTION WHEN invalid_parameter_value THEN RAISE INFO 'refused'; END $$;
DO $$ BEGIN PERFORM snowflake_timestamp(1, chr(233)); EXCEPTION WHEN invalid_parameter_value THEN RAISE INFO 'refused'; END $$;
DO $$ BEGIN PERFORM snowflake_encode(1, chr(233)); EXCEPTION WHEN invalid_parameter_value THEN RAISE INFO 'refused'; END $$;
-- Messages have no letters that the database does not have.
DO $$ BEGIN PERFORM snowflake_encode(1, 'h' || chr(233)); EXCEPTION WHEN invalid_parameter_value THEN RAISE INFO '%', SQLERRM; END $$;
\c regression
DROP DATABASE latin;
