-- 200 tags, one without a number left, some with names that a browser could take for something other than text, and ids whose parts are
-- known.
CREATE EXTENSION snowflake_ids;

CREATE TABLE hostile (name text);
INSERT INTO hostile VALUES ('<script>document.title = "hit"</script>'), ('"><img src=x onerror="document.title=1">'),
    ('''><svg onload=alert(1)>'), ('&lt;b&gt; &amp;'), ('</script></style><h1>'), ('<!-- '), (repeat('<', 128)), (repeat(U&'\+01F600', 63)),
    (U&'\05E9\05DC\05D5\05DD 1'), (U&'user\202Egnp.exe'), (U&'a\2066b');
SELECT count(snowflake_ids.segment_create(name)) FROM hostile;
SELECT count(snowflake_ids.segment_create('shop ' || n, step => 100)) FROM generate_series(1, 189) AS n;
SELECT snowflake_ids.segment_create('vouchers', step => 100, max_value => 30000);
SELECT count(segment_nextval(name)) FROM hostile;
SELECT count(segment_nextval('vouchers')) FROM generate_series(1, 30000);
DO $$ BEGIN PERFORM segment_nextval('vouchers'); EXCEPTION WHEN sequence_generator_limit_exceeded THEN END $$;

SELECT snowflake_ids.generator_create('<b>web</b>', 'javascript');
SELECT snowflake_ids.generator_create('reports', 'sonyflake');
SELECT snowflake_nextval('<b>web</b>');

CREATE TABLE orders (id bigserial PRIMARY KEY);
SELECT snowflake_ids.bind_sequence('orders_id_seq');

-- The input, the layout's option, and the server's decoding, as texts: JSON's numbers are not exact everywhere.
CREATE TABLE known AS
    SELECT k.text, k.layout, (SELECT jsonb_object_agg(e.key, e.value) FROM jsonb_each_text(k.parts) AS e) AS parts
    FROM (
        SELECT id::text AS text, 'this server' AS layout, snowflake_decode_json(id) AS parts
        FROM snowflake_nextvals(3) AS id
        UNION ALL
        SELECT id::text, 'this server', jsonb_build_object('timestamp', to_char(snowflake_timestamp(id) AT TIME ZONE 'UTC',
            'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'datacenter_id', snowflake_datacenter_id(id), 'worker_id', snowflake_worker_id(id))
        FROM (SELECT snowflake_uuid() AS id FROM generate_series(1, 3)) AS u
        UNION ALL
        SELECT '1541815603606036480', layout, snowflake_decode_json(1541815603606036480, layout)
        FROM unnest(ARRAY['twitter', 'leaf', 'discord', 'pgedge', 'baidu', 'cosid_second']) AS layout
        UNION ALL
        SELECT '0', layout, snowflake_decode_json(0, layout)
        FROM unnest(ARRAY['twitter', 'sonyflake', 'javascript', 'instagram', 'yitter']) AS layout
    ) AS k;
