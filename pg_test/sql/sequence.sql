-- Sequences that give ids of ours.
\pset null -
CREATE SEQUENCE unbound;
CREATE SEQUENCE numbers;
SELECT nextval('numbers'), nextval('numbers'), nextval('unbound');
PREPARE next_number AS SELECT nextval('numbers');
EXECUTE next_number;
SELECT snowflake_ids.bind_sequence('numbers', 'segment');
SELECT sequence, kind, tag, increment, owner, last_number FROM snowflake_ids.sequence_status;
-- Its numbers go on as the tag's ids; a plan that was made before is made anew.
EXECUTE next_number;
SELECT nextval('numbers'), currval('numbers'), lastval(), segment_nextval('public.numbers');
SELECT last_id >= currval('numbers') AND last_id < 1000000 AS can_be_copied FROM snowflake_ids.sequence_status;
SELECT nextval(s::regclass) FROM unnest(ARRAY['numbers', 'unbound']) AS s;
SELECT lastval();
CREATE FUNCTION take(sequence regclass) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval(sequence); END $$;
SELECT take('numbers'), take('unbound');
CREATE TABLE rows (id bigint DEFAULT nextval('numbers'), note text);
INSERT INTO rows (note) VALUES ('default'), ('default') RETURNING id;
-- What no plan reaches fails, and gives no old number.
COPY rows (note) FROM stdin;
copied
\.
-- setval raises the tag, and never lowers it.
SELECT setval('numbers', 100), currval('numbers');
SELECT nextval('numbers');
SELECT setval('numbers', 50);
SELECT nextval('numbers');
SELECT setval('numbers', 200, false);
SELECT nextval('numbers');
SELECT setval('numbers', 0);
-- Renamed, it stays bound. Rights are the sequence's.
ALTER SEQUENCE numbers RENAME TO renamed;
CREATE ROLE reader;
GRANT SELECT ON SEQUENCE renamed TO reader;
SET ROLE reader;
SELECT nextval('renamed');
SELECT setval('renamed', 1000);
SELECT currval('renamed');
RESET ROLE;
-- Rolled back, it is what it was.
BEGIN;
SELECT snowflake_ids.unbind_sequence('renamed');
SELECT nextval('renamed');
ROLLBACK;
SELECT nextval('renamed') > 200 AS goes_on;
-- Its own numbers again, above all that were given.
SELECT segment_nextval('public.numbers') AS given \gset
SELECT snowflake_ids.unbind_sequence('renamed');
SELECT nextval('renamed') > :given AS above;
SELECT snowflake_ids.segment_drop('public.numbers');
BEGIN;
SELECT snowflake_ids.bind_sequence('unbound', 'segment', 'unbound');
SELECT nextval('unbound');
ROLLBACK;
SELECT nextval('unbound');

-- An identity column, without rights on its sequence; snowflake ids.
CREATE TABLE people (id bigint GENERATED ALWAYS AS IDENTITY, note text);
INSERT INTO people (note) VALUES ('one');
SELECT snowflake_ids.bind_sequence('people_id_seq');
GRANT SELECT, INSERT ON people TO reader;
SET ROLE reader;
INSERT INTO people (note) VALUES ('two'), ('three');
INSERT INTO people (note) VALUES ('four') RETURNING id = lastval() AS last;
SELECT nextval('people_id_seq');
RESET ROLE;
SELECT count(*), bool_and(snowflake_timestamp(id) > now() - interval '1 minute') FROM people WHERE id > 1;
SELECT setval('people_id_seq', 5);
SELECT max(id) AS given FROM people \gset
SELECT snowflake_ids.unbind_sequence('people_id_seq');
INSERT INTO people (note) VALUES ('five') RETURNING id > :given AS above;

-- Blocks by INCREMENT BY, for which the ids around a number are free.
CREATE SEQUENCE pooled INCREMENT BY 50;
SELECT nextval('pooled'), nextval('pooled');
SELECT snowflake_ids.bind_sequence('pooled', 'segment', 'pooled');
SELECT nextval('pooled') AS first, segment_nextval('pooled') AS single, nextval('pooled') AS second;
SELECT snowflake_ids.unbind_sequence('pooled');
SELECT nextval('pooled');
SELECT snowflake_ids.segment_drop('pooled');
ALTER SEQUENCE pooled RESTART;
SELECT snowflake_ids.bind_sequence('pooled');
SELECT bool_and(snowflake_sequence(v - 50) + 99 = snowflake_sequence(v + 49)) FROM (SELECT nextval('pooled') AS v FROM generate_series(1, 100)) AS n;

-- What is refused.
CREATE VIEW seen AS SELECT 1;
SELECT snowflake_ids.bind_sequence('seen');
CREATE TEMP SEQUENCE fleeting;
SELECT snowflake_ids.bind_sequence('fleeting');
SELECT snowflake_ids.bind_sequence('pooled');
CREATE SEQUENCE narrow AS integer;
SELECT snowflake_ids.bind_sequence('narrow');
CREATE SEQUENCE small AS smallint;
SELECT snowflake_ids.bind_sequence('small');
DROP SEQUENCE small;
SELECT snowflake_ids.bind_sequence(0);
CREATE SEQUENCE cycles CYCLE;
SELECT snowflake_ids.bind_sequence('cycles');
CREATE SEQUENCE down INCREMENT BY -1;
SELECT snowflake_ids.bind_sequence('down');
CREATE SEQUENCE wide INCREMENT BY 10001;
SELECT snowflake_ids.bind_sequence('wide');
SELECT snowflake_ids.bind_sequence('unbound', 'serial');
SELECT snowflake_ids.bind_sequence('unbound', generator => 'none');
SELECT snowflake_ids.bind_sequence(NULL);
SELECT snowflake_ids.unbind_sequence('unbound');
SELECT snowflake_ids.segment_create('daily', reset => 'day');
SELECT snowflake_ids.bind_sequence('unbound', 'segment', 'daily');
SET ROLE reader;
SELECT snowflake_ids.bind_sequence('unbound');
RESET ROLE;
-- Its tag was dropped: calls say so.
SELECT snowflake_ids.bind_sequence('unbound', 'segment', 'dropped');
SELECT snowflake_ids.segment_drop('dropped');
SELECT nextval('unbound');
SELECT snowflake_ids.unbind_sequence('unbound');
SELECT snowflake_ids.segment_create('dropped', start => 500);
SELECT snowflake_ids.unbind_sequence('unbound');
SELECT nextval('unbound');
-- An error that the planner raises stays an error.
SELECT snowflake_ids.bind_sequence('unbound', 'segment', 'dropped');
SELECT 1 / 0;
SELECT snowflake_ids.unbind_sequence('unbound');
-- Dropped itself, it is bound no more: by its own name, with its column, its table, its schema or its owner.
SELECT count(*) FROM snowflake_ids.sequence_binding;
BEGIN;
DROP SEQUENCE pooled;
ROLLBACK;
SELECT count(*) FROM snowflake_ids.sequence_binding;
DROP SEQUENCE pooled;
SELECT count(*) FROM snowflake_ids.sequence_binding;
CREATE ROLE leaver;
CREATE SCHEMA left_over;
CREATE SEQUENCE left_over.in_schema;
CREATE SEQUENCE of_leaver;
ALTER SEQUENCE of_leaver OWNER TO leaver;
CREATE TABLE of_table (id bigserial, other bigserial, third bigserial);
SELECT snowflake_ids.bind_sequence(s::regclass) FROM unnest(ARRAY['left_over.in_schema', 'of_leaver', 'of_table_id_seq',
    'of_table_other_seq', 'of_table_third_seq']) AS s;
ALTER TABLE of_table DROP COLUMN other;
ALTER TABLE of_table ALTER COLUMN third DROP DEFAULT;
SELECT sequence FROM snowflake_ids.sequence_binding ORDER BY sequence::text;
BEGIN;
SAVEPOINT one;
DROP TABLE of_table;
ROLLBACK TO one;
COMMIT;
SELECT count(*) FROM snowflake_ids.sequence_binding;
DROP TABLE of_table;
DROP SCHEMA left_over CASCADE;
DROP OWNED BY leaver;
SELECT count(*) FROM snowflake_ids.sequence_binding;
DROP ROLE leaver;

-- ALTER SEQUENCE leaves it bound, and at its end: what no plan reaches fails still.
CREATE SEQUENCE altered;
CREATE SEQUENCE altered_too;
SELECT snowflake_ids.bind_sequence('altered', 'segment', 'altered');
SELECT snowflake_ids.bind_sequence('altered_too');
CREATE TABLE reached (id bigint DEFAULT nextval('altered'), other bigint DEFAULT nextval('altered_too'), note text);
SELECT nextval('altered') FROM generate_series(1, 10);
ALTER SEQUENCE altered RESTART;
SELECT last_value, is_called FROM altered;
SELECT nextval('altered'), nextval('altered');
ALTER SEQUENCE altered RESTART WITH 100;
COPY reached (other, note) FROM stdin;
1	copied
\.
SELECT nextval('altered');
ALTER SEQUENCE altered_too RESTART;
COPY reached (id, note) FROM stdin;
1	copied
\.
SELECT nextval('altered_too') > 1000 AS follows_the_clock;
BEGIN;
ALTER SEQUENCE altered RESTART;
SELECT nextval('altered');
ROLLBACK;
SELECT nextval('altered') > 100 AS goes_on;
-- A higher maximum is no end.
SELECT setval('altered', 300) \g /dev/null
CREATE SEQUENCE low MAXVALUE 5000;
SELECT snowflake_ids.bind_sequence('low', 'segment', 'low');
ALTER SEQUENCE low MAXVALUE 10000;
SELECT last_value, is_called FROM low;
SELECT nextval('low');
ALTER SEQUENCE altered CYCLE;
ALTER SEQUENCE altered INCREMENT BY -1;
ALTER SEQUENCE altered INCREMENT BY 20000;
SELECT snowflake_ids.bind_sequence('people_id_seq');
ALTER SEQUENCE people_id_seq INCREMENT BY 4096;
SELECT snowflake_ids.unbind_sequence('people_id_seq');
ALTER SEQUENCE altered AS integer;
SELECT nextval('altered');
-- Columns that cannot hold the ids, and defaults that calculate with them.
CREATE SEQUENCE used;
CREATE TABLE narrow_use (id integer DEFAULT nextval('used'));
CREATE TABLE text_use (code text DEFAULT lpad(nextval('used')::text, 6, '0'));
SELECT snowflake_ids.bind_sequence('used');
SELECT snowflake_ids.bind_sequence('used', 'segment', 'used');
SELECT max_value FROM snowflake_ids.segment WHERE tag = 'used';
SELECT snowflake_ids.unbind_sequence('used');
DROP TABLE narrow_use, text_use;
DROP SEQUENCE used;
-- A function that the planner would put into the statement, with either kind of body.
CREATE FUNCTION inlined() RETURNS bigint LANGUAGE sql AS $$ SELECT pg_catalog.NEXTVAL('altered') $$;
CREATE FUNCTION parsed() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT nextval('altered'); END;
CREATE FUNCTION moved(value bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT setval('altered', value) $$;
SELECT inlined(), parsed();
SELECT moved(2000);
SELECT inlined();
CREATE FUNCTION my_nextval() RETURNS bigint LANGUAGE sql AS $$ SELECT 1 $$;
CREATE FUNCTION other() RETURNS bigint LANGUAGE sql AS $$ SELECT my_nextval() $$;
EXPLAIN (VERBOSE, COSTS off) SELECT other(), inlined();
DROP FUNCTION inlined(), parsed(), moved(bigint), my_nextval(), other();
-- setval where no plan is made would move it: refused, as it cannot be seen for which sequence it is.
PREPARE given(bigint) AS SELECT $1;
EXECUTE given(setval('altered', 1));
EXECUTE given(nextval('altered'));
SELECT last_value, is_called FROM altered;

-- TRUNCATE ... RESTART IDENTITY, of an identity and of a serial, and by way of a foreign key.
CREATE TABLE parent (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, note text);
CREATE TABLE child (id bigserial, parent bigint REFERENCES parent, note text);
SELECT snowflake_ids.bind_sequence('parent_id_seq', 'segment', 'parent');
SELECT snowflake_ids.attach('child', 'id', 'segment', 'child');
INSERT INTO parent (note) VALUES ('one'), ('two') RETURNING id;
INSERT INTO child (note) VALUES ('one'), ('two') RETURNING id;
BEGIN;
TRUNCATE parent RESTART IDENTITY CASCADE;
INSERT INTO parent (note) VALUES ('one') RETURNING id;
ROLLBACK;
INSERT INTO parent (note) VALUES ('three') RETURNING id > 2 AS goes_on;
TRUNCATE parent RESTART IDENTITY CASCADE;
SELECT p.last_value, p.is_called, c.last_value, c.is_called FROM parent_id_seq AS p, child_id_seq AS c;
INSERT INTO parent (note) VALUES ('one'), ('two') RETURNING id;
INSERT INTO child (note) VALUES ('one'), ('two') RETURNING id;
TRUNCATE parent CONTINUE IDENTITY CASCADE;
INSERT INTO parent (note) VALUES ('three') RETURNING id;
COPY parent (note) FROM stdin;
copied
\.
ALTER TABLE parent ALTER COLUMN id RESTART WITH 50;
INSERT INTO parent (note) VALUES ('fifty') RETURNING id;
COPY parent (note) FROM stdin;
copied
\.
DROP TABLE parent, child, reached;
DROP SEQUENCE altered, altered_too, low;
SELECT count(*) FROM snowflake_ids.sequence_binding;

-- After an INSERT, currval and lastval know the id that the column's default gave: what PDO and Doctrine ask for.
CREATE TABLE adopter (id bigserial PRIMARY KEY, note text);
CREATE TABLE clocked (id bigserial PRIMARY KEY, note text);
CREATE TABLE counted (id integer GENERATED ALWAYS AS IDENTITY (START 70), note text);
SELECT snowflake_ids.attach('adopter', 'id', 'segment');
SELECT snowflake_ids.attach('clocked', 'id');
INSERT INTO adopter (note) VALUES ('one');
SELECT currval('adopter_id_seq'), currval(pg_get_serial_sequence('adopter', 'id')), lastval();
INSERT INTO clocked (note) VALUES ('one'), ('two');
SELECT currval('adopter_id_seq'), currval('clocked_id_seq') = lastval() AS last, lastval() = max(id) AS of_table FROM clocked;
INSERT INTO adopter VALUES (DEFAULT, 'two') RETURNING id = currval('adopter_id_seq') AS given;
INSERT INTO adopter VALUES (1000, 'own');
SELECT currval('adopter_id_seq');
WITH made AS (INSERT INTO adopter (note) SELECT 'of a query' RETURNING id) SELECT id = currval('adopter_id_seq') AS given FROM made;
INSERT INTO adopter (note) VALUES ('one') ON CONFLICT (id) DO UPDATE SET note = 'two' RETURNING id = lastval() AS given;
INSERT INTO counted (note) VALUES ('one');
SELECT lastval();
-- Those of another table are not its numbers.
SELECT snowflake_ids_internal.sequence_recorded('counted_id_seq', 5);
SELECT currval('counted_id_seq');
-- DISCARD and RESET forget them, as they do those of other sequences.
SELECT snowflake_nextval() = snowflake_lastval() AS known, segment_nextval('public.adopter') = segment_currval('public.adopter') AS of_tag;
CREATE SEQUENCE second_counter START 77;
DISCARD SEQUENCES;
SELECT currval('adopter_id_seq');
SELECT lastval();
SELECT snowflake_lastval();
SELECT segment_currval('public.adopter');
INSERT INTO adopter (note) VALUES ('three') RETURNING id = lastval() AS last;
SELECT nextval('second_counter');
INSERT INTO adopter (note) VALUES ('three');
RESET ALL;
SELECT lastval();
INSERT INTO adopter (note) VALUES ('four') RETURNING id = lastval() AS last;
DISCARD ALL;
SELECT currval('adopter_id_seq');
-- Django's sqlsequencereset, and a fixture of Rails: unchanged.
SELECT setval(pg_get_serial_sequence('"adopter"', 'id'), coalesce(max("id"), 1), max("id") IS NOT null) FROM "adopter";
INSERT INTO adopter (note) VALUES ('five') RETURNING id;
INSERT INTO adopter VALUES (2000, 'fixture');
SELECT setval('"public"."adopter_id_seq"', GREATEST((SELECT MAX("id") FROM "public"."adopter"), (SELECT min_value FROM pg_sequences
    WHERE sequencename = 'adopter_id_seq')), true);
INSERT INTO adopter (note) VALUES ('six') RETURNING id;
TRUNCATE adopter, clocked RESTART IDENTITY;
INSERT INTO adopter (note) VALUES ('one') RETURNING id;
-- A sequence that two tables take from.
CREATE TABLE second (id bigint DEFAULT nextval('adopter_id_seq'));
INSERT INTO second DEFAULT VALUES RETURNING id, currval('adopter_id_seq');
DROP TABLE second, adopter, clocked, counted;
DROP SEQUENCE second_counter;

-- A column of type integer takes a segment's ids, up to where integers end.
CREATE TABLE narrow_ids (id serial PRIMARY KEY, note text);
INSERT INTO narrow_ids (note) VALUES ('one'), ('two');
SELECT snowflake_ids.attach('narrow_ids', 'id');
SELECT snowflake_ids.attach('narrow_ids', 'id', 'segment', sequence => 'unknown');
SELECT snowflake_ids.attach('narrow_ids', 'id', 'segment');
SELECT max_value FROM snowflake_ids.segment WHERE tag = 'public.narrow_ids';
INSERT INTO narrow_ids (note) VALUES ('three') RETURNING id, currval('narrow_ids_id_seq') = id AS noted;
SELECT nextval('narrow_ids_id_seq');
COPY narrow_ids (note) FROM stdin;
copied
copied
\.
SELECT snowflake_ids.attach('narrow_ids', 'id', 'segment');
SELECT snowflake_ids.segment_create('wide_ids');
SELECT snowflake_ids.attach('narrow_ids', 'id', 'segment', 'wide_ids');
SELECT id FROM narrow_ids ORDER BY id;
SELECT snowflake_ids.detach('narrow_ids', 'id');
INSERT INTO narrow_ids (note) VALUES ('detached') RETURNING id < 10000 AS goes_on;
SELECT seqtypid::regtype, seqmax FROM pg_sequence WHERE seqrelid = 'narrow_ids_id_seq'::regclass;
SELECT snowflake_ids.attach('narrow_ids', 'id', 'segment');
SELECT snowflake_ids.detach('narrow_ids', 'id', 'identity');
INSERT INTO narrow_ids (note) VALUES ('identity') RETURNING id < 10000 AS goes_on;
SELECT snowflake_ids.segment_drop('public.narrow_ids');
INSERT INTO narrow_ids VALUES (2147483646, 'last but one');
SELECT snowflake_ids.attach('narrow_ids', 'id', 'segment');
INSERT INTO narrow_ids (note) VALUES ('last') RETURNING id;
INSERT INTO narrow_ids (note) VALUES ('none') RETURNING id;
-- What DROP EXTENSION leaves: a sequence at its end that nothing binds.
CREATE TABLE left_behind (id bigserial PRIMARY KEY);
INSERT INTO left_behind SELECT FROM generate_series(1, 7);
SELECT snowflake_ids.attach('left_behind', 'id');
DELETE FROM snowflake_ids.sequence_binding WHERE sequence = 'left_behind_id_seq'::regclass;
ALTER TABLE left_behind ALTER id SET DEFAULT nextval('left_behind_id_seq');
INSERT INTO left_behind DEFAULT VALUES;
SELECT snowflake_ids.attach('left_behind', 'id', 'segment');
INSERT INTO left_behind DEFAULT VALUES RETURNING id;
SELECT nextval('left_behind_id_seq');
SELECT snowflake_ids.detach('left_behind', 'id');
INSERT INTO left_behind DEFAULT VALUES RETURNING id;
-- A tag that is restricted is moved by those who may move it, whatever they may do with a sequence.
SELECT snowflake_ids.segment_create('restricted');
CREATE ROLE keeper;
SELECT snowflake_ids.segment_grant('restricted', 'keeper', 'UPDATE');
CREATE SEQUENCE guarded;
ALTER SEQUENCE guarded OWNER TO reader;
SELECT snowflake_ids.bind_sequence('guarded', 'segment', 'restricted');
GRANT ALL ON SEQUENCE guarded TO keeper;
SET ROLE reader;
SELECT setval('guarded', 700);
ALTER SEQUENCE guarded RESTART;
SELECT count(*) FROM snowflake_ids.sequence_status WHERE sequence = 'guarded'::regclass;
SET ROLE keeper;
SELECT setval('guarded', 700), nextval('guarded');
RESET ROLE;
DROP SEQUENCE guarded;
-- More ids in a row than the layout has in a tick.
CREATE SEQUENCE long_blocks INCREMENT BY 5000;
SELECT snowflake_ids.bind_sequence('long_blocks');
DROP SEQUENCE long_blocks;
-- RESTART begins where the sequence did, whatever there was when the column was attached.
CREATE TABLE begun (id bigserial PRIMARY KEY);
INSERT INTO begun SELECT FROM generate_series(1, 3);
SELECT snowflake_ids.attach('begun', 'id', 'segment');
INSERT INTO begun DEFAULT VALUES RETURNING id;
TRUNCATE begun RESTART IDENTITY;
INSERT INTO begun DEFAULT VALUES RETURNING id;
-- A tag that others take ids of, too, is not restarted with one of its sequences.
CREATE TABLE parts (id bigint, k int) PARTITION BY LIST (k);
CREATE TABLE part1 (id bigserial, k int);
CREATE TABLE part2 (id bigserial, k int);
ALTER TABLE parts ATTACH PARTITION part1 FOR VALUES IN (1);
ALTER TABLE parts ATTACH PARTITION part2 FOR VALUES IN (2);
SELECT snowflake_ids.attach('parts', 'id', 'segment');
INSERT INTO parts (k) VALUES (1), (2), (2) RETURNING id;
TRUNCATE part1 RESTART IDENTITY;
INSERT INTO parts (k) VALUES (1) RETURNING id;
-- Of several rows the last one counts.
CREATE TABLE several (id bigserial PRIMARY KEY, narrow serial, note text);
SELECT snowflake_ids.attach('several', 'id', 'segment');
SELECT snowflake_ids.attach('several', 'narrow', 'segment', 'narrow');
INSERT INTO several (id, narrow, note) VALUES (DEFAULT, DEFAULT, 'a'), (DEFAULT, DEFAULT, 'b'), (DEFAULT, DEFAULT, 'c');
SELECT id = currval('several_id_seq') AS is_last, narrow = currval('several_narrow_seq') AS is_last_too, narrow = lastval() AS is_lastval
FROM several ORDER BY id;
-- A number that is set stands for its block.
CREATE SEQUENCE blocks INCREMENT BY 50;
SELECT snowflake_ids.bind_sequence('blocks', 'segment', 'blocks');
SELECT setval('blocks', 1001);
SELECT segment_nextval('blocks');
-- Expressions may be as deep as ever.
DO $$ BEGIN EXECUTE 'SELECT ' || repeat('1 + ', 2500) || '1'; END $$;
-- A trigger of the user's may set another sequence.
SELECT snowflake_ids.segment_create('followed');
CREATE SEQUENCE followed;
SELECT snowflake_ids.bind_sequence('followed', 'segment', 'followed');
CREATE FUNCTION follow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM setval('public.followed', 5000); RETURN NULL; END $$;
CREATE TRIGGER follow AFTER UPDATE ON snowflake_ids.segment FOR EACH ROW WHEN (NEW.tag = 'blocks') EXECUTE FUNCTION follow();
SELECT setval('blocks', 3001), nextval('followed');
DROP TRIGGER follow ON snowflake_ids.segment;
DROP FUNCTION follow();
DROP SEQUENCE blocks, followed;
-- Others that take from the sequence that a column owns get ids, too, or cannot hold them.
CREATE TABLE owner_of (id bigserial PRIMARY KEY, other bigint DEFAULT nextval('owner_of_id_seq'));
CREATE TABLE heir () INHERITS (owner_of);
CREATE TABLE borrower (id bigint DEFAULT nextval('owner_of_id_seq'), note text DEFAULT 'n' || nextval('owner_of_id_seq'));
SELECT snowflake_ids.attach('owner_of', 'id', 'segment');
INSERT INTO borrower DEFAULT VALUES RETURNING id, note, segment_currval('public.owner_of_id_seq');
SELECT snowflake_ids.detach('owner_of', 'id');
SELECT snowflake_ids.unbind_sequence('owner_of_id_seq');
CREATE DOMAIN small_number AS integer;
CREATE TABLE narrow_borrower (id small_number DEFAULT nextval('owner_of_id_seq'));
SELECT snowflake_ids.attach('owner_of', 'id');
SELECT snowflake_ids.attach('owner_of', 'id', 'segment');
SELECT snowflake_ids.unbind_sequence('owner_of_id_seq');
SELECT snowflake_ids.attach('owner_of', 'id', sequence => 'keep');
SELECT count(*) FROM snowflake_ids.sequence_binding WHERE sequence = 'owner_of_id_seq'::regclass;
CREATE TABLE integers (id serial PRIMARY KEY);
CREATE TABLE integer_borrower (id integer DEFAULT nextval('integers_id_seq'));
SELECT snowflake_ids.attach('integers', 'id', 'segment', 'integers');
INSERT INTO integer_borrower DEFAULT VALUES RETURNING id;
-- A tag that others take ids of is not restarted, however their defaults are written, and whatever the session's settings.
CREATE TABLE restarted (id bigserial PRIMARY KEY, note text);
SELECT snowflake_ids.attach('restarted', 'id', 'segment', E'with \\ and ''');
INSERT INTO restarted (note) VALUES ('one'), ('two') RETURNING id;
-- Backslashes escape in plain literals before 19.
SELECT current_setting('server_version_num')::int < 190000 AS escapes \gset
\if :escapes
SET standard_conforming_strings = off;
SET escape_string_warning = off;
\endif
SET quote_all_identifiers = on;
CREATE TABLE others (id bigint DEFAULT segment_id(E'with \\ and '''));
TRUNCATE restarted RESTART IDENTITY;
DROP TABLE others;
CREATE TABLE others (id text DEFAULT 'N-' || segment_nextval_text(E'with \\ and '''));
TRUNCATE restarted RESTART IDENTITY;
DROP TABLE others;
CREATE DOMAIN others AS bigint DEFAULT segment_nextval(E'with \\ and ''');
TRUNCATE restarted RESTART IDENTITY;
DROP DOMAIN others;
INSERT INTO restarted (note) VALUES ('three') RETURNING id;
TRUNCATE restarted RESTART IDENTITY;
INSERT INTO restarted (note) VALUES ('one') RETURNING id;
\if :escapes
RESET standard_conforming_strings;
RESET escape_string_warning;
\endif
RESET quote_all_identifiers;
DROP TABLE restarted;
-- A bigint sequence of an integer column stays bigint.
CREATE TABLE mixed (id integer);
CREATE SEQUENCE mixed_id_seq OWNED BY mixed.id;
SELECT snowflake_ids.bind_sequence('mixed_id_seq', 'segment', 'mixed');
SELECT snowflake_ids.unbind_sequence('mixed_id_seq');
SELECT seqtypid::regtype, seqmax FROM pg_sequence WHERE seqrelid = 'mixed_id_seq'::regclass;
DROP TABLE mixed;
-- A plan from before the binding records the id of its column afterwards.
CREATE TABLE late (id bigserial);
SELECT snowflake_ids.attach('late', 'id', sequence => 'keep') \g /dev/null
PREPARE late_row AS INSERT INTO late DEFAULT VALUES;
EXECUTE late_row;
SELECT snowflake_ids.bind_sequence('late_id_seq') \g /dev/null
EXECUTE late_row;
SELECT currval('late_id_seq') = max(id) AS recorded FROM late;
DEALLOCATE late_row;
DROP TABLE late;
DROP TABLE integer_borrower, integers, narrow_borrower, borrower, heir, owner_of;
DROP DOMAIN small_number;
DROP TABLE rows, people, narrow_ids, left_behind, begun, parts, several;
DROP FUNCTION take(regclass);
DROP VIEW seen;
DROP SEQUENCE unbound, renamed, narrow, cycles, down, wide;
DROP ROLE reader, keeper;
SELECT count(*) FROM snowflake_ids.sequence_binding;
SELECT snowflake_ids.segment_drop(tag) FROM snowflake_ids.segment \g /dev/null
