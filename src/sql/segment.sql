/* Segment tags, and the highest reserved id of each tag. This table is authoritative: ids are reserved here before they are
   published in shared memory. Rows may be written by hand. */
CREATE TABLE snowflake_ids.segment (
    tag         text COLLATE "C" PRIMARY KEY,
    max_id      bigint      NOT NULL DEFAULT 0,
    step        bigint      NOT NULL DEFAULT 1000,
    max_step    bigint      NOT NULL DEFAULT 1000000,
    increment   bigint      NOT NULL DEFAULT 1,
    remainder   bigint      NOT NULL DEFAULT 0,
    description text,
    start       bigint      NOT NULL DEFAULT 1,
    max_value   bigint      NOT NULL DEFAULT 9223372036854775807,
    reset       text        CHECK (reset IN ('day', 'month', 'year')),
    time_zone   text        NOT NULL DEFAULT 'UTC' CHECK ((timestamptz 'epoch' AT TIME ZONE time_zone) IS NOT NULL),
    format      text,
    period      date        CHECK (period >= '1970-01-01' AND period < '9999-01-01'),
    timeline    integer DEFAULT snowflake_ids_internal.segment_timeline(),
    update_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    version     bigint      NOT NULL DEFAULT snowflake_ids_internal.random_number(),
    generation  bigint      NOT NULL DEFAULT snowflake_ids_internal.random_number(),
    system_identifier bigint DEFAULT snowflake_ids_internal.system_identifier(),
    copied      bigint DEFAULT snowflake_ids_internal.segment_copied(),
    is_made     boolean     NOT NULL DEFAULT false
) WITH (fillfactor = 50);  -- a reservation writes the new row version to the same page, and the index does not change
COMMENT ON TABLE snowflake_ids.segment IS 'segment tags, and the highest reserved id of each';
COMMENT ON COLUMN snowflake_ids.segment.max_id IS 'the highest id reserved; if the tag has a reset, the highest of its period';
COMMENT ON COLUMN snowflake_ids.segment.step IS 'the number of ids in the smallest segment';
COMMENT ON COLUMN snowflake_ids.segment.max_step IS 'the number of ids in the largest segment';
COMMENT ON COLUMN snowflake_ids.segment.version IS
    'a random number that changes with each reservation or move, so that a restored row is never taken for a later one';
COMMENT ON COLUMN snowflake_ids.segment.generation IS
    'a random number that segment_set with force changes; earlier records of issued ids are then ignored';
COMMENT ON COLUMN snowflake_ids.segment.period IS 'the first day of the period that max_id counts in';
COMMENT ON COLUMN snowflake_ids.segment.timeline IS
    'the timeline of the last reservation or move, plus the rows of fork without a timeline then; if the sum grows, the tag skips ids that this server may lack';
COMMENT ON COLUMN snowflake_ids.segment.system_identifier IS 'the cluster of this timeline, as pg_control_system() shows it';
COMMENT ON COLUMN snowflake_ids.segment.copied IS
    'the number of the last copy of the data directory before the last reservation or move; if it changes, the tag skips ids, too';
COMMENT ON COLUMN snowflake_ids.segment.is_made IS
    'true if attach made the tag and named it after its table or sequence, and no function for tags has changed it since';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.segment', '');

/* Tags that only roles with privileges on the tag may use. The tags have a table of their own, because the dumped rows of the
   next table cannot be restored if a role is missing. The restricted tags then stay restricted. */
CREATE TABLE snowflake_ids.segment_restricted (
    tag text COLLATE "C" PRIMARY KEY
);
COMMENT ON TABLE snowflake_ids.segment_restricted IS 'the segment tags that only roles with privileges may use; others are open to everybody';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.segment_restricted', '');

/* Privileges of this server's roles on restricted tags, also on tags of a registry. Dumps contain the roles' names. */
CREATE TABLE snowflake_ids.segment_privilege (
    tag        text COLLATE "C" NOT NULL,
    grantee    regrole          NOT NULL,
    privileges text             NOT NULL,
    PRIMARY KEY (tag, grantee)
);
COMMENT ON TABLE snowflake_ids.segment_privilege IS 'rights of roles on restricted segment tags';
COMMENT ON COLUMN snowflake_ids.segment_privilege.grantee IS 'a role; - means PUBLIC';
COMMENT ON COLUMN snowflake_ids.segment_privilege.privileges IS 'one or more of OWNER, USAGE, SELECT and UPDATE, separated by commas';
/* Leaves the privileges of dropped roles out of dumps, because the oids may belong to other roles after a restore. */
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.segment_privilege',
    'WHERE grantee OPERATOR(pg_catalog.=) 0 OR EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid OPERATOR(pg_catalog.=) grantee)');

CREATE TRIGGER segment_restricted_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_ids.segment_restricted
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.segment_privileges_changed();
CREATE TRIGGER segment_privilege_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_ids.segment_privilege
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.segment_privileges_changed();

/* If a tag is deleted, deletes its privileges. If a tag is renamed, changes the name in its privileges and in the bindings of
   sequences. Calls for a sequence that is bound to a deleted tag fail. */
CREATE FUNCTION snowflake_ids_internal.segment_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM snowflake_ids.segment_privilege AS p WHERE p.tag = OLD.tag;
        DELETE FROM snowflake_ids.segment_restricted AS r WHERE r.tag = OLD.tag;
    ELSE
        UPDATE snowflake_ids.segment_privilege AS p SET tag = NEW.tag WHERE p.tag = OLD.tag;
        UPDATE snowflake_ids.segment_restricted AS r SET tag = NEW.tag WHERE r.tag = OLD.tag;
        UPDATE snowflake_ids.sequence_binding AS b SET tag = NEW.tag WHERE b.tag = OLD.tag;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER segment_follow AFTER DELETE ON snowflake_ids.segment
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.segment_follow();
CREATE TRIGGER segment_renamed AFTER UPDATE ON snowflake_ids.segment
    FOR EACH ROW WHEN (OLD.tag <> NEW.tag) EXECUTE FUNCTION snowflake_ids_internal.segment_follow();

CREATE TRIGGER segment_check BEFORE INSERT OR UPDATE ON snowflake_ids.segment
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.segment_check();

/* Marks restored rows as written on this cluster and its present timeline, because no standby can lack ids that were reserved
   before the restore. */
CREATE FUNCTION snowflake_ids_internal.segment_adopt() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.system_identifier := snowflake_ids_internal.system_identifier();
    NEW.timeline := snowflake_ids_internal.segment_timeline();
    NEW.copied := snowflake_ids_internal.segment_copied();
    RETURN NEW;
END
$$;

CREATE TRIGGER segment_adopt BEFORE INSERT ON snowflake_ids.segment
    FOR EACH ROW WHEN ((NEW.system_identifier, NEW.timeline, NEW.copied) IS DISTINCT FROM
                       (snowflake_ids_internal.system_identifier(), snowflake_ids_internal.segment_timeline(), snowflake_ids_internal.segment_copied()))
    EXECUTE FUNCTION snowflake_ids_internal.segment_adopt();

/* Skips, at the first change of a row after a promotion, the ids that the previous primary may have reserved. */
CREATE FUNCTION snowflake_ids_internal.segment_skip() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- The timeline is read first: a fork that is recorded meanwhile counts at the next change.
    NEW.system_identifier := snowflake_ids_internal.system_identifier();
    NEW.timeline := snowflake_ids_internal.segment_timeline();
    NEW.copied := snowflake_ids_internal.segment_copied();
    SELECT k.max_id, CASE WHEN NEW.reset IS NOT NULL THEN date '1970-01-01' + k.day END INTO NEW.max_id, NEW.period
    FROM snowflake_ids_internal.segment_kept(OLD.tag, NEW.max_id, NEW.period - date '1970-01-01') AS k;
    RETURN NEW;
END
$$;

CREATE TRIGGER segment_skip BEFORE UPDATE ON snowflake_ids.segment
    FOR EACH ROW WHEN (snowflake_ids_internal.segment_promotions(OLD.system_identifier, OLD.timeline, OLD.copied) > 0)
    EXECUTE FUNCTION snowflake_ids_internal.segment_skip();

CREATE TRIGGER segment_came_or_went AFTER INSERT OR DELETE ON snowflake_ids.segment
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.segment_changed();

CREATE TRIGGER segment_moved AFTER UPDATE ON snowflake_ids.segment
    FOR EACH ROW WHEN ((OLD.tag, OLD.max_id, OLD.start, OLD.reset, OLD.time_zone, OLD.period, OLD.generation)
                       IS DISTINCT FROM (NEW.tag, NEW.max_id, NEW.start, NEW.reset, NEW.time_zone, NEW.period, NEW.generation))
    EXECUTE FUNCTION snowflake_ids_internal.segment_changed('moved');

CREATE TRIGGER segment_altered AFTER UPDATE ON snowflake_ids.segment
    FOR EACH ROW WHEN ((OLD.increment, OLD.remainder, OLD.max_value)
                       IS DISTINCT FROM (NEW.increment, NEW.remainder, NEW.max_value))
    EXECUTE FUNCTION snowflake_ids_internal.segment_changed('altered');

CREATE TRIGGER segment_tuned AFTER UPDATE ON snowflake_ids.segment
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.segment_changed('tuned');

/* Forbids TRUNCATE, because the triggers above do not fire for it. */
CREATE FUNCTION snowflake_ids_internal.segment_keep() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'cannot truncate snowflake_ids.segment' USING
        ERRCODE = 'feature_not_supported',
        DETAIL = 'Sessions would not notice the TRUNCATE, and would continue to give ids of the tags.',
        HINT = 'Use DELETE FROM snowflake_ids.segment.';
END
$$;

CREATE TRIGGER segment_keep BEFORE TRUNCATE ON snowflake_ids.segment
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.segment_keep();

CREATE FUNCTION snowflake_ids_internal.segment_bigint(name text, value numeric) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF value IS NULL THEN
        RAISE EXCEPTION '% must not be null', left(name, 64) USING ERRCODE = 'invalid_parameter_value';
    ELSIF value NOT BETWEEN -9223372036854775808 AND 9223372036854775807 OR value <> trunc(value) THEN
        RAISE EXCEPTION '% % is out of range', left(name, 64), left(value::text, 128) USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'Ids are whole numbers that a bigint can hold, up to 9223372036854775807.';
    END IF;
    RETURN value;
END
$$;

CREATE FUNCTION snowflake_ids_internal.segment_unknown(tag text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.segment_check_tag(tag);
    RAISE EXCEPTION 'segment tag "%" does not exist', tag USING
        ERRCODE = 'undefined_object',
        DETAIL = 'There is no row for it in snowflake_ids.segment.',
        HINT = format('Create it with SELECT snowflake_ids.segment_create(%L).', tag);
END
$$;

/* Fails if registries on other servers keep the tags. */
CREATE FUNCTION snowflake_ids_internal.segment_check_home() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    servers text;
    first name;
    place text;
    was_home boolean := NOT EXISTS (SELECT FROM snowflake_ids.registry_server);
BEGIN
    -- The lock keeps the answer valid: use_registry waits for this transaction, and then copies the changed rows.
    LOCK TABLE snowflake_ids.registry_server IN ROW EXCLUSIVE MODE;
    SELECT string_agg(quote_ident(server), ', ' ORDER BY position), (array_agg(server ORDER BY position))[1]
    INTO servers, first FROM snowflake_ids.registry_server;
    IF servers IS NOT NULL AND was_home THEN
        RAISE EXCEPTION 'this database has meanwhile begun to use registry %', servers USING
            ERRCODE = 'serialization_failure',
            DETAIL = 'Before that, the segment tags were kept in this database.',
            HINT = 'Try again.';
    ELSIF servers IS NOT NULL THEN
        -- The registry is on a foreign server, or on the coordinator of a Citus cluster.
        IF first COLLATE "C" = 'citus_coordinator' AND to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN
            SELECT format('host %s, port %s', n.nodename, n.nodeport) INTO place FROM pg_catalog.pg_dist_node AS n
            WHERE n.groupid = 0 ORDER BY n.nodeid LIMIT 1;
        ELSE
            SELECT string_agg(format('%s %s', o.option_name, o.option_value), ', ' ORDER BY o.option_name = 'port', o.option_name) INTO place
            FROM pg_foreign_server AS s, pg_options_to_table(s.srvoptions) AS o
            WHERE s.srvname = first COLLATE "C" AND o.option_name IN ('host', 'hostaddr', 'port') AND o.option_value <> '';
        END IF;
        RAISE EXCEPTION 'segment tags of this database are kept by registry %', servers USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Changes in this database would have no effect.',
            HINT = format('Connect to the registry%s, and make the change there.', coalesce(', at ' || left(place, 1000), ''));
    END IF;
END
$$;

/* Rejects new rows if registries keep the tags, because the new rows would give no ids, and nobody would notice. Accepts rows
   from a dump, which were written before this transaction, or on another cluster. */
CREATE FUNCTION snowflake_ids_internal.segment_admit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.segment_check_home();
    RETURN NEW;
END
$$;

CREATE TRIGGER segment_admit BEFORE INSERT ON snowflake_ids.segment
    FOR EACH ROW WHEN (NEW.update_time >= transaction_timestamp()
                       AND (NEW.system_identifier, NEW.timeline) IS NOT DISTINCT FROM
                           (snowflake_ids_internal.system_identifier(), snowflake_ids_internal.segment_timeline()))
    EXECUTE FUNCTION snowflake_ids_internal.segment_admit();

CREATE FUNCTION snowflake_ids.segment_create(
    tag         text,
    start       numeric DEFAULT 1,
    step        bigint  DEFAULT 1000,
    max_step    bigint  DEFAULT 1000000,
    increment   bigint  DEFAULT 1,
    remainder   bigint  DEFAULT 0,
    description text    DEFAULT NULL,
    max_value   bigint  DEFAULT 9223372036854775807,
    reset       text    DEFAULT NULL,
    time_zone   text    DEFAULT 'UTC',
    format      text    DEFAULT NULL,
    owner       name    DEFAULT NULL
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    first bigint;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    first := snowflake_ids_internal.segment_bigint('start', start);
    PERFORM snowflake_ids_internal.segment_check_tag(tag);
    PERFORM snowflake_ids_internal.segment_check_home();
    PERFORM snowflake_ids_internal.check_registered();
    INSERT INTO snowflake_ids.segment (tag, max_id, step, max_step, increment, remainder, description, start,
                                       max_value, reset, time_zone, format)
    VALUES (tag, CASE WHEN first < 0 THEN first ELSE first - 1 END, step, max_step, increment, remainder,
            description, first, max_value, lower(reset COLLATE "C"), time_zone, format)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'segment tag "%" already exists', tag USING
            ERRCODE = 'duplicate_object',
            HINT = 'Change its properties with snowflake_ids.segment_alter, or its next id with snowflake_ids.segment_set.';
    END IF;
    PERFORM snowflake_ids_internal.segment_set_owner(tag, owner);
END
$$;
COMMENT ON FUNCTION snowflake_ids.segment_create IS 'creates a segment tag; with an owner, only that role may use it until the owner grants rights';

/* These functions run with the rights of the tables' owner, after src/sql/tag.rs has checked the caller's rights. */

/* Keeps a tag that a user changes, when the column that it was made for is dropped. */
CREATE FUNCTION snowflake_ids_internal.segment_adopted(tag text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    UPDATE snowflake_ids.segment AS s SET is_made = false WHERE s.tag = $1 COLLATE "C" AND s.is_made
$$;
CREATE FUNCTION snowflake_ids_internal.segment_alter(
    tag         text,
    step        bigint,
    max_step    bigint,
    increment   bigint,
    remainder   bigint,
    description text,
    max_value   bigint,
    time_zone   text,
    format      text,
    owner       name
) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM snowflake_ids_internal.segment_check_tag(tag);
    PERFORM snowflake_ids_internal.segment_check_home();
    UPDATE snowflake_ids.segment AS s
    SET step = coalesce(step, s.step),
        max_step = coalesce(max_step, s.max_step),
        increment = coalesce(increment, s.increment),
        remainder = coalesce(remainder, s.remainder),
        description = coalesce(description, s.description),
        max_value = coalesce(max_value, s.max_value),
        time_zone = coalesce(time_zone, s.time_zone),
        format = coalesce(format, s.format),
        version = snowflake_ids_internal.random_number(),
        update_time = clock_timestamp()
    WHERE s.tag = segment_alter.tag COLLATE "C";
    PERFORM snowflake_ids_internal.segment_unknown(tag) WHERE NOT FOUND;
    PERFORM snowflake_ids_internal.segment_set_owner(tag, owner);
END
$$;

CREATE FUNCTION snowflake_ids_internal.segment_drop(tag text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.segment_check_tag(tag);
    PERFORM snowflake_ids_internal.segment_check_home();
    DELETE FROM snowflake_ids.segment AS s WHERE s.tag = segment_drop.tag COLLATE "C";
    PERFORM snowflake_ids_internal.segment_unknown(tag) WHERE NOT FOUND;
END
$$;

/* Returns the first day of the period of a dated tag or series at a time; null without a reset. Written so that the planner
   inlines it: without SET and STRICT, and with each argument used once. */
CREATE FUNCTION snowflake_ids_internal.period_at(reset text, time_zone text, at timestamptz DEFAULT pg_catalog.clock_timestamp())
RETURNS date LANGUAGE sql AS $$
    SELECT pg_catalog.date_trunc(reset, pg_catalog.timezone(time_zone, at))::pg_catalog.date
$$;

/* Locks a tag against reservations of all sessions; returns the highest reserved id. */
CREATE FUNCTION snowflake_ids_internal.segment_lock(tag text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reserved bigint;
BEGIN
    PERFORM snowflake_ids_internal.segment_check_tag(tag);
    PERFORM snowflake_ids_internal.segment_check_home();
    -- The trigger segment_skip raises the row, if this is its first change after a promotion.
    UPDATE snowflake_ids.segment AS s SET update_time = clock_timestamp()
    WHERE s.tag = segment_lock.tag COLLATE "C" AND snowflake_ids_internal.segment_promotions(s.system_identifier, s.timeline, s.copied) > 0;
    SELECT CASE WHEN s.period < snowflake_ids_internal.period_at(s.reset, s.time_zone) THEN s.start - 1 ELSE s.max_id END
    INTO reserved FROM snowflake_ids.segment AS s WHERE s.tag = segment_lock.tag COLLATE "C" FOR NO KEY UPDATE;
    PERFORM snowflake_ids_internal.segment_unknown(tag) WHERE NOT FOUND;
    RETURN reserved;
END
$$;

/* Sets the highest reserved id. With `force`, the tag gets a new generation, and a period in the future is replaced by the
   present period. */
CREATE FUNCTION snowflake_ids_internal.segment_move(tag text, max_id bigint, force boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE snowflake_ids.segment AS s
    SET max_id = segment_move.max_id,
        period = greatest(CASE WHEN NOT force THEN s.period END, snowflake_ids_internal.period_at(s.reset, s.time_zone)),
        version = snowflake_ids_internal.random_number(), update_time = clock_timestamp(),
        generation = CASE WHEN force THEN snowflake_ids_internal.random_number() ELSE s.generation END,
        timeline = snowflake_ids_internal.segment_timeline(), system_identifier = snowflake_ids_internal.system_identifier()
    WHERE s.tag = segment_move.tag COLLATE "C";
END
$$;

CREATE FUNCTION snowflake_ids_internal.segment_refuse_below(tag text, value bigint, issued bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF value < issued THEN
        RAISE EXCEPTION 'value % is below issued ids of segment tag "%"', value, tag USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = format('Ids up to %s may be in use; continuing with %s would issue some of them again.',
                            issued, value + 1),
            HINT = format('Give %s or a higher value, or force => true if none of these ids is in use any more.', issued);
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.segment_set(tag text, value numeric, force boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target   bigint := snowflake_ids_internal.segment_bigint('value', value);
    reserved bigint := snowflake_ids_internal.segment_lock(tag);
    issued   bigint;
    later    date;
BEGIN
    -- Above what is reserved, the row's lock suffices. Up to there the ids in the buffers come in the way: looked
    -- at first, so that a wrong value costs none; then taken away, so that what was seen stays true.
    IF target <= reserved OR force THEN
        PERFORM snowflake_ids_internal.segment_refuse_below(tag, target, snowflake_ids_internal.segment_issued(tag, reserved))
        WHERE force IS NOT TRUE;
        issued := snowflake_ids_internal.segment_close(tag, reserved);
        PERFORM snowflake_ids_internal.segment_refuse_below(tag, target, issued) WHERE force IS NOT TRUE;
    END IF;
    SELECT s.period INTO later FROM snowflake_ids.segment AS s
    WHERE force AND s.tag = segment_set.tag COLLATE "C" AND s.period > snowflake_ids_internal.period_at(s.reset, s.time_zone);
    IF later IS NOT NULL THEN
        RAISE NOTICE 'numbers of segment tag "%" will come again', tag USING
            DETAIL = format('The tag goes back from the period that begins at %s, in which numbers up to %s may be in use.', later, issued),
            HINT = format('Once that period begins, SELECT snowflake_ids.segment_raise(%L, %s) before the tag is used.', tag, issued);
    END IF;
    PERFORM snowflake_ids_internal.segment_move(tag, target, force => coalesce(force, false));
END
$$;

CREATE FUNCTION snowflake_ids_internal.segment_raise(tag text, value bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reserved bigint := snowflake_ids_internal.segment_lock(tag);
    target   bigint := value;
BEGIN
    IF value <= reserved THEN
        target := greatest(value, snowflake_ids_internal.segment_close(tag, reserved));
    END IF;
    PERFORM snowflake_ids_internal.segment_move(tag, target);
    RETURN target;
END
$$;

CREATE VIEW snowflake_ids.segment_status WITH (security_barrier) AS
WITH slots AS (
    SELECT d.datname, d.datname = current_database() AS here, slot.*
    FROM snowflake_ids_internal.segment_slots(false) AS slot JOIN pg_catalog.pg_database AS d ON d.oid = slot.database
), own AS (
    SELECT * FROM slots WHERE here AND source = 'snowflake_ids.segment'::regclass
)
SELECT current_database() AS database, coalesce(s.tag::text, slot.tag) AS tag, slot.current_first, slot.current_last,
       slot.current_next, slot.next_first, slot.next_last, slot.used, coalesce(slot.step, s.step) AS step,
       coalesce(slot.ids_issued, 0) AS ids_issued, coalesce(slot.refills, 0) AS refills, slot.last_refill,
       coalesce(slot.waits, 0) AS waits, slot.longest_wait, slot.exhausted_at, slot.trouble,
       slot.remaining_ids, make_interval(secs => coalesce(slot.refill_seconds, 0)) AS refill_time,
       make_interval(secs => coalesce(slot.wait_seconds, 0)) AS wait_time, slot.stats_reset, slot.failing_since, slot.remedy,
       coalesce(slot.standing, 'idle') AS standing
FROM snowflake_ids.segment AS s FULL JOIN own AS slot ON slot.tag = s.tag
WHERE snowflake_ids.has_segment_privilege(coalesce(s.tag, slot.tag), 'SELECT')
UNION ALL
SELECT datname, tag, current_first, current_last, current_next, next_first, next_last, used, step, ids_issued,
       refills, last_refill, waits, longest_wait, exhausted_at, trouble, remaining_ids, make_interval(secs => refill_seconds),
       make_interval(secs => wait_seconds), stats_reset, failing_since, remedy, standing
FROM slots
WHERE NOT here;
COMMENT ON VIEW snowflake_ids.segment_status IS 'the segment tags that the reader may see, and their counts since the server started';

/* The tags of segment_status that need attention. The view skips all other tags without making rows of them. */
CREATE VIEW snowflake_ids_internal.tag_attention WITH (security_barrier) AS
SELECT d.datname AS database, slot.tag, slot.standing, slot.ids_issued, slot.waits, slot.exhausted_at, slot.trouble,
       slot.failing_since, slot.remedy
FROM snowflake_ids_internal.segment_slots(true) AS slot JOIN pg_catalog.pg_database AS d ON d.oid = slot.database
WHERE d.datname <> current_database()
    OR slot.source = 'snowflake_ids.segment'::regclass AND snowflake_ids.has_segment_privilege(slot.tag, 'SELECT');
