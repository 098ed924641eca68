-- COPY inserts rows in batches with ids as defaults, and nothing else takes a default of ours for one that it need call once.
SELECT snowflake_ids.segment_create('copied');

-- Tells with each row how many there are: a row of a batch comes before those of its batch are inserted.
CREATE FUNCTION tell_rows(relation regclass) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    rows bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM %s', relation) INTO rows;
    RAISE NOTICE '% rows in %', rows, relation;
    RETURN true;
END
$$;

-- As any other volatile default has it, one by one.
CREATE TABLE one_by_one (at timestamptz DEFAULT clock_timestamp(), note text CHECK (tell_rows('one_by_one')));
COPY one_by_one (note) FROM stdin;
a
b
c
\.

-- With ours, in a batch.
CREATE TABLE snowflakes (id bigint DEFAULT snowflake_nextval(), note text CHECK (tell_rows('snowflakes')));
COPY snowflakes (note) FROM stdin;
a
b
c
\.
SELECT count(*), count(DISTINCT id) FROM snowflakes;
CREATE TABLE segments (id bigint DEFAULT segment_nextval(tag => 'copied'), note text CHECK (tell_rows('segments')));
COPY segments (note) FROM stdin;
a
b
c
\.
SELECT id, note FROM segments ORDER BY id;
CREATE DOMAIN key AS bigint CHECK (VALUE > 0);
CREATE TABLE both_kinds (id key DEFAULT snowflake_nextval(), no text DEFAULT 'no. ' || segment_nextval('copied'),
    note text CHECK (tell_rows('both_kinds')));
SET snowflake_ids.cache = 1000;
COPY both_kinds (note) FROM stdin;
a
b
c
\.
RESET snowflake_ids.cache;
SELECT count(DISTINCT id), array_agg(no ORDER BY id) FROM both_kinds;

CREATE TABLE synonyms (id bigint DEFAULT snowflake_id(), no bigint DEFAULT segment_id('copied'), note text CHECK (tell_rows('synonyms')));
COPY synonyms (note) FROM stdin;
a
b
\.
SELECT count(DISTINCT id), array_agg(no ORDER BY id) FROM synonyms;

-- Partitions, and rows that are left out.
CREATE TABLE parts (id bigint DEFAULT snowflake_nextval(), no bigint DEFAULT segment_nextval('copied'), note text CHECK (tell_rows('parts')))
    PARTITION BY LIST (note);
CREATE TABLE part_a PARTITION OF parts FOR VALUES IN ('a');
CREATE TABLE part_b PARTITION OF parts DEFAULT;
COPY parts (note) FROM stdin;
a
a
b
b
\.
SELECT count(*), count(DISTINCT id), count(DISTINCT no) FROM parts;
COPY snowflakes (note) FROM stdin WHERE note <> 'b' AND snowflake_nextval() > 0 AND segment_nextval('copied') > 0;
d
b
e
\.
SELECT count(*), count(DISTINCT id) FROM snowflakes;

-- Which functions are called: the twins by COPY alone, not by what its triggers run.
CREATE TABLE checked (i integer CHECK (snowflake_nextval() > 0));
CREATE TABLE logged (id bigint, note text);
CREATE FUNCTION log_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO logged SELECT snowflake_nextval(), NEW.note;
    RETURN NULL;
END
$$;
CREATE TABLE with_trigger (id bigint DEFAULT snowflake_nextval(), note text);
CREATE TRIGGER logs AFTER INSERT ON with_trigger FOR EACH ROW EXECUTE FUNCTION log_row();
CREATE VIEW calls AS SELECT funcname, calls FROM pg_stat_xact_user_functions WHERE funcname ~ '_nextval|_id' ORDER BY 1;
\c -
BEGIN;
SET LOCAL track_functions = 'all';
COPY with_trigger (note) FROM stdin;
a
b
\.
SELECT * FROM calls;
-- Nor after it: the check of a table is planned in the same way as a default.
INSERT INTO checked VALUES (1);
SELECT * FROM calls;
COMMIT;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM logged UNION ALL SELECT id FROM with_trigger) ids;

-- What a domain checks is planned once for all that follows in the session: by COPY no more than by others.
CREATE DOMAIN checked_key AS bigint CHECK (VALUE > 0 AND snowflake_nextval() > 0);
CREATE TABLE with_domain (id checked_key, note text);
\c -
BEGIN;
SET LOCAL track_functions = 'all';
COPY with_domain (id) FROM stdin;
1
2
\.
SELECT * FROM calls;
INSERT INTO with_domain (id) VALUES (3);
SELECT * FROM calls;
ROLLBACK;
-- Nor after an error in it.
\c -
BEGIN;
SET LOCAL track_functions = 'all';
DO $$
BEGIN
    COPY with_domain (id) FROM PROGRAM 'printf "4\nx\n"';
EXCEPTION WHEN invalid_text_representation THEN
    INSERT INTO with_domain (id) VALUES (5);
END
$$;
SELECT * FROM calls;
ROLLBACK;
DROP TABLE with_domain;
DROP DOMAIN checked_key;

-- A column that is added gives each row an id of its own, wherever that is done.
CREATE FUNCTION add_columns(name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ids bigint;
    numbers bigint;
BEGIN
    EXECUTE format('CREATE TABLE %I AS SELECT i FROM generate_series(1, 5) i', name);
    EXECUTE format('ALTER TABLE %I ADD COLUMN id bigint DEFAULT snowflake_nextval(),
        ADD COLUMN no bigint DEFAULT segment_nextval(''copied'')', name);
    EXECUTE format('SELECT count(DISTINCT id), count(DISTINCT no) FROM %I', name) INTO ids, numbers;
    RAISE NOTICE '%: % ids, % numbers', name, ids, numbers;
    EXECUTE format('DROP TABLE %I', name);
END
$$;
SELECT add_columns('by a query');
DO $$ BEGIN PERFORM add_columns('by DO'); END $$;
CREATE FUNCTION add_by_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_columns('by a trigger');
    EXECUTE 'DO $do$ BEGIN PERFORM add_columns(''by DO in a trigger''); END $do$';
    CREATE TABLE fires_event_trigger ();
    DROP TABLE fires_event_trigger;
    RETURN NULL;
END
$$;
CREATE FUNCTION add_by_event_trigger() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_columns('by an event trigger');
END
$$;
CREATE TABLE adding (id bigint DEFAULT snowflake_nextval(), note text);
CREATE TRIGGER adds AFTER INSERT ON adding FOR EACH ROW EXECUTE FUNCTION add_by_trigger();
CREATE EVENT TRIGGER adds ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION add_by_event_trigger();
COPY adding (note) FROM stdin;
a
\.
DROP EVENT TRIGGER adds;

-- A COPY within a COPY's trigger, in batches as well, and what comes after it.
CREATE FUNCTION copy_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    COPY segments (note) FROM PROGRAM 'printf "inner 1\ninner 2\n"';
    PERFORM add_columns('after the inner COPY');
    INSERT INTO logged SELECT snowflake_nextval(), 'outer';
    RETURN NULL;
END
$$;
CREATE TABLE outer_copy (id bigint DEFAULT segment_nextval('copied'), note text CHECK (tell_rows('outer_copy')));
CREATE TRIGGER copies AFTER INSERT ON outer_copy FOR EACH ROW EXECUTE FUNCTION copy_more();
COPY outer_copy (note) FROM stdin;
a
b
\.
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM segments UNION ALL SELECT id FROM outer_copy) ids;

-- An error in the middle leaves nothing behind: no row, and no COPY that would go on.
COPY segments (note) FROM stdin;
f
g	h
\.
SELECT count(*) FROM segments WHERE note = 'f';
SELECT add_columns('after an error');
CREATE TABLE failing (id bigint DEFAULT snowflake_nextval(), note text);
\c -
BEGIN;
SET LOCAL track_functions = 'all';
DO $$
BEGIN
    BEGIN
        COPY failing (note) FROM PROGRAM 'printf "a\nb\tc\n"';
    EXCEPTION WHEN bad_copy_file_format THEN
        RAISE NOTICE 'failed';
    END;
    INSERT INTO checked VALUES (1);
    PERFORM add_columns('after a caught error');
END
$$;
SELECT * FROM calls;
COMMIT;
SELECT count(*) FROM failing;
-- Nor is anything missing in errors of utility statements.
ALTER TABLE checked ADD CONSTRAINT none CHECK (i > 1);
DO $$
DECLARE
    constraint_name text;
BEGIN
    ALTER TABLE checked ADD CONSTRAINT none CHECK (i > 1);
EXCEPTION WHEN check_violation THEN
    GET STACKED DIAGNOSTICS constraint_name = CONSTRAINT_NAME;
    RAISE NOTICE '%', constraint_name;
END
$$;
CREATE TABLE misspelt (id bigin);

-- The rights are those of the function that the default names.
CREATE ROLE copies_in;
GRANT ALL ON snowflakes, segments TO copies_in;
GRANT pg_execute_server_program TO copies_in;
REVOKE EXECUTE ON FUNCTION snowflake_nextval(), segment_nextval(text) FROM PUBLIC;
SET ROLE copies_in;
COPY snowflakes (note) FROM PROGRAM 'echo g';
COPY segments (note) FROM PROGRAM 'echo g';
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_nextval(), segment_nextval(text) TO copies_in;
REVOKE EXECUTE ON FUNCTION snowflake_nextval_in_copy(internal) FROM PUBLIC;
SET ROLE copies_in;
-- With the twin revoked, one by one.
COPY snowflakes (note) FROM PROGRAM 'printf "g\nh\n"';
COPY segments (note) FROM PROGRAM 'printf "g\nh\n"';
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_nextval(), segment_nextval(text), snowflake_nextval_in_copy(internal) TO PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_nextval(), segment_nextval(text) FROM copies_in;

-- SQL calls neither the twins nor what puts them in.
DO $$
DECLARE
    call text;
BEGIN
    FOREACH call IN ARRAY ARRAY[
        $c$SELECT snowflake_nextval_in_copy(NULL)$c$,
        $c$SELECT snowflake_nextval_in_copy(1)$c$,
        $c$SELECT segment_nextval_in_copy('copied', NULL)$c$,
        $c$SELECT segment_nextval_in_copy('copied', 'x')$c$,
        $c$SELECT snowflake_uuid_in_copy(NULL)$c$,
        $c$SELECT snowflake_uuid_text_in_copy(NULL)$c$,
        $c$SELECT nextval_support(NULL)$c$,
        $c$SELECT snowflake_nextval_in_copy(NULL::internal)$c$,
        $c$COPY snowflakes (note) FROM PROGRAM 'echo i' WHERE snowflake_nextval_in_copy(NULL) > 0$c$] LOOP
        BEGIN
            EXECUTE call;
            RAISE NOTICE 'answered: %', call;
        EXCEPTION WHEN undefined_function OR feature_not_supported OR cannot_coerce THEN
            RAISE NOTICE 'refused: %', call;
        END;
    END LOOP;
END $$;

DROP TABLE one_by_one, snowflakes, segments, both_kinds, synonyms, parts, logged, with_trigger, adding, outer_copy, checked, failing;
DROP VIEW calls;
DROP DOMAIN key;
DROP FUNCTION tell_rows(regclass), log_row(), add_columns(text), add_by_trigger(), add_by_event_trigger(), copy_more();
DROP ROLE copies_in;
SELECT snowflake_ids.segment_drop('copied');
-- A trigger sees the id of its row, as with a sequence of stock.
CREATE TABLE o (id bigserial, a int GENERATED BY DEFAULT AS IDENTITY, c int, code text);
CREATE FUNCTION o_code() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.code := 'O-' || currval('o_id_seq') || '-' || lastval() || CASE WHEN NEW.c = 2 THEN ' ' || nextval('o_id_seq') ELSE '' END;
    RETURN NEW;
END
$$;
CREATE TRIGGER o_code BEFORE INSERT ON o FOR EACH ROW EXECUTE FUNCTION o_code();
INSERT INTO o (c) VALUES (0);
SELECT snowflake_ids.attach('o', 'id', 'segment');
SELECT snowflake_ids.attach('o', 'a', 'segment', tag => 'o_a');
\c
COPY o (c) FROM STDIN;
1
2
3
\.
SELECT * FROM o;
SELECT currval('o_id_seq'), lastval() = currval('o_a_seq') AS last_is_of_last_column;
COPY o (a, c) FROM STDIN;
7	4
\.
SELECT currval('o_id_seq'), lastval();
DISCARD SEQUENCES;
SELECT currval('o_id_seq');
SELECT snowflake_ids.detach('o', 'id');
SELECT snowflake_ids.attach('o', 'id');
COPY o (c) FROM STDIN;
5
\.
SELECT code = format('O-%s-%s', id, currval('o_a_seq')) AS is_current, currval('o_id_seq') = id AS is_last FROM o WHERE c = 5;
-- A bound sequence gives no ids in COPY. The error names a way, and the way works.
CREATE SEQUENCE numbers;
SELECT snowflake_ids.bind_sequence('numbers', 'segment');
CREATE TABLE shares (id bigint DEFAULT nextval('numbers'), note text, code text DEFAULT 'N' || nextval('numbers'));
CREATE TABLE identities (id bigint GENERATED ALWAYS AS IDENTITY, note text);
SELECT snowflake_ids.bind_sequence('identities_id_seq');
COPY shares (note, code) FROM STDIN;
\.
COPY shares (id, note) FROM STDIN;
\.
COPY identities (note) FROM STDIN;
\.
CREATE ROLE reader;
GRANT SELECT ON shares TO reader;
SET ROLE reader;
COPY shares (note, code) FROM STDIN;
\.
RESET ROLE;
ALTER TABLE shares ALTER COLUMN id SET DEFAULT segment_nextval('public.numbers'::text);
COPY shares (note, code) FROM STDIN;
one	two
\.
SELECT snowflake_ids.attach('identities', 'id');
COPY identities (note) FROM STDIN;
one
\.
SELECT shares.id, identities.id = currval('identities_id_seq') AS is_current FROM shares, identities;
COPY nowhere (id) FROM STDIN;
\.
DROP TABLE o, identities;
DROP TABLE shares;
DROP SEQUENCE numbers;
DROP FUNCTION o_code;
DROP OWNED BY reader;
DROP ROLE reader;
SELECT snowflake_ids.segment_drop(tag) FROM snowflake_ids.segment WHERE tag IN ('o_a', 'public.o', 'public.numbers') \g /dev/null
