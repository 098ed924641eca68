-- Ids of tags: making, using, changing and dropping them, and what is refused.
SELECT snowflake_ids.segment_create('invoices', step => 10);
SELECT segment_nextval('invoices'), segment_nextval('invoices'), segment_currval('invoices');
SELECT * FROM segment_nextvals('invoices', 3);
SELECT segment_nextval('invoices') FROM generate_series(1, 3);
-- In the select list, ids are taken when they are asked for.
SELECT segment_nextvals('invoices', 100) LIMIT 2;
SELECT segment_nextval('invoices');

-- As a default: rows are numbered densely, over many segments.
CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT segment_nextval('invoices'), note text);
INSERT INTO invoices (note) SELECT 'n' FROM generate_series(1, 1000);
COPY invoices (note) FROM stdin;
a
b
\.
SELECT count(*), min(id), max(id) FROM invoices;

-- Where ids begin, and which they are.
SELECT snowflake_ids.segment_create('from 100', start => 100);
SELECT segment_nextval('from 100'), segment_nextval('from 100');
SELECT snowflake_ids.segment_create('from 0', start => 0);
SELECT segment_nextval('from 0'), segment_nextval('from 0');
SELECT snowflake_ids.segment_create('second of three', increment => 3, remainder => 2, step => 2);
SELECT array_agg(segment_nextval('second of three')) FROM generate_series(1, 5);
SELECT snowflake_ids.segment_create('few', max_value => 3);
SELECT array_agg(segment_nextval('few')) FROM generate_series(1, 3);
SELECT segment_nextval('few');
SELECT snowflake_ids.segment_alter('few', max_value => 4);
SELECT segment_nextval('few');
SELECT snowflake_ids.segment_create('last', start => 9223372036854775807);
SELECT segment_nextval('last');
SELECT segment_nextval('last');

-- A tag of this transaction serves this transaction, and goes on densely after it.
BEGIN;
SELECT snowflake_ids.segment_create('mine');
SELECT array_agg(segment_nextval('mine')) FROM generate_series(1, 5);
SAVEPOINT before;
SELECT snowflake_ids.segment_set('mine', 10);
SELECT segment_nextval('mine');
ROLLBACK TO before;
-- Never given back.
SELECT segment_nextval('mine');
COMMIT;
SELECT segment_nextval('mine'), segment_currval('mine');
BEGIN;
SELECT snowflake_ids.segment_create('nobody''s');
SELECT segment_nextval('nobody''s');
ROLLBACK;
SELECT segment_nextval('nobody''s');

-- Moved like a sequence.
SELECT snowflake_ids.segment_set('invoices', 5000);
SELECT segment_nextval('invoices');
-- Ids that are reserved and on their way to the buffers count as handed out: let them arrive.
DO $$ BEGIN
    FOR attempt IN 1..500 LOOP
        EXIT WHEN (SELECT next_first IS NOT NULL FROM snowflake_ids.segment_status WHERE tag = 'invoices');
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;
SELECT snowflake_ids.segment_set('invoices', 5000);
SELECT snowflake_ids.segment_set('invoices', 5001);
SELECT segment_nextval('invoices');
SELECT snowflake_ids.segment_set('invoices', 5000, force => true);
SELECT segment_nextval('invoices');

DO $$ BEGIN
    FOR attempt IN 1..500 LOOP
        EXIT WHEN (SELECT next_first IS NOT NULL FROM snowflake_ids.segment_status WHERE tag = 'invoices');
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;
BEGIN;
SELECT snowflake_ids.segment_set('invoices', 6000);
SELECT segment_nextval('invoices');
COMMIT;
SELECT segment_nextval('invoices');
SELECT snowflake_ids.segment_create('to the end');
SELECT segment_nextval('to the end');
SELECT snowflake_ids.segment_set('to the end', 1000);
SELECT segment_nextval('to the end');

-- Waits until the second buffer begins with an id.
CREATE PROCEDURE wait_for(tag text, next bigint) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..1000 LOOP
        EXIT WHEN (SELECT next_first FROM snowflake_ids.segment_status AS s WHERE s.tag = wait_for.tag) = next;
        PERFORM pg_sleep(0.01);
    END LOOP;
END
$$;

-- What a transaction took from the row itself stays taken, though the buffers end below it.
SELECT snowflake_ids.segment_create('beyond', step => 5, max_step => 5);
SELECT count(segment_nextval('beyond')) FROM generate_series(1, 5);
CALL wait_for('beyond', 6);
BEGIN;
SELECT snowflake_ids.segment_alter('beyond', description => 'beyond the buffers');
SELECT max(segment_nextval('beyond')) FROM generate_series(1, 8);
COMMIT;
SELECT snowflake_ids.segment_alter('beyond', max_value => 1000000);
SELECT snowflake_ids.segment_set('beyond', 12);
SELECT segment_nextval('beyond');

-- What lies between the buffers may be in use, too: by a transaction that was rolled back.
SELECT snowflake_ids.segment_create('between', step => 5, max_step => 5);
SELECT max(segment_nextval('between')) FROM generate_series(1, 6);
CALL wait_for('between', 11);
BEGIN;
SELECT snowflake_ids.segment_alter('between', max_value => 1000);
SELECT max(segment_nextval('between')) FROM generate_series(1, 4);
ROLLBACK;
SELECT max(segment_nextval('between')) FROM generate_series(1, 5);
CALL wait_for('between', 20);
SELECT snowflake_ids.segment_alter('between', max_value => 1000);
SELECT segment_nextval('between');

-- The table is the truth: rows may be written by hand.
INSERT INTO snowflake_ids.segment (tag, step) VALUES ('by hand', 7);
SELECT segment_nextval('by hand');
UPDATE snowflake_ids.segment SET tag = 'by another hand' WHERE tag = 'by hand';
SELECT segment_nextval('by hand');
SELECT segment_nextval('by another hand') > 1 AS goes_on;
DELETE FROM snowflake_ids.segment WHERE tag = 'by another hand';
SELECT segment_nextval('by another hand');
TRUNCATE snowflake_ids.segment;

-- Made on first use, where that is wanted.
SET snowflake_ids.segment_auto_create = on;
SELECT segment_nextval('on first use'), segment_nextval('on first use');
RESET snowflake_ids.segment_auto_create;
SELECT step, max_step FROM snowflake_ids.segment WHERE tag = 'on first use';

-- Dated numbers.
SELECT snowflake_ids.segment_create('orders', reset => 'day', time_zone => 'Europe/Berlin');
SELECT segment_nextval_text('orders') = to_char(now() AT TIME ZONE 'Europe/Berlin', 'YYYYMMDD') || '-000001' AS dated;
SELECT segment_nextval('orders');
SELECT snowflake_ids.segment_alter('orders', format => 'O{YY}{MM}{DD}/{n:3}');
SELECT segment_nextval_text('orders') = to_char(now() AT TIME ZONE 'Europe/Berlin', '"O"YYMMDD') || '/003' AS dated;
SELECT snowflake_ids.segment_create('future', reset => 'year');
UPDATE snowflake_ids.segment SET period = '2900-01-01', max_id = 77 WHERE tag = 'future';
SELECT snowflake_ids.segment_set('future', 2, force => true);
SELECT snowflake_ids.segment_drop('future');
SELECT snowflake_ids.segment_create('plain', format => 'no. {n:4}');
SELECT segment_nextval_text('plain'), segment_nextval_text('plain');

-- The state of all tags.
SELECT tag, current_first, current_last, current_next, next_first, used, step, ids_issued, refills, waits, trouble
FROM snowflake_ids.segment_status WHERE tag IN ('from 100', 'few', 'plain') ORDER BY tag;

-- What is refused.
SELECT segment_nextval('');
SELECT segment_nextval(NULL);
SELECT segment_nextval(repeat('x', 129));
SELECT segment_nextval(repeat('x', 10000000));
SELECT segment_nextval(E'an escape: \033');
SELECT segment_currval('nowhere');
SELECT segment_currval(NULL);
SELECT segment_nextvals('invoices', 0);
SELECT segment_nextvals('invoices', NULL);
SELECT segment_nextval_text('nowhere');
SELECT snowflake_ids.segment_create(NULL);
SELECT snowflake_ids.segment_create('invoices');
SELECT snowflake_ids.segment_create('x', step => 0);
SELECT snowflake_ids.segment_create('x', step => NULL);
SELECT snowflake_ids.segment_create('x', step => 11, max_step => 10);
SELECT snowflake_ids.segment_create('x', max_step => 1000000001);
SELECT snowflake_ids.segment_create('x', start => 9223372036854775808);
SELECT snowflake_ids.segment_create('x', start => -1);
SELECT snowflake_ids.segment_create('x', start => 1.5);
SELECT snowflake_ids.segment_create('x', increment => 0);
SELECT snowflake_ids.segment_create('x', increment => 3, remainder => 3);
SELECT snowflake_ids.segment_create('x', start => 10, max_value => 9);
SELECT snowflake_ids.segment_create('x', reset => 'week');
SELECT snowflake_ids.segment_create('x', reset => 'day', time_zone => 'Moon/Tranquility');
SELECT snowflake_ids.segment_create('x', format => '{n}{n}');
SELECT snowflake_ids.segment_create('x', reset => 'day', format => '{YYYY}-{n}');
SELECT snowflake_ids.segment_create('x', reset => 'day', time_zone => repeat('x', 10000000));
SELECT snowflake_ids.segment_create('x', reset => repeat('x', 10000000));
SELECT snowflake_ids.segment_create('x', reset => repeat('x', 128));
SELECT snowflake_ids.segment_create('x', format => repeat('x', 10000000));
SELECT snowflake_ids.segment_create('x', format => repeat('x', 100) || '{n}');
SELECT snowflake_ids.segment_create('x', format => E'{\t}');
SELECT snowflake_ids.segment_create('x', description => repeat('x', 4001));
SELECT snowflake_ids.segment_create('x', start => repeat('9', 100000)::numeric);
INSERT INTO snowflake_ids.segment (tag) VALUES (repeat('x', 10000000));
SELECT snowflake_ids.segment_alter('nowhere', step => 5);
SELECT snowflake_ids.segment_alter('invoices', step => 0);
SELECT snowflake_ids.segment_drop('nowhere');
SELECT snowflake_ids.segment_set('nowhere', 5);
SELECT snowflake_ids.segment_set('invoices', 9223372036854775808);

-- Any role may use tags, and only the owner may change them.
CREATE ROLE segment_user;
SET ROLE segment_user;
SELECT segment_nextval('from 100');
SELECT snowflake_ids.segment_create('x');
SELECT snowflake_ids.segment_drop('from 100');
SELECT snowflake_ids_internal.segment_close('from 100', 0);
SELECT count(*) FROM snowflake_ids.segment;
SELECT current_next FROM snowflake_ids.segment_status WHERE tag = 'from 100';
SET snowflake_ids.segment_auto_create = on;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION segment_nextval(text) FROM PUBLIC;
SET ROLE segment_user;
SELECT segment_nextval('from 100');
RESET ROLE;
GRANT EXECUTE ON FUNCTION segment_nextval(text) TO PUBLIC;
DROP ROLE segment_user;

-- Gone with the extension's row, at once.
SELECT snowflake_ids.segment_drop('from 100');
SELECT segment_nextval('from 100');
DROP TABLE invoices;
DELETE FROM snowflake_ids.segment;
DROP PROCEDURE wait_for;
