/* The registries on other servers from which this database takes its ids; empty if the database is its own registry. */
CREATE TABLE snowflake_ids.registry_server (
    position integer     PRIMARY KEY CHECK (position >= 0),
    server   name        NOT NULL UNIQUE,
    identity text        NOT NULL UNIQUE,
    timeline integer     NOT NULL,
    fork     bigint,
    left_forks bigint[]  NOT NULL DEFAULT '{}',
    set_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE snowflake_ids.registry_server IS 'the registries from which this database takes ids, as set by snowflake_ids.use_registry; empty if the database is its own registry';
COMMENT ON COLUMN snowflake_ids.registry_server.server IS 'the foreign server';
COMMENT ON COLUMN snowflake_ids.registry_server.identity IS 'the cluster, database and extension that distinguish the registry from others';
COMMENT ON COLUMN snowflake_ids.registry_server.timeline IS 'the latest timeline on which the registry was seen';
COMMENT ON COLUMN snowflake_ids.registry_server.fork IS 'the random number that the registry drew at its promotion; null before the first';
COMMENT ON COLUMN snowflake_ids.registry_server.left_forks IS 'the forks seen before; a server that still has one of them is a former primary';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.registry_server', '');

/* The promotions of this database as a registry. A promoted server records its own fork before its first answer. A fork without a
   timeline is missing in this server's history, and a node that saw it named it: the server had another standby, which was
   promoted. Not dumped, because a restored database is another registry. */
CREATE TABLE snowflake_ids.fork (
    fork              bigint      PRIMARY KEY,
    system_identifier bigint      NOT NULL,
    timeline          integer,
    recorded_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (system_identifier, timeline)
);
COMMENT ON TABLE snowflake_ids.fork IS 'the promotions of this registry, by the random numbers that its servers drew';
COMMENT ON COLUMN snowflake_ids.fork.system_identifier IS 'the cluster, as pg_control_system() shows it';
COMMENT ON COLUMN snowflake_ids.fork.timeline IS 'the timeline that began with the promotion; null if only nodes saw it, and this server''s history lacks it';

/* For each registry and tag, the highest id that was received. A row is written before the received ids are handed out, so
   that the server can detect a registry that was restored from a backup. */
CREATE TABLE snowflake_ids.received (
    identity    text        NOT NULL,
    tag         text        COLLATE "C" NOT NULL,
    period      date,
    max_id      bigint      NOT NULL,
    version     bigint,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (identity, tag)
) WITH (fillfactor = 50);
COMMENT ON TABLE snowflake_ids.received IS 'the highest id received of each tag from each registry';
COMMENT ON COLUMN snowflake_ids.received.version IS 'the version of the registry''s row when max_id was received; null if the ids were handed over to the registry';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.received', '');

/* Keeps rows of logical replication out of these tables, which describe this server alone. A publication FOR ALL TABLES would
   replace the rows with another server's rows. Sessions would not notice the change, and both servers would issue the same
   ids. Triggers fire in the order of their names, so these triggers (_applied) fire before the triggers that check rows
   (_check). */
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['segment', 'segment_restricted', 'segment_privilege', 'worker_lease', 'worker_chosen', 'registry_server', 'received', 'fork', 'sequence_binding', 'generator', 'series', 'series_privilege'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE OR DELETE ON snowflake_ids.%I
                        FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.keep_from_replication()',
                       name || '_applied', name);
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON snowflake_ids.%I
                        FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.keep_from_replication()',
                       name || '_applied_truncate', name);
        EXECUTE format('ALTER TABLE snowflake_ids.%1$I ENABLE REPLICA TRIGGER %2$I, ENABLE REPLICA TRIGGER %3$I',
                       name, name || '_applied', name || '_applied_truncate');
    END LOOP;
END
$$;

/* When the database's owner restores a dump, skips the leases of worker ids and the received ids, which the owner must not
   set. The server determines them again. Refuses rows of registry_server, because only an administrator may set the registry.
   */
CREATE FUNCTION snowflake_ids_internal.keep_from_restore() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_TABLE_NAME = 'registry_server' THEN
        RAISE EXCEPTION 'permission denied to set the registry of this database' USING
            ERRCODE = 'insufficient_privilege',
            DETAIL = format('In the dump, the database takes its ids from the registry of foreign server "%s".', NEW.server),
            HINT = 'Restore as a superuser, or ask an administrator to call snowflake_ids.use_registry afterwards.';
    END IF;
    RAISE NOTICE 'skipping a row of snowflake_ids.%', TG_TABLE_NAME USING
        DETAIL = 'Only a superuser can restore it.';
    RETURN NULL;
END
$$;
CREATE TRIGGER worker_keep_from_restore BEFORE INSERT ON snowflake_ids.worker_lease FOR EACH ROW
    WHEN (NOT has_table_privilege('snowflake_ids.worker_lease', 'UPDATE')) EXECUTE FUNCTION snowflake_ids_internal.keep_from_restore();
CREATE TRIGGER registry_keep_from_restore BEFORE INSERT ON snowflake_ids.registry_server FOR EACH ROW
    WHEN (NOT has_table_privilege('snowflake_ids.registry_server', 'UPDATE')) EXECUTE FUNCTION snowflake_ids_internal.keep_from_restore();
CREATE TRIGGER received_keep_from_restore BEFORE INSERT ON snowflake_ids.received FOR EACH ROW
    WHEN (NOT has_table_privilege('snowflake_ids.received', 'UPDATE')) EXECUTE FUNCTION snowflake_ids_internal.keep_from_restore();

/* A COPY, as of a data-only dump, may bring rows that a table has already. A restored row of a tag raises the row that it meets,
   and its new version makes saved ranges void. */
CREATE FUNCTION snowflake_ids_internal.raise_existing_tag() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    later record;
BEGIN
    -- Locks the row, so it is a statement of its own.
    SELECT r.max_id, r.day INTO later
    FROM snowflake_ids_internal.segment_restored(NEW.tag, NEW.max_id, NEW.period - date '1970-01-01') AS r;
    UPDATE snowflake_ids.segment AS s
    SET max_id = later.max_id, period = date '1970-01-01' + later.day,
        version = snowflake_ids_internal.random_number(), update_time = clock_timestamp()
    WHERE s.tag = NEW.tag AND later.max_id IS NOT NULL;
    RETURN CASE WHEN NOT FOUND THEN NEW END;
END
$$;

/* Raises the counter of a key likewise. */
CREATE FUNCTION snowflake_ids_internal.raise_existing_key() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_later boolean;
BEGIN
    EXECUTE format('SELECT (coalesce($1.period, ''-infinity''), $1.last_value) > (coalesce(k.period, ''-infinity''), k.last_value)
        FROM %s AS k WHERE k.series = $1.series AND k.key = $1.key FOR UPDATE', TG_RELID::regclass) INTO is_later USING NEW;
    IF is_later THEN
        EXECUTE format('UPDATE %s AS k SET last_value = $1.last_value, period = $1.period, version = NULL
            WHERE k.series = $1.series AND k.key = $1.key', TG_RELID::regclass) USING NEW;
    END IF;
    RETURN CASE WHEN is_later IS NULL THEN NEW END;
END
$$;

/* Skips a restored row if the table has the row already. The argument is the condition by which both are the same row. */
CREATE FUNCTION snowflake_ids_internal.keep_existing() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    present record;
BEGIN
    EXECUTE format('SELECT t.* FROM %s AS t WHERE %s LIMIT 1', TG_RELID::regclass, TG_ARGV[0]) INTO present USING NEW;
    IF present IS NULL THEN
        RETURN NEW;
    ELSIF TG_TABLE_NAME IN ('generator', 'series') AND present <> NEW THEN
        RAISE WARNING 'skipping a row of snowflake_ids.%', TG_TABLE_NAME USING
            DETAIL = format('The table keeps %s.', left(present::text, 1000)),
            HINT = 'Compare the definitions in both databases.';
    END IF;
    RETURN NULL;
END
$$;

DO $$
DECLARE
    existing record;
BEGIN
    -- The name comes before those of other triggers, so that rows which are there are not checked.
    FOR existing IN SELECT * FROM (VALUES
        ('segment', 'raise_existing_tag', ''), ('series_bigint', 'raise_existing_key', ''), ('series_text', 'raise_existing_key', ''),
        ('series_uuid', 'raise_existing_key', ''), ('generator', 'keep_existing', 't.name = $1.name'),
        ('segment_restricted', 'keep_existing', 't.tag = $1.tag'),
        ('segment_privilege', 'keep_existing', '(t.tag, t.grantee) = ($1.tag, $1.grantee)'),
        ('series', 'keep_existing', 't.name = $1.name'),
        ('series_privilege', 'keep_existing', '(t.series, t.grantee) = ($1.series, $1.grantee)'),
        ('sequence_binding', 'keep_existing', 't.sequence = $1.sequence'),
        ('worker_lease', 'keep_existing', '(t.datacenter_id, t.worker_id) = ($1.datacenter_id, $1.worker_id)'),
        ('received', 'keep_existing', '(t.identity, t.tag) = ($1.identity, $1.tag)'),
        -- Registries of two databases are not mixed. The rows of this transaction come from the same dump.
        ('registry_server', 'keep_existing', 't.xmin <> pg_current_xact_id()::xid')) AS e (table_name, function, same)
    LOOP
        EXECUTE format('CREATE TRIGGER existing_row BEFORE INSERT ON snowflake_ids.%I FOR EACH ROW
            WHEN (snowflake_ids_internal.is_restored()) EXECUTE FUNCTION snowflake_ids_internal.%I(%L)',
            existing.table_name, existing.function, existing.same);
    END LOOP;
END
$$;

/* Sessions cache the registries in use together with each series, so a change of the registries makes the cached series
   stale. */
CREATE TRIGGER registry_series AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_ids.registry_server
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.series_changed();

/* The server's state file records the source of the worker id, so the launcher must search a database again after the
   database has begun or stopped using a registry, or has recorded a lease of a worker id. */
CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE OF position, server, identity OR TRUNCATE ON snowflake_ids.registry_server
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.registry_changed();
CREATE TRIGGER registry_changed AFTER INSERT ON snowflake_ids.worker_lease
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.registry_changed();

/* Sets all other triggers to ENABLE ALWAYS, so that they also fire in functions that logical replication calls, and with
   session_replication_role = replica. */
DO $$
DECLARE
    table_name regclass;
    name name;
BEGIN
    FOR table_name, name IN SELECT t.tgrelid, t.tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
        WHERE c.relnamespace = 'snowflake_ids'::regnamespace AND NOT t.tgisinternal AND t.tgenabled = 'O'
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', table_name, name);
    END LOOP;
END
$$;

/* Blocks reservations and receipts of ids until the transaction ends, so that the highest ids that the transaction compares
   do not change. */
CREATE FUNCTION snowflake_ids_internal.registry_lock() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF snowflake_ids_internal.registry_is_busy() THEN
        RAISE EXCEPTION 'cannot change the registry in a transaction that has changed segment tags' USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'Until the transaction commits, ids of these tags come from the memory of its session.',
            HINT = 'Commit this transaction, and then repeat the call.';
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'cannot change the registry at isolation level "%"', current_setting('transaction_isolation') USING
            ERRCODE = 'active_sql_transaction',
            DETAIL = 'The transaction''s snapshot does not show ids that were reserved after the snapshot was taken.',
            HINT = 'Use a transaction of isolation level read committed.';
    END IF;
    LOCK TABLE snowflake_ids.registry_server, snowflake_ids.segment, snowflake_ids.received IN SHARE ROW EXCLUSIVE MODE;
END
$$;

/* For each tag of this database, the highest id that was reserved in this database or received from a registry. */
CREATE VIEW snowflake_ids_internal.registry_reached AS
SELECT DISTINCT ON (tag) tag, period, max_id
FROM (SELECT tag, period, max_id FROM snowflake_ids.segment
      UNION ALL SELECT tag, period, max_id FROM snowflake_ids.received) AS k
ORDER BY tag, period DESC NULLS LAST, max_id DESC;

/* Records, for each registry in use, the highest id of a tag that the registries have created or raised for this database.
   use_registry does the same for all tags. If such a registry is later restored from an older backup, the server notices.
   Saved ranges of the tag may be below the recorded id, and are not used any more. */
CREATE FUNCTION snowflake_ids_internal.registry_note(tag text, max_id bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO snowflake_ids.received AS r (identity, tag, max_id)
    SELECT s.identity, registry_note.tag, registry_note.max_id FROM snowflake_ids.registry_server AS s
    ON CONFLICT (identity, tag) DO UPDATE
    SET max_id = CASE WHEN r.period IS NULL THEN greatest(r.max_id, EXCLUDED.max_id) ELSE r.max_id END, version = NULL
$$;

CREATE FUNCTION snowflake_ids.use_registry(VARIADIC servers name[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF coalesce(cardinality(servers), 0) = 0 OR EXISTS (SELECT FROM unnest(servers COLLATE "C") AS s WHERE coalesce(s, '') = '') THEN
        RAISE EXCEPTION 'the name of a registry must not be null or empty' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'A registry is named by its foreign server.',
            HINT = 'To use no registry: SELECT snowflake_ids.use_local_registry().';
    ELSIF (SELECT count(DISTINCT s) <> count(*) FROM unnest(servers COLLATE "C") AS s) THEN
        RAISE EXCEPTION 'registries must differ from each other' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = format('The registries given are: %s.', array_to_string(servers, ', '));
    END IF;
    PERFORM snowflake_ids_internal.registry_use(to_json(servers)::text);
END
$$;
COMMENT ON FUNCTION snowflake_ids.use_registry IS
    'makes this database take worker ids and segments from the registry of a foreign server; if several are given, the first leases worker ids';

CREATE FUNCTION snowflake_ids.use_local_registry() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF NOT snowflake_ids_internal.registry_use_local() THEN
        RAISE NOTICE 'this database is its own registry already';
        RETURN;
    END IF;
    RAISE NOTICE 'segment tags continue above all ids that this database has received' USING
        DETAIL = 'Other servers that use the registry may get the same ids from now on.',
        HINT = 'If they share tables, give the tags one increment and different remainders with snowflake_ids.segment_alter.';
END
$$;
COMMENT ON FUNCTION snowflake_ids.use_local_registry IS 'makes this database its own registry again';

COMMENT ON FUNCTION snowflake_ids.registry_allow IS
    'lets other servers use this database as their registry: creates their role if it is missing, and grants its rights';
COMMENT ON FUNCTION snowflake_ids.registry_join IS
    'makes this database use the registry that a connection string leads to: makes foreign server and user mapping, and calls use_registry';

CREATE FUNCTION snowflake_ids.registry_leave() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids.use_local_registry();
    PERFORM snowflake_ids_internal.registry_forget();
END
$$;
COMMENT ON FUNCTION snowflake_ids.registry_leave IS
    'makes this database its own registry again, and drops foreign server and user mapping that registry_join made';

CREATE VIEW snowflake_ids.registry_status AS
SELECT current_database() AS database, r.position, r.server,
       CASE WHEN h.failures_in_a_row > 0 THEN 'failing' WHEN h.last_answer IS NULL THEN 'unused' ELSE 'up' END AS state,
       r.identity, r.timeline, coalesce(h.calls, 0) AS calls, coalesce(h.failures, 0) AS failures,
       coalesce(h.failures_in_a_row, 0) AS failures_in_a_row, h.last_answer, h.last_duration, h.last_failure, h.error,
       h.retry_at
FROM snowflake_ids.registry_server AS r LEFT JOIN LATERAL snowflake_ids_internal.registry_health(r.position) AS h ON true;
COMMENT ON VIEW snowflake_ids.registry_status IS 'the registries in use, and the results of requests to them since the server started';
