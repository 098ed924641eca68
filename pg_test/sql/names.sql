-- Names that are hard to write into SQL, and defaults that look like ours.
SET client_min_messages = warning;

-- A schema, a table, a column and a tag of each name go through all that attach and detach do.
CREATE FUNCTION adopt(name name) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    tab text := format('%1$I.%1$I', name);
    ids bigint[];
    tag text := coalesce(nullif(name, ''), 'x') || '''\"%' || E'\n';
BEGIN
    EXECUTE format('CREATE SCHEMA %I', name);
    EXECUTE format('CREATE TABLE %s (%I bigserial PRIMARY KEY, note text)', tab, name);
    EXECUTE format('INSERT INTO %s (note) VALUES (1), (2)', tab);
    PERFORM snowflake_ids.attach(tab::regclass, name, 'segment');
    EXECUTE format('INSERT INTO %s (note) VALUES (3)', tab);
    PERFORM snowflake_ids.attach(tab::regclass, name, 'segment', tag);
    EXECUTE format('INSERT INTO %s (note) VALUES (4)', tab);
    -- The tag is found again in the default: its ids count.
    PERFORM segment_nextval(tag);
    PERFORM snowflake_ids.detach(tab::regclass, name);
    EXECUTE format('INSERT INTO %s (note) VALUES (6)', tab);
    PERFORM snowflake_ids.attach(tab::regclass, name, 'segment', sequence => 'keep');
    EXECUTE format('INSERT INTO %s (note) VALUES (7)', tab);
    PERFORM snowflake_ids.detach(tab::regclass, name, 'identity');
    EXECUTE format('INSERT INTO %s (note) VALUES (8)', tab);
    PERFORM snowflake_ids.attach(tab::regclass, name, 'segment', sequence => 'keep');
    EXECUTE format('INSERT INTO %s (note) VALUES (9)', tab);
    PERFORM snowflake_ids.detach(tab::regclass, name);
    EXECUTE format('INSERT INTO %s (note) VALUES (10)', tab);
    PERFORM snowflake_ids.detach(tab::regclass, name, 'none') FROM snowflake_ids.attach(tab::regclass, name);
    EXECUTE format('SELECT array_agg(%1$I ORDER BY %1$I) FROM %2$s WHERE %1$I::text <> note', name, tab) INTO ids;
    IF ids IS NOT NULL THEN
        RAISE EXCEPTION 'ids of % are not what they should be: %', tab, ids;
    END IF;
    EXECUTE format('DROP SCHEMA %I CASCADE', name);
    DELETE FROM snowflake_ids.segment;
END
$$;
CREATE TABLE hard (name name);
INSERT INTO hard VALUES ('plain'), ('Upper'), ('it''s'), ('double"quote'), ('"'), ('""'), (E'new\nline'), ('%s'), ('%I%L%%'),
    ('$1'), ('$$'), (E'back\\slash'), (E'\\'''), ('a.b'), (' '), ('select'), ('x; DROP TABLE hard --'), ('/*'),
    (repeat('x', 63)), (repeat('"', 63)), (repeat(U&'\00e4', 31)), ('x' || repeat(U&'\00e4', 31));
SELECT adopt(name) FROM hard \g /dev/null
-- Backslashes escape in plain literals before 19.
SELECT current_setting('server_version_num')::int < 190000 AS escapes \gset
\if :escapes
SET standard_conforming_strings = off;
SET escape_string_warning = off;
\endif
SELECT adopt(name) FROM hard WHERE name IN (E'it\'s', '"', E'back\\slash', E'\\\'') \g /dev/null
\if :escapes
RESET standard_conforming_strings;
RESET escape_string_warning;
\endif
SELECT count(*) FROM hard;

-- Temporary tables of a catalog's name, or of one of ours, change nothing.
CREATE TEMP TABLE pg_class (oid oid, relname name, relkind "char", relowner oid, relnamespace oid);
CREATE TEMP TABLE segment (tag text, max_id bigint);
CREATE TEMP TABLE pg_inherits (inhparent oid, inhrelid oid);
CREATE FUNCTION pg_temp.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS 'SELECT NULL::text';
CREATE FUNCTION pg_temp.max(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT NULL::bigint';
SELECT adopt('shadowed');
DROP TABLE pg_temp.pg_class, pg_temp.segment, pg_temp.pg_inherits;

-- A sequence of another schema and another owner, of which the table's owner may do no more than take numbers.
CREATE ROLE keeper;
CREATE ROLE user_of_it;
CREATE SCHEMA other AUTHORIZATION keeper;
CREATE SEQUENCE other.numbers START 100;
ALTER SEQUENCE other.numbers OWNER TO keeper;
GRANT USAGE ON SCHEMA other TO user_of_it;
GRANT USAGE ON SEQUENCE other.numbers TO user_of_it;
CREATE TABLE foreign_numbers (id bigint DEFAULT nextval('other.numbers'), note text);
ALTER TABLE foreign_numbers OWNER TO user_of_it;
SELECT nextval('other.numbers');
SELECT snowflake_ids.attach('foreign_numbers', 'id', 'segment');
ALTER TABLE foreign_numbers ALTER COLUMN id DROP DEFAULT;
SELECT snowflake_ids.attach('foreign_numbers', 'id', 'segment');
INSERT INTO foreign_numbers DEFAULT VALUES RETURNING id;
SELECT nextval('other.numbers');

-- An owner that may not create in the table's schema gets its sequence nevertheless, as with an identity.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
SELECT snowflake_ids.detach('foreign_numbers', 'id');
INSERT INTO foreign_numbers DEFAULT VALUES RETURNING id;
SELECT sequenceowner FROM pg_sequences WHERE sequencename = 'foreign_numbers_id_seq';

-- Row security that is forced upon the owner hides nothing from a role that may see past it.
ALTER TABLE foreign_numbers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT snowflake_ids.attach('foreign_numbers', 'id', 'segment', 'forced');
SET ROLE user_of_it;
CREATE POLICY all_of_them ON foreign_numbers USING (true);
INSERT INTO foreign_numbers DEFAULT VALUES RETURNING id;
RESET ROLE;

-- Defaults that look like ours are not: not of another schema, of other arguments, or with something added.
RESET client_min_messages;
CREATE SCHEMA mimic;
CREATE FUNCTION mimic.snowflake_nextval() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION mimic.segment_nextval(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION mimic."segment_nextval('"(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION public.segment_nextval(integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION public.segment_nextval(varchar) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE TABLE mimicked (
    a bigint DEFAULT mimic.snowflake_nextval(),
    b bigint DEFAULT mimic.segment_nextval('t'),
    c bigint DEFAULT public.segment_nextval(1),
    d bigint DEFAULT public.segment_nextval('t'::varchar),
    e bigint DEFAULT mimic."segment_nextval('"('t'),
    f bigint DEFAULT segment_nextval('t'::text) + segment_nextval('t'::text),
    g bigint DEFAULT snowflake_nextval() + 1,
    h bigint DEFAULT segment_nextval('t'::text)
);
CREATE FUNCTION refused(attribute name) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM snowflake_ids.detach('mimicked', attribute, 'none');
    RETURN 'detached';
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    RETURN 'not attached';
END
$$;
SELECT attname, refused(attname) FROM pg_attribute WHERE attrelid = 'mimicked'::regclass AND attnum > 0 ORDER BY attnum;
-- Ours is found among functions of its name.
SELECT snowflake_ids.attach('mimicked', 'h', 'segment', 'h');
SELECT DISTINCT p.oid = d.refobjid AS ours
FROM pg_attrdef f JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_proc'::regclass,
    pg_proc p JOIN pg_depend e ON e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'
WHERE f.adrelid = 'mimicked'::regclass AND f.adnum = 8 AND p.proname = 'segment_nextval';

-- Two tables whose names are the same when they are put together have tags of their own.
CREATE SCHEMA a;
CREATE SCHEMA "a.b";
CREATE TABLE a."b.c" (id bigint);
CREATE TABLE "a.b".c (id bigint);
SELECT snowflake_ids.attach('a."b.c"', 'id', 'segment'), snowflake_ids.attach('"a.b".c', 'id', 'segment');
SELECT tag FROM snowflake_ids.segment WHERE tag LIKE '%b%c%' ORDER BY tag;
-- Nor with quotes in them.
CREATE SCHEMA "x.""";
CREATE SCHEMA """x";
CREATE TABLE "x."""."y""" (id bigint);
CREATE TABLE """x".""".y" (id bigint);
SELECT snowflake_ids.attach('"x."""."y"""', 'id', 'segment'), snowflake_ids.attach('"""x".""".y"', 'id', 'segment');
SELECT tag FROM snowflake_ids.segment WHERE tag ~ '[xy]"' ORDER BY tag;
DROP SCHEMA "x.""", """x" CASCADE;
-- A table that was renamed keeps its tag, and one of its former name would get the same.
CREATE TABLE former (id bigint);
SELECT snowflake_ids.attach('former', 'id', 'segment');
ALTER TABLE former RENAME TO latter;
CREATE TABLE former (id bigint);
SELECT snowflake_ids.attach('former', 'id', 'segment');
SELECT snowflake_ids.attach('former', 'id', 'segment', 'a tag of its own');
DROP TABLE former, latter;

-- Below a table there are 61 others, and a thousand million ways down to the lowest.
SET statement_timeout = '1min';
SET client_min_messages = warning;
DO $$
BEGIN
    CREATE TABLE a.left_0 (id bigint);
    CREATE TABLE a.right_0 () INHERITS (a.left_0);
    FOR level IN 1 .. 30 LOOP
        EXECUTE format('CREATE TABLE a.left_%1$s () INHERITS (a.left_%2$s, a.right_%2$s)', level, level - 1);
        EXECUTE format('CREATE TABLE a.right_%1$s () INHERITS (a.left_%2$s, a.right_%2$s)', level, level - 1);
    END LOOP;
END
$$;
INSERT INTO a.right_30 VALUES (7);
SELECT snowflake_ids.attach('a.left_0', 'id', 'segment', 'ways');
INSERT INTO a.right_30 DEFAULT VALUES RETURNING id;
SELECT snowflake_ids.detach('a.left_0', 'id');
INSERT INTO a.left_30 DEFAULT VALUES RETURNING id;
RESET statement_timeout;

DROP TABLE mimicked, foreign_numbers, hard;
DROP SCHEMA mimic, other, a, "a.b" CASCADE;
DROP FUNCTION public.segment_nextval(integer), public.segment_nextval(varchar), refused, adopt;
DROP ROLE keeper, user_of_it;
SELECT snowflake_ids.segment_drop(tag) FROM snowflake_ids.segment \g /dev/null
