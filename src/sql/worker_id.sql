/* The leases of worker ids. Each change first locks the row, and checks that the row has not changed since it was read, or
   that the row has the holder's lease token. */
CREATE TABLE snowflake_ids.worker_lease (
    datacenter_id     integer     NOT NULL CHECK (datacenter_id >= 0),
    worker_id         integer     NOT NULL CHECK (worker_id >= 0),
    system_identifier bigint,
    timeline          integer,
    host              text,
    port              integer,
    data_directory    text,
    token             bigint,
    expires_at        timestamptz NOT NULL CHECK (expires_at > '1970-01-01 00:00+00' AND expires_at < '9999-01-01 00:00+00'),
    clock             timestamptz,
    last_time         timestamptz,
    leased_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    renewed_at        timestamptz,
    released_at       timestamptz,
    layout            text,
    former_until      timestamptz,
    PRIMARY KEY (datacenter_id, worker_id)
);
COMMENT ON TABLE snowflake_ids.worker_lease IS 'the worker ids that this registry has leased, and their holders';
COMMENT ON COLUMN snowflake_ids.worker_lease.system_identifier IS 'the holder''s cluster, as pg_control_system() shows it';
COMMENT ON COLUMN snowflake_ids.worker_lease.token IS
    'a random number by which the holder recognises its lease; it changes with each renewal, and is null after a release';
COMMENT ON COLUMN snowflake_ids.worker_lease.expires_at IS
    'the end of the lease: the holder issues ids only before this instant, the next holder only from this instant on';
COMMENT ON COLUMN snowflake_ids.worker_lease.clock IS 'the holder''s clock at the last renewal';
COMMENT ON COLUMN snowflake_ids.worker_lease.last_time IS 'the time in the holder''s ids at the last renewal';
COMMENT ON COLUMN snowflake_ids.worker_lease.former_until IS
    'set if the lease comes from a former registry that this one replaced; other leases of the former registry may last until this time';
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.worker_lease', '');

/* Worker ids that servers without a registry have chosen. The choice is also in the state file; a standby that is promoted
   without a copy of that file reads the choice from this table. */
CREATE TABLE snowflake_ids.worker_chosen (
    datacenter_id     integer     NOT NULL,
    worker_id         integer     NOT NULL,
    system_identifier bigint      NOT NULL,
    timeline          integer     NOT NULL,
    home              text        NOT NULL,
    chosen_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (system_identifier, datacenter_id, worker_id)
);
COMMENT ON TABLE snowflake_ids.worker_chosen IS 'the first worker id that this server chose, if it had no registry when the extension was created';
COMMENT ON COLUMN snowflake_ids.worker_chosen.system_identifier IS 'the cluster, as pg_control_system() shows it';
COMMENT ON COLUMN snowflake_ids.worker_chosen.home IS 'the creation time of the data directory, which differs in each copy';
SELECT snowflake_ids_internal.worker_note_chosen();

CREATE FUNCTION snowflake_ids.worker_release(
    worker_id      integer,
    datacenter_id  integer DEFAULT NULL,
    holder_is_down boolean DEFAULT false
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    datacenter integer;
    seen       record;
    free_from  timestamptz;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.worker_check_registry();
    IF worker_id IS NULL THEN
        RAISE EXCEPTION 'worker_id must not be null' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'It says which worker id to give up.';
    END IF;
    datacenter := coalesce(datacenter_id, nullif(current_setting('snowflake_ids.datacenter_id')::integer, -1),
        (snowflake_ids_internal.worker_held()::json ->> 'datacenter_id')::integer, 0);
    SELECT w.* INTO seen FROM snowflake_ids.worker_lease AS w
    WHERE w.datacenter_id = datacenter AND w.worker_id = worker_release.worker_id FOR UPDATE;
    IF NOT FOUND AND snowflake_ids_internal.worker_choose_another(datacenter, worker_id) THEN
        RETURN;
    ELSIF NOT FOUND THEN
        RAISE EXCEPTION 'worker id % of datacenter % is not leased', worker_id, datacenter USING
            ERRCODE = 'undefined_object',
            DETAIL = 'There is no row for this worker id in snowflake_ids.worker_lease.',
            HINT = 'To release a worker id of another datacenter, SELECT snowflake_ids.worker_release(worker_id, datacenter_id).';
    END IF;
    -- This server's own lease ends at once. Another holder may still be running: it keeps its lease until the expiry time, but
    -- cannot renew it.
    free_from := snowflake_ids_internal.worker_give_up(datacenter, worker_id, seen.token);
    IF free_from IS NULL AND holder_is_down THEN
        free_from := greatest(clock_timestamp(), seen.last_time, seen.renewed_at) + current_setting('snowflake_ids.max_drift')::interval
                     + current_setting('snowflake_ids.max_clock_skew')::interval;
    END IF;
    UPDATE snowflake_ids.worker_lease AS w
    SET token = NULL, expires_at = least(w.expires_at, free_from),
        released_at = coalesce(w.released_at, clock_timestamp())
    WHERE w.datacenter_id = datacenter AND w.worker_id = worker_release.worker_id;
END
$$;
CREATE FUNCTION snowflake_ids.worker_release_former() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.worker_check_registry();
    UPDATE snowflake_ids.worker_lease AS w SET former_until = clock_timestamp() WHERE w.former_until > clock_timestamp();
END
$$;
COMMENT ON FUNCTION snowflake_ids.worker_release_former IS
    'declares that no server issues ids under a lease that a former registry granted and this registry does not know';

COMMENT ON FUNCTION snowflake_ids.worker_release IS 'releases a leased worker id; holder_is_down declares that its holder is gone for good';
