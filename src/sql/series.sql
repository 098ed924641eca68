/* Series, and the counters of their keys. A gapless series takes a number by updating the key's row in the caller's
   transaction. */
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
    id          bigint  NOT NULL UNIQUE DEFAULT snowflake_ids_internal.random_number(),
    step        integer,
    max_step    integer,
    sections    integer,
    scope       text    NOT NULL DEFAULT 'global'
);
COMMENT ON TABLE snowflake_ids.series IS 'series: one sequence of numbers for each key';
COMMENT ON COLUMN snowflake_ids.series.restricted IS 'true if only roles with privileges may use it; others are open to everybody';
COMMENT ON COLUMN snowflake_ids.series.id IS
    'the key of its counters and privileges: a random number, which differs after the series is dropped and created again';
COMMENT ON COLUMN snowflake_ids.series.step IS 'the size of the first reservation, in numbers; null if the kind reserves none';
COMMENT ON COLUMN snowflake_ids.series.max_step IS 'the size of the largest reservation, in numbers; null if the kind reserves none';
COMMENT ON COLUMN snowflake_ids.series.scope IS
    'the servers that share the numbers of a key: global for all; node if each key is on one server; shard if a key is counted beside its rows';
COMMENT ON COLUMN snowflake_ids.series.sections IS 'the number of sections that the keys are divided into; null if the kind has none';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.series', '');

/* One table of counters for each type of keys. Taking a number is a HOT update: the new row version is on the same page, and
   the index does not change. */
CREATE TABLE snowflake_ids.series_bigint (
    series     bigint NOT NULL,
    key        bigint NOT NULL,
    last_value bigint NOT NULL,
    period     date,
    version    bigint,
    PRIMARY KEY (series, key)
) WITH (fillfactor = 50);
CREATE TABLE snowflake_ids.series_text (
    series     bigint NOT NULL,
    key        text COLLATE "C" NOT NULL CHECK (octet_length(key) <= 512),
    last_value bigint NOT NULL,
    period     date,
    version    bigint,
    PRIMARY KEY (series, key)
) WITH (fillfactor = 50);
CREATE TABLE snowflake_ids.series_uuid (
    series     bigint NOT NULL,
    key        uuid NOT NULL,
    last_value bigint NOT NULL,
    period     date,
    version    bigint,
    PRIMARY KEY (series, key)
) WITH (fillfactor = 50);
COMMENT ON TABLE snowflake_ids.series_bigint IS 'counters of series with keys of type bigint';
COMMENT ON TABLE snowflake_ids.series_text IS 'counters of series with keys of type text';
COMMENT ON TABLE snowflake_ids.series_uuid IS 'counters of series with keys of type uuid';
COMMENT ON COLUMN snowflake_ids.series_bigint.period IS 'the first day of the period of last_value; null if the series has no reset';
COMMENT ON COLUMN snowflake_ids.series_bigint.version IS
    'the value by which a node recognises its last reservation, if several nodes count the key; null if no node made that reservation';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.series_bigint', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.series_text', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.series_uuid', '');

/* Privileges on series. Dumps contain the roles' names. Dumps leave out dropped roles, because their oids may belong to other
   roles after a restore. */
CREATE TABLE snowflake_ids.series_privilege (
    series     bigint  NOT NULL,
    grantee    regrole NOT NULL,
    privileges text    NOT NULL,
    PRIMARY KEY (series, grantee)
);
COMMENT ON TABLE snowflake_ids.series_privilege IS 'rights of roles on restricted series';
COMMENT ON COLUMN snowflake_ids.series_privilege.grantee IS 'a role; - means PUBLIC';
COMMENT ON COLUMN snowflake_ids.series_privilege.privileges IS 'one or more of OWNER, USAGE, SELECT and UPDATE, separated by commas';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.series_privilege',
    'WHERE grantee OPERATOR(pg_catalog.=) 0 OR EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid OPERATOR(pg_catalog.=) grantee)');

CREATE FUNCTION snowflake_ids_internal.series_check_row() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Numbers of the former kind or of former sections may still be in memory.
    IF TG_OP = 'UPDATE' AND (NEW.kind, NEW.sections) IS DISTINCT FROM (OLD.kind, OLD.sections) THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot change kind or sections of series "%s"', left(OLD.name, 128)),
            DETAIL = 'The series would give some of its numbers again.',
            HINT = 'Create another series. Call snowflake_ids.series_set on it for each key, with the last number of the key in this series, or a higher number.';
    END IF;
    -- Sections of a monotonic series are tags. By its name, the series could use and later drop other roles' tags.
    IF TG_OP = 'INSERT' AND NEW.kind = 'monotonic' AND NOT has_table_privilege('snowflake_ids.segment', 'INSERT') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied to insert monotonic series "%s"', left(NEW.name, 128)),
            DETAIL = 'The sections of the series are segment tags, and the current role may not insert into snowflake_ids.segment.',
            HINT = 'Create it with snowflake_ids.series_create.';
    END IF;
    PERFORM snowflake_ids_internal.series_check(NEW.name, NEW.kind, NEW.key_type, NEW.start, NEW.max_value, NEW.reset, NEW.time_zone,
        NEW.format, NEW.description, NEW.step, NEW.max_step, NEW.sections, NEW.scope);
    IF TG_OP = 'UPDATE' AND OLD.kind = 'monotonic' AND OLD.name <> NEW.name THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot rename series "%s"', left(OLD.name, 128)),
            DETAIL = 'The sections of a monotonic series are segment tags that are named after it.',
            HINT = 'Create another series, with a start above the numbers of this one.';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER series_check BEFORE INSERT OR UPDATE ON snowflake_ids.series
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.series_check_row();
CREATE TRIGGER series_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_ids.series
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.series_changed();
CREATE TRIGGER series_privilege_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_ids.series_privilege
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.series_changed();

/* Deletes the privileges and counters of a deleted series, whichever role deletes it. */
CREATE FUNCTION snowflake_ids_internal.series_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM snowflake_ids.series_privilege AS p WHERE p.series = OLD.id;
    DELETE FROM snowflake_ids.series_bigint AS k WHERE k.series = OLD.id;
    DELETE FROM snowflake_ids.series_text AS k WHERE k.series = OLD.id;
    DELETE FROM snowflake_ids.series_uuid AS k WHERE k.series = OLD.id;
    DELETE FROM snowflake_ids.segment AS s WHERE s.tag = ANY (snowflake_ids_internal.series_sections(OLD.name, OLD.sections));
    DELETE FROM snowflake_ids.segment_restricted AS r WHERE r.tag = ANY (snowflake_ids_internal.series_sections(OLD.name, OLD.sections));
    RETURN NULL;
END
$$;
CREATE TRIGGER series_follow AFTER DELETE ON snowflake_ids.series
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.series_follow();

/* Returns the segment tags of a monotonic series' sections; other series have none. */
CREATE FUNCTION snowflake_ids_internal.series_sections(name text, sections integer) RETURNS text[]
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(format('%s section %s of %s', $1, section, $2)), '{}') FROM generate_series(1, least($2, 1024)) AS section
$$;

/* Creates the tags of the sections. If registries on other servers keep the tags, only restricts the tags here. The creation
   of a series of the same name on a registry creates the tags there. */
CREATE FUNCTION snowflake_ids_internal.series_make_sections(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    made bigint;
    series snowflake_ids.series;
BEGIN
    IF length(name) > 107 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'name of monotonic series is too long',
            DETAIL = format('The name has %s characters; the limit is 107, because the sections are named after the series.',
                            length(name)),
            HINT = 'Name the series after what it numbers, for example "messages".';
    END IF;
    SELECT s.* INTO series FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C";
    -- No role has rights on these tags, on any server. The rights on the series decide.
    INSERT INTO snowflake_ids.segment_restricted (tag) SELECT unnest(snowflake_ids_internal.series_sections(name, series.sections))
    ON CONFLICT DO NOTHING;
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        RETURN;
    END IF;
    PERFORM snowflake_ids_internal.check_registered();
    INSERT INTO snowflake_ids.segment (tag, max_id, step, max_step, description, start, max_value)
    SELECT t.tag, series.start - 1, series.step, series.max_step, 'of a monotonic series', series.start, series.max_value
    FROM unnest(snowflake_ids_internal.series_sections(name, series.sections)) AS t (tag)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    IF made <> series.sections THEN
        RAISE duplicate_object USING
            MESSAGE = format('segment tags of sections of series "%s" already exist', left(name, 128)),
            DETAIL = 'The sections of the series are segment tags, and would get these names.',
            HINT = 'Choose another name for the series, or another number of sections.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.series_alter_sections() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.segment_check_home();
    UPDATE snowflake_ids.segment AS s
    SET step = NEW.step, max_step = NEW.max_step, max_value = NEW.max_value,
        version = snowflake_ids_internal.random_number(), update_time = clock_timestamp()
    WHERE s.tag = ANY (snowflake_ids_internal.series_sections(NEW.name, NEW.sections));
    RETURN NULL;
END
$$;
CREATE TRIGGER series_alter_sections AFTER UPDATE ON snowflake_ids.series
    FOR EACH ROW WHEN (NEW.kind = 'monotonic'
                       AND (OLD.step, OLD.max_step, OLD.max_value) IS DISTINCT FROM (NEW.step, NEW.max_step, NEW.max_value))
    EXECUTE FUNCTION snowflake_ids_internal.series_alter_sections();

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
    owner       name    DEFAULT NULL,
    sections    integer DEFAULT NULL,
    scope       text    DEFAULT 'global'
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    -- The type's name as this function's search_path writes it.
    type_name text := coalesce(key_type::text, '');
    registries text[];
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF kind COLLATE "C" = 'monotonic' THEN
        step := coalesce(step, least(1000, max_step));
        max_step := coalesce(max_step, greatest(1000000, step));
        sections := coalesce(sections, 16);
    END IF;
    PERFORM snowflake_ids_internal.series_check(name, kind, type_name, start, max_value, reset, time_zone, format, description, step,
        max_step, sections, scope);
    IF scope COLLATE "C" = 'shard' THEN
        RAISE feature_not_supported USING
            MESSAGE = 'cannot create a series of scope "shard"',
            DETAIL = 'The key table of such a series is created for a distributed table.',
            HINT = 'Create the series without a scope, then call snowflake_ids.series_distribute.';
    END IF;
    -- Fails if other servers also give numbers of this series. The lock keeps the answer valid until the transaction ends.
    IF scope COLLATE "C" = 'global' THEN
        LOCK TABLE snowflake_ids.registry_server IN ROW EXCLUSIVE MODE;
        SELECT array_agg(r.server ORDER BY r.position) INTO registries FROM snowflake_ids.registry_server AS r;
        PERFORM snowflake_ids_internal.series_refuse(kind, registries[1], cardinality(registries) - 1);
    END IF;
    INSERT INTO snowflake_ids.series (name, kind, key_type, start, max_value, reset, time_zone, format, description, step, max_step,
        sections, scope)
    VALUES (name, kind, type_name, start, max_value, lower(reset COLLATE "C"), time_zone, format, description, step, max_step, sections,
        scope)
    ON CONFLICT DO NOTHING;
    PERFORM snowflake_ids_internal.series_taken(name) WHERE NOT FOUND;
    PERFORM snowflake_ids_internal.series_make_sections(name) WHERE kind COLLATE "C" = 'monotonic';
    PERFORM snowflake_ids_internal.series_set_owner(s.name, s.id, owner) FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C";
END
$$;
COMMENT ON FUNCTION snowflake_ids.series_create IS 'creates a series; with an owner, only that role may use it until the owner grants rights';

/* These functions run with the rights of the tables' owner, after src/sql/series.rs has checked the caller's rights. */
CREATE FUNCTION snowflake_ids_internal.series_alter(
    name        text,
    max_value   bigint,
    time_zone   text,
    format      text,
    description text,
    owner       name,
    new_name    text,
    step        integer,
    max_step    integer
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM snowflake_ids_internal.series_check_unused(name, 'rename') WHERE new_name <> name COLLATE "C";
    UPDATE snowflake_ids.series AS s
    SET max_value = coalesce(max_value, s.max_value),
        time_zone = coalesce(time_zone, s.time_zone),
        format = coalesce(format, s.format),
        description = coalesce(description, s.description),
        step = coalesce(step, s.step),
        max_step = coalesce(max_step, s.max_step)
    WHERE s.name = name COLLATE "C";
    -- Not above: while a column of a key is written, no worker reads the row, also where it is written as it was.
    UPDATE snowflake_ids.series AS s SET name = new_name WHERE s.name = name COLLATE "C" AND new_name <> name COLLATE "C";
    PERFORM snowflake_ids_internal.series_set_owner(s.name, s.id, owner) FROM snowflake_ids.series AS s
    WHERE s.name = coalesce(new_name, name) COLLATE "C";
EXCEPTION WHEN unique_violation THEN
    PERFORM snowflake_ids_internal.series_taken(new_name);
END
$$;

CREATE FUNCTION snowflake_ids_internal.series_drop(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM snowflake_ids_internal.series_check_unused(name, 'drop');
    EXECUTE coalesce((SELECT format('DROP TABLE IF EXISTS %s', snowflake_ids_internal.series_key_table(s.id))
        FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C" AND s.scope = 'shard'), 'SELECT');
    DELETE FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C";
END
$$;

/* Fails if triggers fill columns from a series. Other sessions' temporary tables do not count, because any login can create
   them. */
CREATE FUNCTION snowflake_ids_internal.series_check_unused(name text, change text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    users text;
BEGIN
    -- The lock also keeps other sessions from attaching the series meanwhile.
    PERFORM FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C" FOR UPDATE;
    SELECT string_agg(format('trigger %s on table %s uses the series', quote_ident(t.tgname), t.tgrelid::regclass), E'\n'
                      ORDER BY t.tgrelid::regclass::text COLLATE "C", t.tgname)
    INTO users
    FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
    WHERE t.tgfoid = 'snowflake_ids_internal.series_fill()'::regprocedure AND t.tgparentid = 0
        AND NOT starts_with(t.tgname, '~snowflake_ids_raise_')
        -- Triggers that a superuser created may have other arguments.
        AND CASE WHEN t.tgnargs = 3
            THEN substring(t.tgargs FROM 1 FOR position(decode('00', 'hex') IN t.tgargs) - 1) = convert_to(name, getdatabaseencoding())
            ELSE false END;
    IF users IS NOT NULL THEN
        RAISE dependent_objects_still_exist USING
            MESSAGE = format('cannot %s series "%s" because other objects depend on it', left(change, 16), left(name, 128)),
            DETAIL = left(users, 4000),
            HINT = 'Detach the columns first with snowflake_ids.series_detach.';
    END IF;
END
$$;

/* Distributed series. Each distributed series has its own table of counters. The counter of a key is on the Citus shard that
   has the key's rows. Citus propagates the privileges on this table. The coordinator propagates the row of the series. */
CREATE FUNCTION snowflake_ids_internal.series_key_table(series bigint) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT 'snowflake_ids.series_keys_' || lpad(to_hex(series), 16, '0') $$;

/* Propagates a new, changed or deleted distributed series and its privileges to all nodes. */
CREATE FUNCTION snowflake_ids_internal.series_pass_on(series bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    keys regclass := to_regclass(snowflake_ids_internal.series_key_table(series));
    grantee record;
BEGIN
    IF keys IS NOT NULL THEN
        FOR grantee IN
            SELECT coalesce(quote_ident(r.rolname), 'PUBLIC') AS name, bool_or(p.privileges <> 'SELECT') AS writes,
                bool_or(p.series IS NOT NULL) AS reads
            FROM (SELECT x.grantee FROM pg_class AS c, aclexplode(c.relacl) AS x WHERE c.oid = keys AND x.grantee <> c.relowner
                  UNION SELECT g.grantee FROM snowflake_ids.series_privilege AS g WHERE g.series = $1) AS g (grantee)
                LEFT JOIN pg_roles AS r ON r.oid = g.grantee
                LEFT JOIN snowflake_ids.series_privilege AS p ON p.series = $1 AND p.grantee = g.grantee
            WHERE g.grantee = 0 OR r.oid IS NOT NULL
            GROUP BY 1 ORDER BY 1
        LOOP
            EXECUTE format('REVOKE ALL ON %s FROM %s', keys, grantee.name);
            IF grantee.reads THEN
                EXECUTE format('GRANT %s ON %s TO %s', CASE WHEN grantee.writes THEN 'SELECT, INSERT, UPDATE' ELSE 'SELECT' END, keys,
                    grantee.name);
            END IF;
        END LOOP;
    END IF;
    IF to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN
        PERFORM snowflake_ids_internal.citus_run_on_workers(
            format('SELECT snowflake_ids_internal.citus_take(%L)', snowflake_ids_internal.citus_definitions()));
    END IF;
END
$$;

/* Moves a series' counters to shards. Runs with the rights of the extension's owner, after src/sql/series.rs has checked the
   caller's rights. The series gets a new id, so that a session that waits for a counter in the old table does not create a
   new counter there. */
CREATE FUNCTION snowflake_ids_internal.series_add_shards(name text, beside regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    table_name text := snowflake_ids_internal.qualified_name(beside);
    new_id bigint := snowflake_ids_internal.random_number();
    keys text := snowflake_ids_internal.series_key_table(new_id);
    series snowflake_ids.series;
    of_key record;
BEGIN
    PERFORM snowflake_ids_internal.citus_check();
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot distribute a series in a %s transaction', current_setting('transaction_isolation')),
            DETAIL = 'The transaction''s snapshot may lack the newest counters.',
            HINT = 'Use a transaction of isolation level read committed.';
    END IF;
    -- Until the transaction ends, the locks below block all series' counters, and sessions that attach a column to this series.
    IF snowflake_ids_internal.in_transaction_block() THEN
        RAISE active_sql_transaction USING
            MESSAGE = 'cannot distribute a series in a transaction block',
            DETAIL = 'Gapless series would give no numbers until the end of the transaction block.',
            HINT = 'Call snowflake_ids.series_distribute outside of BEGIN and COMMIT, as a statement of its own.';
    END IF;
    PERFORM set_config('lock_timeout', snowflake_ids_internal.bounded_lock_timeout(), true),
        snowflake_ids_internal.series_check_unused(name, 'distribute');
    LOCK TABLE snowflake_ids.series_bigint, snowflake_ids.series_text, snowflake_ids.series_uuid IN SHARE ROW EXCLUSIVE MODE;
    SELECT s.* INTO series FROM snowflake_ids.series AS s WHERE s.name = name COLLATE "C";
    IF series.kind <> 'gapless' THEN
        RAISE feature_not_supported USING
            MESSAGE = format('cannot distribute series "%s", which is %s', left(name, 128), series.kind),
            DETAIL = 'All nodes take the numbers of such a series from one registry.',
            HINT = 'Use the series on all nodes as it is.';
    ELSIF series.scope <> 'global' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('series "%s" has scope "%s"', left(name, 128), series.scope),
            DETAIL = 'Only a series of scope "global", which counts in tables of the coordinator, can be distributed.',
            HINT = 'Create a series of scope "global", and set its keys with snowflake_ids.series_set.';
    ELSIF NOT series.restricted THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('cannot distribute series "%s", which is open to every role', left(name, 128)),
            DETAIL = 'A role that takes numbers of a distributed series needs its own privileges on the key table.',
            HINT = 'Grant USAGE with snowflake_ids.series_grant to the roles that take numbers.';
    END IF;
    EXECUTE format('LOCK TABLE %s IN ACCESS SHARE MODE', table_name);
    IF snowflake_ids_internal.qualified_name(beside) <> table_name THEN
        RAISE serialization_failure USING MESSAGE = format('table %s was changed meanwhile', table_name), HINT = 'Try again.';
    END IF;
    EXECUTE $query$
        SELECT a.atttypid AS type, CASE WHEN a.attcollation <> 0 THEN (SELECT format(' COLLATE %I.%I', n.nspname, l.collname)
            FROM pg_collation AS l JOIN pg_namespace AS n ON n.oid = l.collnamespace WHERE l.oid = a.attcollation) END AS collation
        FROM pg_dist_partition AS p
            JOIN pg_attribute AS a ON a.attrelid = p.logicalrelid AND a.attname = column_to_column_name(p.logicalrelid, p.partkey)
        WHERE p.logicalrelid = $1 AND p.partmethod = 'h'$query$
    INTO of_key USING beside;
    IF of_key.type IS NULL THEN
        RAISE wrong_object_type USING
            MESSAGE = format('table %s is not distributed by a column', table_name),
            HINT = 'Name a table whose distribution column contains the keys of the series.';
    ELSIF series.key_type <> (CASE WHEN of_key.type IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN 'bigint'
            WHEN of_key.type IN ('text'::regtype, 'varchar'::regtype) THEN 'text'
            WHEN of_key.type = 'uuid'::regtype THEN 'uuid' ELSE '' END) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('table %s is distributed by a column of type %s', table_name, format_type(of_key.type, NULL)),
            DETAIL = format('Keys of series "%s" are of type %s.', left(name, 128), series.key_type),
            HINT = 'Create a series whose keys have the type of the distribution column.';
    END IF;
    EXECUTE format('CREATE TABLE %s (key %s%s PRIMARY KEY, last_value bigint NOT NULL, period date) WITH (fillfactor = 50)',
        keys, format_type(of_key.type, NULL), of_key.collation);
    EXECUTE $query$SELECT create_distributed_table($1, 'key', colocate_with => $2)$query$ USING keys::regclass, table_name;
    EXECUTE format('INSERT INTO %s (key, last_value, period) SELECT k.key, k.last_value, k.period FROM snowflake_ids.series_%s AS k
        WHERE k.series = $1', keys, series.key_type) USING series.id;
    UPDATE snowflake_ids.series AS s SET scope = 'shard', id = new_id WHERE s.id = series.id;
    UPDATE snowflake_ids.series_privilege AS p SET series = new_id WHERE p.series = series.id;
    EXECUTE format('DELETE FROM snowflake_ids.series_%s AS k WHERE k.series = $1', series.key_type) USING series.id;
    PERFORM snowflake_ids_internal.series_pass_on(new_id);
END
$$;


/* One row for each series that the reader may see. Keys are counted up to 10,000, so that a query stays cheap. */
CREATE VIEW snowflake_ids.series_status WITH (security_barrier) AS
SELECT s.name, s.kind, s.key_type, c.keys, c.keys < 10000 AS all_keys_counted, s.start, s.max_value, s.reset, s.time_zone,
       s.format, s.restricted, s.description, s.step, s.max_step, s.sections
FROM snowflake_ids.series AS s CROSS JOIN LATERAL (
    SELECT CASE WHEN s.kind <> 'monotonic' THEN count(*) END AS keys FROM (
        SELECT 1 FROM snowflake_ids.series_bigint AS k WHERE k.series = s.id
        UNION ALL SELECT 1 FROM snowflake_ids.series_text AS k WHERE k.series = s.id
        UNION ALL SELECT 1 FROM snowflake_ids.series_uuid AS k WHERE k.series = s.id LIMIT 10000) AS k) AS c
WHERE snowflake_ids.has_series_privilege(s.name, 'SELECT');
COMMENT ON VIEW snowflake_ids.series_status IS 'the series that the reader may see';
COMMENT ON COLUMN snowflake_ids.series_status.keys IS
    'keys with a counter, counted up to 10,000; null for a monotonic series, whose keys share the maximum of their section';

/* One row for each key's counter. A condition on key_bigint, key_text or key_uuid, whichever has the type of the series'
   keys, uses an index. */
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
COMMENT ON COLUMN snowflake_ids.series_key.last_value IS 'the last number of the key';
