/* Series, and the counters of their keys. What is in here is all there is: a number is taken by changing the row of its key, in the
   caller's transaction. */
CREATE TABLE snowflake_ids.series (
    name        text COLLATE "C" PRIMARY KEY,
    kind        text    NOT NULL DEFAULT 'gapless',
    key_type    text    NOT NULL DEFAULT 'bigint',
    start       bigint  NOT NULL DEFAULT 1,
    max_value   bigint  NOT NULL DEFAULT 9223372036854775807,
    reset       text    CHECK (reset IN ('day', 'month', 'year')),
    time_zone   text    NOT NULL DEFAULT 'UTC' CHECK ((timestamptz 'epoch' AT TIME ZONE time_zone) IS NOT NULL),
    format      text,
    description text,
    restricted  boolean NOT NULL DEFAULT false,
    id          bigint  NOT NULL UNIQUE DEFAULT snowflake_ids_internal.random_number()
);
COMMENT ON TABLE snowflake_ids.series IS 'series: one sequence of numbers for each key';
COMMENT ON COLUMN snowflake_ids.series.restricted IS 'whether it takes privileges to be used; others are open to everybody';
COMMENT ON COLUMN snowflake_ids.series.id IS
    'what its counters and privileges are found by: a random number, so that another one after it was dropped and created again';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.series', '');

/* A table for each type of keys. A number rewrites a row: on its own page, without touching the index. */
CREATE TABLE snowflake_ids.series_bigint (
    series     bigint NOT NULL,
    key        bigint NOT NULL,
    last_value bigint NOT NULL,
    period     date,
    PRIMARY KEY (series, key)
) WITH (fillfactor = 50);
CREATE TABLE snowflake_ids.series_text (
    series     bigint NOT NULL,
    key        text COLLATE "C" NOT NULL CHECK (octet_length(key) <= 512),
    last_value bigint NOT NULL,
    period     date,
    PRIMARY KEY (series, key)
) WITH (fillfactor = 50);
CREATE TABLE snowflake_ids.series_uuid (
    series     bigint NOT NULL,
    key        uuid NOT NULL,
    last_value bigint NOT NULL,
    period     date,
    PRIMARY KEY (series, key)
) WITH (fillfactor = 50);
COMMENT ON TABLE snowflake_ids.series_bigint IS 'counters of series with keys of type bigint';
COMMENT ON TABLE snowflake_ids.series_text IS 'counters of series with keys of type text';
COMMENT ON TABLE snowflake_ids.series_uuid IS 'counters of series with keys of type uuid';
COMMENT ON COLUMN snowflake_ids.series_bigint.period IS 'the first day of the period that last_value counts in; null where the series has no reset';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.series_bigint', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.series_text', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.series_uuid', '');

/* Roles are dumped by their names; not those that were dropped: where they are restored, their numbers may be other roles'. */
CREATE TABLE snowflake_ids.series_privilege (
    series     bigint  NOT NULL,
    grantee    regrole NOT NULL,
    privileges text    NOT NULL,
    PRIMARY KEY (series, grantee)
);
COMMENT ON TABLE snowflake_ids.series_privilege IS 'rights of roles on restricted series';
COMMENT ON COLUMN snowflake_ids.series_privilege.grantee IS 'a role; - is PUBLIC';
COMMENT ON COLUMN snowflake_ids.series_privilege.privileges IS 'of OWNER, USAGE, SELECT and UPDATE, with commas between them';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.series_privilege',
    'WHERE grantee OPERATOR(pg_catalog.=) 0 OR EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid OPERATOR(pg_catalog.=) grantee)');

/* Whatever writes a row. */
CREATE FUNCTION snowflake_ids_internal.series_check_row() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.series_check(NEW.name, NEW.kind, NEW.key_type, NEW.start, NEW.max_value, NEW.reset, NEW.time_zone,
        NEW.format, NEW.description);
    RETURN NEW;
END
$$;
CREATE TRIGGER series_check BEFORE INSERT OR UPDATE ON snowflake_ids.series
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.series_check_row();
CREATE TRIGGER series_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_ids.series
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.series_changed();
CREATE TRIGGER series_privilege_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_ids.series_privilege
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.series_changed();

/* Privileges and counters go with their series, whichever role deletes it. */
CREATE FUNCTION snowflake_ids_internal.series_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM snowflake_ids.series_privilege AS p WHERE p.series = OLD.id;
    DELETE FROM snowflake_ids.series_bigint AS k WHERE k.series = OLD.id;
    DELETE FROM snowflake_ids.series_text AS k WHERE k.series = OLD.id;
    DELETE FROM snowflake_ids.series_uuid AS k WHERE k.series = OLD.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER series_follow AFTER DELETE ON snowflake_ids.series
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.series_follow();

/* Fails where other servers number, too. What is looked at stays so until the transaction ends. */
CREATE FUNCTION snowflake_ids_internal.series_check_home() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    registry text;
BEGIN
    LOCK TABLE snowflake_ids.registry_server IN ROW EXCLUSIVE MODE;
    SELECT r.server INTO registry FROM snowflake_ids.registry_server AS r ORDER BY r.position LIMIT 1;
    PERFORM snowflake_ids_internal.series_refuse(registry);
END
$$;

CREATE FUNCTION snowflake_ids_internal.series_taken(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE duplicate_object USING
        MESSAGE = format('series "%s" already exists', left(name, 128)),
        HINT = 'Change it with snowflake_ids.series_alter, or choose another name.';
END
$$;

CREATE FUNCTION snowflake_ids.series_create(
    name        text,
    kind        text    DEFAULT 'gapless',
    key_type    regtype DEFAULT 'bigint',
    start       bigint  DEFAULT 1,
    step        integer DEFAULT NULL,
    max_step    integer DEFAULT NULL,
    reset       text    DEFAULT NULL,
    time_zone   text    DEFAULT 'UTC',
    format      text    DEFAULT NULL,
    max_value   bigint  DEFAULT 9223372036854775807,
    description text    DEFAULT NULL,
    owner       name    DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    -- The type's name as it is written with this search_path.
    type_name text := coalesce(key_type::text, '');
BEGIN
    PERFORM snowflake_ids_internal.series_check(name, kind, type_name, start, max_value, reset, time_zone, format, description);
    PERFORM snowflake_ids_internal.series_check_steps(step, max_step);
    PERFORM snowflake_ids_internal.series_check_home();
    INSERT INTO snowflake_ids.series (name, kind, key_type, start, max_value, reset, time_zone, format, description)
    VALUES (name, kind, type_name, start, max_value, lower(reset), time_zone, format, description)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.series_taken(name);
    END IF;
    IF owner IS NOT NULL THEN
        PERFORM snowflake_ids_internal.series_set_owner(name, owner);
    END IF;
END
$$;
COMMENT ON FUNCTION snowflake_ids.series_create IS 'creates a series; with an owner, for that role alone until it grants more';

/* The functions from here on run with the rights of the tables' owner, after the caller's were checked: src/sql/series.rs. */
CREATE FUNCTION snowflake_ids_internal.series_alter(
    name        text,
    max_value   bigint,
    time_zone   text,
    format      text,
    description text,
    owner       name,
    new_name    text
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    IF new_name <> name THEN
        PERFORM snowflake_ids_internal.series_check_unused(name, 'rename');
    END IF;
    UPDATE snowflake_ids.series AS s
    SET max_value = coalesce(max_value, s.max_value),
        time_zone = coalesce(time_zone, s.time_zone),
        format = coalesce(format, s.format),
        description = coalesce(description, s.description),
        name = coalesce(new_name, s.name)
    WHERE s.name = name COLLATE "C";
    IF owner IS NOT NULL THEN
        PERFORM snowflake_ids_internal.series_set_owner(coalesce(new_name, name), owner);
    END IF;
EXCEPTION WHEN unique_violation THEN
    PERFORM snowflake_ids_internal.series_taken(new_name);
END
$$;

CREATE FUNCTION snowflake_ids_internal.series_drop(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM snowflake_ids_internal.series_check_unused(name, 'drop');
    DELETE FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C";
END
$$;

/* Fails where triggers fill columns from a series. */
CREATE FUNCTION snowflake_ids_internal.series_check_unused(name text, change text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    users text;
BEGIN
    SELECT string_agg(format('trigger %s on table %s depends on it', quote_ident(t.tgname), t.tgrelid::regclass), E'\n'
                      ORDER BY t.tgrelid::regclass::text COLLATE "C", t.tgname)
    INTO users
    FROM pg_trigger AS t
    WHERE t.tgfoid = to_regprocedure('snowflake_ids_internal.series_fill()') AND t.tgnargs = 3
        AND split_part(encode(t.tgargs, 'escape'), E'\\000', 1) = name;
    IF users IS NOT NULL THEN
        RAISE dependent_objects_still_exist USING
            MESSAGE = format('cannot %s series "%s" because other objects depend on it', left(change, 16), left(name, 128)),
            DETAIL = left(users, 4000),
            HINT = 'Detach the columns first: snowflake_ids.series_detach.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.series_set_owner(name text, owner name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    new_owner oid := snowflake_ids_internal.segment_grantee(owner);
    series_id bigint;
BEGIN
    IF new_owner = 0 THEN
        RAISE EXCEPTION 'series "%" cannot belong to public', left(name, 128) USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'Its owner is a role.',
            HINT = 'To have every role use it, grant USAGE to public with snowflake_ids.series_grant.';
    END IF;
    UPDATE snowflake_ids.series AS s SET restricted = true WHERE s.name = name COLLATE "C" RETURNING s.id INTO series_id;
    UPDATE snowflake_ids.series_privilege AS p
    SET privileges = snowflake_ids_internal.segment_privileges(p.privileges, '', 'OWNER') WHERE p.series = series_id;
    DELETE FROM snowflake_ids.series_privilege AS p WHERE p.series = series_id AND p.privileges = '';
    PERFORM snowflake_ids_internal.series_add_privileges(series_id, new_owner, 'OWNER');
END
$$;

CREATE FUNCTION snowflake_ids_internal.series_add_privileges(series bigint, grantee oid, privileges text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO snowflake_ids.series_privilege AS p (series, grantee, privileges) VALUES ($1, $2, $3)
    ON CONFLICT (series, grantee) DO UPDATE
    SET privileges = snowflake_ids_internal.segment_privileges(p.privileges, EXCLUDED.privileges, '')
$$;

/* The series' id, which takes privileges to be used from now on. What is left of roles that were dropped goes. */
CREATE FUNCTION snowflake_ids_internal.series_restrict(name text, OUT series_id bigint, OUT was_open boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    SELECT s.id, NOT s.restricted INTO series_id, was_open FROM snowflake_ids.series AS s
    WHERE s.name = name COLLATE "C" FOR NO KEY UPDATE;
    DELETE FROM snowflake_ids.series_privilege AS p
    WHERE p.series = series_id AND p.grantee <> 0 AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = p.grantee);
    UPDATE snowflake_ids.series AS s SET restricted = true WHERE s.id = series_id AND was_open;
END
$$;

CREATE FUNCTION snowflake_ids_internal.series_grant(name text, role name, privileges text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grantee oid := snowflake_ids_internal.segment_grantee(role);
    row record := snowflake_ids_internal.series_restrict(name);
BEGIN
    IF row.was_open AND grantee <> 0 THEN
        RAISE NOTICE 'series "%" is no longer open to every role', left(name, 128) USING
            DETAIL = 'From now on it takes privileges to use it.',
            HINT = 'To have every role use it again, grant USAGE to public with snowflake_ids.series_grant.';
    END IF;
    PERFORM snowflake_ids_internal.series_add_privileges(row.series_id, grantee, privileges);
END
$$;

CREATE FUNCTION snowflake_ids_internal.series_revoke(name text, role name, privileges text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    grantee_oid oid := snowflake_ids_internal.segment_grantee(role);
    series_id bigint := (SELECT s.id FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C" AND s.restricted);
BEGIN
    IF grantee_oid = 0 THEN
        series_id := (snowflake_ids_internal.series_restrict(name)).series_id;
    ELSIF series_id IS NULL THEN
        RAISE NOTICE 'series "%" is open to every role', left(name, 128) USING
            DETAIL = 'Nothing was revoked.',
            HINT = 'To restrict it, revoke ALL from public with snowflake_ids.series_revoke.';
    END IF;
    UPDATE snowflake_ids.series_privilege AS p
    SET privileges = snowflake_ids_internal.segment_privileges(p.privileges, '', privileges)
    WHERE p.series = series_id AND p.grantee = grantee_oid;
    DELETE FROM snowflake_ids.series_privilege AS p WHERE p.series = series_id AND p.privileges = '';
END
$$;

/* A row each that the reader may see. Keys are counted up to 10,000, so that a look stays cheap. */
CREATE VIEW snowflake_ids.series_status WITH (security_barrier) AS
SELECT s.name, s.kind, s.key_type, c.keys, c.keys < 10000 AS all_keys_counted, s.start, s.max_value, s.reset, s.time_zone,
       s.format, s.restricted, s.description
FROM snowflake_ids.series AS s CROSS JOIN LATERAL (
    SELECT CASE s.key_type
        WHEN 'bigint' THEN (SELECT count(*) FROM (SELECT FROM snowflake_ids.series_bigint AS k WHERE k.series = s.id LIMIT 10000) AS k)
        WHEN 'text' THEN (SELECT count(*) FROM (SELECT FROM snowflake_ids.series_text AS k WHERE k.series = s.id LIMIT 10000) AS k)
        ELSE (SELECT count(*) FROM (SELECT FROM snowflake_ids.series_uuid AS k WHERE k.series = s.id LIMIT 10000) AS k)
    END AS keys) AS c
WHERE snowflake_ids.has_series_privilege(s.name, 'SELECT');
COMMENT ON VIEW snowflake_ids.series_status IS 'the series that the reader may see';
COMMENT ON COLUMN snowflake_ids.series_status.keys IS 'keys with a counter, counted up to 10,000';

/* A row each for a key's counter. The key as it is stored is in the column of its type: what compares it there is found by the
   index. */
CREATE VIEW snowflake_ids.series_key WITH (security_barrier) AS
SELECT s.name AS series, k.key, k.last_value, k.period, k.key_bigint, k.key_text, k.key_uuid
FROM snowflake_ids.series AS s CROSS JOIN LATERAL (
    SELECT b.key::text AS key, b.last_value, b.period, b.key AS key_bigint, NULL::text COLLATE "C" AS key_text, NULL::uuid AS key_uuid
    FROM snowflake_ids.series_bigint AS b WHERE b.series = s.id
    UNION ALL
    SELECT t.key, t.last_value, t.period, NULL, t.key, NULL FROM snowflake_ids.series_text AS t WHERE t.series = s.id
    UNION ALL
    SELECT u.key::text, u.last_value, u.period, NULL, NULL, u.key FROM snowflake_ids.series_uuid AS u WHERE u.series = s.id
) AS k
WHERE snowflake_ids.has_series_privilege(s.name, 'SELECT');
COMMENT ON VIEW snowflake_ids.series_key IS 'the keys of the series that the reader may see, and the last number of each';
GRANT SELECT ON snowflake_ids.series_status, snowflake_ids.series_key TO PUBLIC;
