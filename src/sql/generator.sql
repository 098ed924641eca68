/* Named generators: each row gives a name to a layout and rules. Each server has one counter per layout, which issues the ids
   of all generators with this layout. So ids stay unique even if rows are written by hand, dumped, restored or copied. */
CREATE TABLE snowflake_ids.generator (
    name           text COLLATE "C" PRIMARY KEY,
    layout         text NOT NULL,
    modulus        integer,
    remainder      integer,
    sequence_start text,
    cache          integer
);
COMMENT ON TABLE snowflake_ids.generator IS 'named generators, each with a layout and rules for ids';
COMMENT ON COLUMN snowflake_ids.generator.layout IS 'the layout of the ids, as text or as the name of a preset layout';
COMMENT ON COLUMN snowflake_ids.generator.modulus IS
    'the modulus of the hash partition whose ids the generator issues; null: the setting snowflake_ids.shard decides';
COMMENT ON COLUMN snowflake_ids.generator.sequence_start IS 'zero, random or rotate; null: the setting snowflake_ids.sequence_start decides';
COMMENT ON COLUMN snowflake_ids.generator.cache IS 'the number of ids that a session takes at once; null: the setting snowflake_ids.cache decides';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.generator', '');

CREATE FUNCTION snowflake_ids_internal.generator_check_row() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most integer := coalesce(current_setting('snowflake_ids.max_generators', true), '256');
BEGIN
    PERFORM snowflake_ids_internal.generator_check(NEW.name, NEW.layout, NEW.modulus, NEW.remainder, NEW.sequence_start,
        NEW.cache);
    IF TG_OP = 'INSERT' AND (SELECT count(*) >= most FROM snowflake_ids.generator) THEN
        RAISE configuration_limit_exceeded USING
            MESSAGE = 'too many generators',
            DETAIL = format('This database has reached snowflake_ids.max_generators, which is %s.', most),
            HINT = 'Drop a generator with snowflake_ids.generator_drop, or raise snowflake_ids.max_generators and restart the server.';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER generator_check BEFORE INSERT OR UPDATE ON snowflake_ids.generator
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.generator_check_row();
CREATE TRIGGER generator_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_ids.generator
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.generator_changed();

/* Raises the error for a name that is taken, perhaps by an uncommitted transaction. Only roles that may write to the table of
   generators call this function. */
CREATE FUNCTION snowflake_ids_internal.generator_taken(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE duplicate_object USING
        MESSAGE = format('generator "%s" already exists', left(name, 128)),
        HINT = 'Change it with snowflake_ids.generator_alter, or choose another name.';
END
$$;

CREATE FUNCTION snowflake_ids.generator_create(
    name           text,
    layout         text    DEFAULT NULL,
    modulus        integer DEFAULT NULL,
    remainder      integer DEFAULT NULL,
    sequence_start text    DEFAULT NULL,
    cache          integer DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    -- The layout is stored in full, so that a dump gives the same generator on another server.
    own_layout text;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    own_layout := snowflake_ids_internal.server_layout();
    PERFORM snowflake_ids_internal.generator_check(name, coalesce(layout, own_layout), modulus, remainder, sequence_start, cache);
    -- Without this lock, two concurrent calls could both take the last free slot.
    LOCK TABLE snowflake_ids.generator IN SHARE ROW EXCLUSIVE MODE;
    PERFORM snowflake_ids_internal.generator_taken(name) FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C";
    INSERT INTO snowflake_ids.generator (name, layout, modulus, remainder, sequence_start, cache)
    VALUES (name, coalesce(layout, own_layout), modulus, remainder, sequence_start, cache);
END
$$;
COMMENT ON FUNCTION snowflake_ids.generator_create IS 'creates a named generator; the default for its layout is the server''s layout';

/* Locks a generator until the transaction ends. Fails if no generator has this name. Any role may call this function, which
   runs with the rights of the table's owner. */
CREATE FUNCTION snowflake_ids_internal.generator_keep(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C" FOR KEY SHARE;
    PERFORM snowflake_ids_internal.generator_unknown(name) WHERE NOT FOUND;
END
$$;

/* Fails if defaults of columns use a generator, or sequences are bound to it. Other sessions' temporary tables do not count.
   */
CREATE FUNCTION snowflake_ids_internal.generator_check_unused(name text, change text, bound boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
    argument text := format('(''%s''', replace(name COLLATE "C", '''', ''''''));
    users text;
BEGIN
    SELECT string_agg(u.text, E'\n' ORDER BY u.text COLLATE "C") INTO users
    FROM (
        SELECT format('default value for column %s of table %s uses the generator', quote_ident(a.attname), f.adrelid::regclass)
        FROM pg_attrdef AS f JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
            JOIN pg_class AS c ON c.oid = f.adrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
        WHERE EXISTS (SELECT FROM (VALUES ('snowflake_nextval', 'text'), ('snowflake_id', 'text'), ('snowflake_id', 'unknown'),
                ('snowflake_uuid', 'text'), ('snowflake_uuid_text', 'text')) AS call (called, type)
            WHERE strpos(pg_get_expr(f.adbin, f.adrelid),
                    concat(called, argument, CASE type WHEN 'text' THEN '::text' END, ')') COLLATE "C") > 0
                AND EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                    AND d.refclassid = 'pg_proc'::regclass
                    AND d.refobjid = format('pg_catalog.%I(%I)', called, type)::regprocedure))
        UNION ALL
        SELECT format('sequence %s is bound to the generator', b.sequence)
        FROM snowflake_ids.sequence_binding AS b
        WHERE bound AND b.generator = name COLLATE "C" AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence))
            AND EXISTS (SELECT FROM pg_sequence AS s WHERE s.seqrelid = b.sequence)
    ) AS u (text);
    IF users IS NOT NULL THEN
        RAISE dependent_objects_still_exist USING
            MESSAGE = format('cannot %s generator "%s" because other objects depend on it', left(change, 16), left(name, 128)),
            DETAIL = left(users, 4000),
            HINT = 'First detach these columns or attach them to another generator, and unbind these sequences.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids.generator_alter(
    name           text,
    modulus        integer DEFAULT NULL,
    remainder      integer DEFAULT NULL,
    sequence_start text    DEFAULT NULL,
    cache          integer DEFAULT NULL,
    new_name       text    DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    former record;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    SELECT * INTO former FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C" FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.generator_unknown(name);
    ELSIF (modulus IS NULL) <> (remainder IS NULL) AND NOT coalesce(modulus = 0, false) THEN
        PERFORM snowflake_ids_internal.generator_check(name, former.layout, modulus, remainder, NULL, NULL);
    ELSIF new_name IS NOT NULL AND new_name <> name COLLATE "C" THEN
        PERFORM snowflake_ids_internal.generator_check_unused(name, 'rename', false);
    END IF;
    UPDATE snowflake_ids.generator AS g
    SET name = coalesce(new_name, g.name),
        modulus = CASE WHEN modulus IS NULL THEN g.modulus ELSE nullif(modulus, 0) END,
        remainder = CASE WHEN modulus IS NULL THEN g.remainder WHEN modulus = 0 THEN NULL ELSE remainder END,
        sequence_start = CASE WHEN sequence_start IS NULL THEN g.sequence_start ELSE nullif(sequence_start COLLATE "C", 'default') END,
        cache = CASE WHEN cache IS NULL THEN g.cache ELSE nullif(cache, 0) END
    WHERE g.name = name COLLATE "C";
EXCEPTION WHEN unique_violation THEN
    PERFORM snowflake_ids_internal.generator_taken(new_name);
END
$$;
COMMENT ON FUNCTION snowflake_ids.generator_alter IS
    'changes a named generator: a null argument changes nothing, and 0 or ''default'' lets the setting decide';

CREATE FUNCTION snowflake_ids.generator_drop(name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C" FOR UPDATE;
    PERFORM snowflake_ids_internal.generator_unknown(name) WHERE NOT FOUND;
    PERFORM snowflake_ids_internal.generator_check_unused(name, 'drop', true);
    DELETE FROM snowflake_ids.generator AS g WHERE g.name = name COLLATE "C";
END
$$;
COMMENT ON FUNCTION snowflake_ids.generator_drop IS 'drops a named generator that no column or sequence uses';

/* One row for each generator. All roles may see all generators and the counters of layouts, as in the view `status`. */
CREATE VIEW snowflake_ids.generator_status AS
SELECT g.name, g.layout, g.modulus, g.remainder,
       CASE WHEN g.modulus IS NULL THEN nullif(current_setting('snowflake_ids.shard', true), '')
            WHEN g.modulus > 1 THEN pg_catalog.format('%s/%s', g.remainder, g.modulus) END AS shard,
       g.sequence_start, g.cache, s.slot, s.last_id, s.last_timestamp, s.high_water_mark, s.drift, s.years_left, s.fits, s.state
FROM snowflake_ids.generator AS g CROSS JOIN LATERAL snowflake_ids_internal.layout_status(g.layout) AS s;
COMMENT ON VIEW snowflake_ids.generator_status IS 'named generators, and the state of this server''s counters for their layouts';
