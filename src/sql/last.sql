/* The parts of administration, and the only list of the privileges that each part needs. The internal functions of attach and
   detach are listed, because they call each other with the caller's rights, or with the rights of a table owner that the
   caller is a member of. */
CREATE FUNCTION snowflake_ids_internal.administration_objects(part text) RETURNS TABLE (object text, privileges text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT o.object, o.privileges
    FROM (VALUES
        (part, 'SCHEMA snowflake_ids, snowflake_ids_internal', 'USAGE'),
        ('tags', 'FUNCTION snowflake_ids.segment_create, snowflake_ids.stats_reset', 'EXECUTE'),
        ('tags', (SELECT 'FUNCTION ' || string_agg('snowflake_ids_internal.' || f, ', ') FROM regexp_split_to_table(
            'advance_sequence as_owner attach_here attach_in_session attach_worker base_type bounded_lock_timeout call_with
            change_columns check_alone check_column check_coordinator check_kind check_may_commit check_next
            check_registered check_worker check_workers citus_keys citus_run citus_run_on_workers column_maximum
            column_plan column_type columns_attached columns_of_tag columns_of_tags create_sequence create_sequence_for
            default_of default_tag detach_on_node detach_worker detach_workers drop_sequences free_sequence_name
            generator_keep has_workers highest_number highest_of_group highest_of_tag id_default in_transaction_block
            is_adopted_schema is_distributed kept_sequence lock_relation lock_table may_move_tag may_take_ids
            node_group own_default places_of_tags progress_end progress_enter qualified_name registries_in_use
            registry_identity registry_seed restore_sequence schema_steps seed_tag sequence_is_bound sequence_move
            sequence_position sequence_tag_is_shared sequences_of stored_id table_and_below tag_of_default
            tell_not_raised type_maximum', '[[:space:]]+') AS f), 'EXECUTE'),
        ('tags', 'TABLE snowflake_ids.received, snowflake_ids.sequence_binding', 'SELECT'),
        ('tags', 'TABLE snowflake_ids.segment, snowflake_ids.segment_restricted, snowflake_ids.segment_privilege',
            'SELECT, INSERT, UPDATE, DELETE'),
        ('generators', 'FUNCTION snowflake_ids.generator_create, snowflake_ids.generator_alter, snowflake_ids.generator_drop, '
            'snowflake_ids.layout_change', 'EXECUTE'),
        ('generators', 'FUNCTION snowflake_ids_internal.generator_taken, '
            'snowflake_ids_internal.generator_check_unused, snowflake_ids_internal.server_layout, '
            'snowflake_ids_internal.layout_change_check, snowflake_ids_internal.layout_change_own', 'EXECUTE'),
        ('generators', 'TABLE snowflake_ids.sequence_binding', 'SELECT'),
        ('generators', 'TABLE snowflake_ids.generator', 'INSERT, UPDATE, DELETE'),
        -- A role that restores a dump with triggers needs the right to call series_fill.
        ('series', 'FUNCTION snowflake_ids.series_create, snowflake_ids_internal.series_fill', 'EXECUTE'),
        ('series', 'TABLE snowflake_ids.series, snowflake_ids.series_bigint, snowflake_ids.series_text, snowflake_ids.series_uuid, '
            'snowflake_ids.series_privilege', 'SELECT, INSERT, UPDATE, DELETE'),
        ('registry', 'FUNCTION snowflake_ids.use_registry, snowflake_ids.use_local_registry, snowflake_ids.worker_release, '
            'snowflake_ids.worker_release_former', 'EXECUTE'),
        ('registry', 'TABLE snowflake_ids.registry_server, snowflake_ids.received, snowflake_ids.worker_lease', 'SELECT'),
        ('state', 'FUNCTION snowflake_ids.state_reset, snowflake_ids.state_adopt, snowflake_ids.clock_accept', 'EXECUTE')
    ) AS o (of_part, object, privileges)
    WHERE o.of_part = administration_objects.part COLLATE "C";
    IF part IS NULL OR part COLLATE "C" NOT IN ('tags', 'generators', 'series', 'registry', 'state') THEN
        RAISE EXCEPTION 'unrecognized part of the administration: "%"', left(coalesce(part, 'null'), 128) USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'The parts are tags, generators, series, registry and state.';
    END IF;
END
$$;

CREATE FUNCTION snowflake_ids_internal.administration_change(statement text, part text, role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    object_name text;
    object_privileges text;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF snowflake_ids_internal.segment_grantee(role) = 0 THEN
        RAISE EXCEPTION 'cannot grant administration to public' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'Administration can be granted to named roles only.',
            HINT = 'Name a role.';
    END IF;
    FOR object_name, object_privileges IN SELECT o.object, o.privileges FROM snowflake_ids_internal.administration_objects(part) AS o
        -- Every part includes the schemas, so the right to use them is revoked only with the role's last part.
        ORDER BY o.object LIKE 'SCHEMA %'
    LOOP
        CONTINUE WHEN object_name COLLATE "C" LIKE 'SCHEMA %' AND starts_with(statement COLLATE "C", 'REVOKE') AND (
            SELECT bool_or(has_function_privilege(role, f, 'EXECUTE'))
            FROM unnest(ARRAY['snowflake_ids.segment_create', 'snowflake_ids.generator_create', 'snowflake_ids.series_create', 'snowflake_ids.use_registry',
                'snowflake_ids.state_reset']::regproc[]) AS f);
        EXECUTE format(statement, object_privileges, object_name, role);
    END LOOP;
END
$$;

CREATE FUNCTION snowflake_ids.administration_grant(part text, role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.administration_change('GRANT %1$s ON %2$s TO %3$I', part, role);
END
$$;
COMMENT ON FUNCTION snowflake_ids.administration_grant IS
    'lets a role administer a part of the extension: tags, generators, series, registry or state';

CREATE FUNCTION snowflake_ids.administration_revoke(part text, role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.administration_change('REVOKE %1$s ON %2$s FROM %3$I', part, role);
END
$$;
COMMENT ON FUNCTION snowflake_ids.administration_revoke IS 'revokes from a role the right to administer a part of the extension';

/* All roles may read the views, and call functions that check the caller's rights or only show data. Roles that may call
   functions for ids can also see their registries and generators. The extension's owner may grant the other functions. */
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_ids, snowflake_ids_internal FROM PUBLIC;
GRANT USAGE ON SCHEMA snowflake_ids, snowflake_ids_internal TO PUBLIC;
GRANT SELECT ON snowflake_ids.attention, snowflake_ids.generator, snowflake_ids.generator_status, snowflake_ids.metric,
    snowflake_ids.metric_generator, snowflake_ids.metric_node, snowflake_ids.metric_registry,
    snowflake_ids.metric_series, snowflake_ids.metric_server, snowflake_ids.metric_tag, snowflake_ids.progress,
    snowflake_ids.registry_server, snowflake_ids.registry_status, snowflake_ids.segment_status, snowflake_ids.sequence_status,
    snowflake_ids.series_key, snowflake_ids.series_status, snowflake_ids.status, snowflake_ids.status_history,
    snowflake_ids_internal.tag_attention
TO PUBLIC;
GRANT EXECUTE ON FUNCTION
    snowflake_ids.attach, snowflake_ids.attach_plan, snowflake_ids.audit, snowflake_ids.bind_sequence, snowflake_ids.detach,
    snowflake_ids.has_segment_privilege, snowflake_ids.has_series_privilege, snowflake_ids.layout_check, snowflake_ids.raise_all,
    snowflake_ids.report, snowflake_ids.segment_alter, snowflake_ids.segment_discard, snowflake_ids.segment_drop, snowflake_ids.segment_grant,
    snowflake_ids.segment_raise, snowflake_ids.segment_revoke, snowflake_ids.segment_set, snowflake_ids.series_alter,
    snowflake_ids.series_attach, snowflake_ids.series_detach, snowflake_ids.series_distribute, snowflake_ids.series_drop,
    snowflake_ids.series_grant, snowflake_ids.series_revoke, snowflake_ids.series_set(text, bigint, bigint, boolean),
    snowflake_ids.series_set(text, text, bigint, boolean), snowflake_ids.series_set(text, uuid, bigint, boolean),
    snowflake_ids.status, snowflake_ids.status_history, snowflake_ids.status_page, snowflake_ids.unbind_sequence
TO PUBLIC;
GRANT EXECUTE ON FUNCTION
    snowflake_ids_internal.as_owner, snowflake_ids_internal.attach_created, snowflake_ids_internal.attach_like,
    snowflake_ids_internal.attention,
    snowflake_ids_internal.audit_check, snowflake_ids_internal.audit_check_connection, snowflake_ids_internal.audit_connect,
    snowflake_ids_internal.audit_tag, snowflake_ids_internal.audit_time, snowflake_ids_internal.base_type,
    snowflake_ids_internal.check_manages_tags, snowflake_ids_internal.citus_unite, snowflake_ids_internal.copied_at, snowflake_ids_internal.copies_look_alike,
    snowflake_ids_internal.failed_calls, snowflake_ids_internal.generator_check,
    snowflake_ids_internal.generator_unknown, snowflake_ids_internal.is_preloaded, snowflake_ids_internal.is_restored,
    snowflake_ids_internal.launcher_runs,
    snowflake_ids_internal.layout_parts, snowflake_ids_internal.layout_seconds_left, snowflake_ids_internal.layout_status,
    snowflake_ids_internal.library_version, snowflake_ids_internal.lock_to_read, snowflake_ids_internal.page_of,
    snowflake_ids_internal.presets, snowflake_ids_internal.progress_end, snowflake_ids_internal.progress_enter,
    snowflake_ids_internal.progress_slots, snowflake_ids_internal.qualified_name, snowflake_ids_internal.random_number,
    snowflake_ids_internal.read_as_owner, snowflake_ids_internal.registry_health, snowflake_ids_internal.run_as_owner,
    snowflake_ids_internal.safe_id_holders, snowflake_ids_internal.segment_check_tag, snowflake_ids_internal.segment_copied,
    snowflake_ids_internal.segment_promotions,
    snowflake_ids_internal.segment_slots, snowflake_ids_internal.segment_timeline, snowflake_ids_internal.segment_totals, snowflake_ids_internal.sequence_currval,
    snowflake_ids_internal.sequence_lastval, snowflake_ids_internal.sequence_nextval, snowflake_ids_internal.sequence_recorded,
    snowflake_ids_internal.server_remedy,
    snowflake_ids_internal.sequence_setval(regclass, bigint), snowflake_ids_internal.sequence_setval(regclass, bigint, boolean),
    snowflake_ids_internal.sequence_stands_at_end, snowflake_ids_internal.series_check,
    snowflake_ids_internal.series_raise(text, bigint, bigint), snowflake_ids_internal.series_raise(text, text, bigint),
    snowflake_ids_internal.series_raise(text, uuid, bigint), snowflake_ids_internal.system_identifier, snowflake_ids_internal.timeline
TO PUBLIC;

/* The database's owner manages its tags, generators and series, and can dump and restore the database. The leases of worker
   ids and the choice of registries concern other databases, too. The owner can dump the tables of leases and registries, but
   only administrators can restore their rows. */
SELECT snowflake_ids.administration_grant(part, 'pg_database_owner') FROM unnest(ARRAY['tags', 'generators', 'series']) AS part;
GRANT SELECT, INSERT ON snowflake_ids.worker_lease, snowflake_ids.registry_server, snowflake_ids.received,
    snowflake_ids.sequence_binding TO pg_database_owner;

/* citus_status shows the addresses of nodes, so not all roles may call it. */
GRANT EXECUTE ON FUNCTION snowflake_ids.citus_status() TO pg_monitor;

COMMENT ON SCHEMA snowflake_ids IS 'administration of ids';
COMMENT ON SCHEMA snowflake_ids_internal IS 'internal functions of the extension, which may change with every version; not to be called by hand';

/* Comments on functions that are written in Rust, and on columns of views. psql's \df+ and \d+ show them, and docs/reference
   is generated from them. */
COMMENT ON FUNCTION snowflake_ids.segment_alter IS 'changes a segment tag; a null argument changes nothing';
COMMENT ON FUNCTION snowflake_ids.segment_drop IS 'drops a segment tag';
COMMENT ON FUNCTION snowflake_ids.segment_set IS 'moves a segment tag, like setval: the next id is the first above the value';
COMMENT ON FUNCTION snowflake_ids.segment_raise IS 'makes the next ids of a segment tag greater than a value; returns the highest id that counts as issued';
COMMENT ON FUNCTION snowflake_ids.segment_discard IS 'discards the ids of a segment tag that this server has reserved and not handed out';
COMMENT ON FUNCTION snowflake_ids.segment_grant IS 'grants USAGE, SELECT or UPDATE on a segment tag to a role, or to public';
COMMENT ON FUNCTION snowflake_ids.segment_revoke IS 'revokes USAGE, SELECT or UPDATE on a segment tag from a role, or from public';
COMMENT ON FUNCTION snowflake_ids.has_segment_privilege IS 'true if the current role has at least one of the given privileges on a segment tag';
COMMENT ON FUNCTION snowflake_ids.series_attach IS 'makes a series fill a column where it is null in new rows, with the next number of the key in another column';
COMMENT ON FUNCTION snowflake_ids.series_detach IS 'stops a series from filling a column; rows and counters stay';
COMMENT ON FUNCTION snowflake_ids.series_distribute IS 'moves the counters of a gapless series to the shards of a distributed table, beside the rows of each key; for Citus';
COMMENT ON FUNCTION snowflake_nextval() IS 'the next snowflake id';
COMMENT ON FUNCTION snowflake_nextval(text) IS 'the next snowflake id of a named generator';
COMMENT ON FUNCTION snowflake_nextvals(integer) IS 'several snowflake ids, in growing order';
COMMENT ON FUNCTION snowflake_nextvals(integer, text) IS 'several snowflake ids of a named generator, in growing order';
COMMENT ON FUNCTION snowflake_extension_keep() IS 'keeps the extension from being dropped until the transaction ends; for the extension''s own functions';
COMMENT ON FUNCTION snowflake_safe_id() IS 'an id below which the statement sees all rows of this server; null while no such id is known';
COMMENT ON FUNCTION snowflake_safe_time() IS 'a time before which the statement sees all rows with a UUID of this server; null while no such time is known';
COMMENT ON FUNCTION snowflake_lastval() IS 'the last snowflake id that this session got';
COMMENT ON FUNCTION snowflake_uuid() IS 'the next UUID of version 7';
COMMENT ON FUNCTION snowflake_uuid(text) IS 'the next UUID of version 7 of a named generator';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS 'when an id was generated: the beginning of its tick';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS 'the time at which an id of a layout or generator was generated: the beginning of its tick';
COMMENT ON FUNCTION snowflake_timestamp(uuid) IS 'when a UUID of version 7 was generated, to the millisecond';
COMMENT ON FUNCTION snowflake_timestamp(text) IS 'when an id or a UUID was generated';
COMMENT ON FUNCTION snowflake_datacenter_id(bigint) IS 'the datacenter that an id was generated in';
COMMENT ON FUNCTION snowflake_datacenter_id(bigint, text) IS 'the datacenter that an id of a layout or generator was generated in';
COMMENT ON FUNCTION snowflake_datacenter_id(uuid) IS 'the datacenter that a UUID was generated in';
COMMENT ON FUNCTION snowflake_datacenter_id(uuid, text) IS 'the datacenter that a UUID of a layout or generator was generated in';
COMMENT ON FUNCTION snowflake_datacenter_id(text) IS 'the datacenter that an id or a UUID was generated in';
COMMENT ON FUNCTION snowflake_datacenter_id(text, text) IS 'the datacenter that an id or a UUID of a layout or generator was generated in';
COMMENT ON FUNCTION snowflake_worker_id(bigint) IS 'the worker that generated an id';
COMMENT ON FUNCTION snowflake_worker_id(bigint, text) IS 'the worker that generated an id of a layout or generator';
COMMENT ON FUNCTION snowflake_worker_id(uuid) IS 'the worker that generated a UUID';
COMMENT ON FUNCTION snowflake_worker_id(uuid, text) IS 'the worker that generated a UUID of a layout or generator';
COMMENT ON FUNCTION snowflake_worker_id(text) IS 'the worker that generated an id or a UUID';
COMMENT ON FUNCTION snowflake_worker_id(text, text) IS 'the worker that generated an id or a UUID of a layout or generator';
COMMENT ON FUNCTION snowflake_sequence(bigint) IS 'the number of an id within its tick';
COMMENT ON FUNCTION snowflake_sequence(bigint, text) IS 'the number of an id of a layout or generator within its tick';
COMMENT ON FUNCTION snowflake_decode(bigint) IS 'all parts of an id, as a row';
COMMENT ON FUNCTION snowflake_decode(bigint, text) IS 'all parts of an id of a layout or generator, as a row';
COMMENT ON FUNCTION snowflake_decode_json(bigint) IS 'all parts of an id, as JSON';
COMMENT ON FUNCTION snowflake_decode_json(bigint, text) IS 'all parts of an id of a layout or generator, as JSON';
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS 'the smallest id of the tick that an instant lies in';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text) IS 'the smallest id of a layout or generator in the tick that an instant lies in';
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS 'the largest id of the tick that an instant lies in';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text) IS 'the largest id of a layout or generator in the tick that an instant lies in';
COMMENT ON FUNCTION snowflake_interval(interval) IS 'the difference between two ids whose times are an interval apart';
COMMENT ON FUNCTION snowflake_interval(interval, text) IS 'the difference between two ids of a layout or generator whose times are an interval apart';
COMMENT ON FUNCTION snowflake_min_uuid(timestamptz) IS 'the smallest UUID of version 7 in the millisecond that an instant lies in';
COMMENT ON FUNCTION snowflake_compose(timestamptz, integer, integer, integer) IS 'an id made from the given parts';
COMMENT ON FUNCTION snowflake_compose(timestamptz, integer, integer, integer, text, integer) IS 'an id of a layout or generator, made from the given parts';
COMMENT ON FUNCTION snowflake_encode(bigint, text, boolean) IS
    'an id as text in base62, base58, base36, crockford32 or hex; with a fixed width, texts sort under collation "C" like ids';
COMMENT ON FUNCTION snowflake_decode_text(text, text) IS 'the id that a text encodes';
COMMENT ON FUNCTION snowflake_try_decode_text(text, text) IS 'the id that a text encodes; null if the text encodes no id';
COMMENT ON FUNCTION snowflake_encode(bigint, text, text, boolean) IS 'an id as text after a prefix and an underscore';
COMMENT ON FUNCTION snowflake_decode_text(text, text, text) IS 'the id in a text with a prefix';
COMMENT ON FUNCTION snowflake_try_decode_text(text, text, text) IS 'the id in a text with a prefix; null if the text contains no id';
COMMENT ON FUNCTION segment_nextval(text) IS 'the next number of a segment tag';
COMMENT ON FUNCTION segment_nextvals(text, integer) IS 'several numbers of a segment tag, in growing order';
COMMENT ON FUNCTION segment_nextval_text(text) IS 'the next number of a segment tag, in the format of the tag';
COMMENT ON FUNCTION segment_currval(text) IS 'the last number of a segment tag that this session got';
COMMENT ON FUNCTION series_nextval(text, bigint) IS 'the next number of a key of a series';
COMMENT ON FUNCTION series_nextval(text, text) IS 'the next number of a key of a series';
COMMENT ON FUNCTION series_nextval(text, uuid) IS 'the next number of a key of a series';
COMMENT ON FUNCTION series_nextval_text(text, bigint) IS 'the next number of a key of a series, in the format of the series';
COMMENT ON FUNCTION series_nextval_text(text, text) IS 'the next number of a key of a series, in the format of the series';
COMMENT ON FUNCTION series_nextval_text(text, uuid) IS 'the next number of a key of a series, in the format of the series';
COMMENT ON FUNCTION series_currval(text, bigint) IS 'the last number of a key that this session got';
COMMENT ON FUNCTION series_currval(text, text) IS 'the last number of a key that this session got';
COMMENT ON FUNCTION series_currval(text, uuid) IS 'the last number of a key that this session got';

COMMENT ON FUNCTION snowflake_ids.status() IS 'the row of the view snowflake_ids.status';
COMMENT ON FUNCTION snowflake_ids.state_reset(timestamptz) IS
    'starts a new state file; new ids are above all ids known to be issued, or above an instant';
COMMENT ON FUNCTION snowflake_ids.state_adopt() IS
    'keeps the worker id in a copied data directory, because the original is gone for good';
COMMENT ON FUNCTION snowflake_ids.clock_accept() IS 'makes the server follow a clock that has jumped ahead';
COMMENT ON FUNCTION snowflake_ids.layout_check(text, text) IS
    'whether a generator or this server can change to a layout, and the time from which the new ids are above the old ids';
COMMENT ON FUNCTION snowflake_ids.series_set(text, bigint, bigint, boolean) IS 'sets the last number of a key, like setval: the next number is above the value';
COMMENT ON FUNCTION snowflake_ids.series_set(text, text, bigint, boolean) IS 'sets the last number of a key, like setval: the next number is above the value';
COMMENT ON FUNCTION snowflake_ids.series_set(text, uuid, bigint, boolean) IS 'sets the last number of a key, like setval: the next number is above the value';
COMMENT ON FUNCTION snowflake_ids.series_alter IS 'changes a series; a null argument changes nothing';
COMMENT ON FUNCTION snowflake_ids.series_drop IS 'drops a series and its keys; the series must not be used by a column';
COMMENT ON FUNCTION snowflake_ids.series_grant IS 'grants USAGE, SELECT or UPDATE on a series to a role, or to public';
COMMENT ON FUNCTION snowflake_ids.series_revoke IS 'revokes USAGE, SELECT or UPDATE on a series from a role, or from public';
COMMENT ON FUNCTION snowflake_ids.has_series_privilege IS 'true if the current role has at least one of the given privileges on a series';
COMMENT ON FUNCTION snowflake_ids.stats_reset IS
    'resets the counters of a segment tag of this database, or the counters of all its tags and registries';
COMMENT ON FUNCTION snowflake_ids.registry_serve(text) IS 'answers a server that uses this registry; not to be called by hand';
COMMENT ON FUNCTION snowflake_ids.registry_take_over(text) IS
    'answers the administrator of a server that hands its tags over to this registry; not to be called by hand';

COMMENT ON COLUMN snowflake_ids.status.datacenter_id IS 'the datacenter of this server';
COMMENT ON COLUMN snowflake_ids.status.worker_id IS 'the worker id of this server; null while none is leased';
COMMENT ON COLUMN snowflake_ids.status.layout IS 'the layout of the ids';
COMMENT ON COLUMN snowflake_ids.status.epoch IS 'the instant from which the layout counts';
COMMENT ON COLUMN snowflake_ids.status.last_id IS 'the last id taken; null if none was taken since the server started';
COMMENT ON COLUMN snowflake_ids.status.last_timestamp IS 'the time of the last id taken';
COMMENT ON COLUMN snowflake_ids.status.drift IS 'the time by which last_timestamp is ahead of the clock';
COMMENT ON COLUMN snowflake_ids.status.ids_issued IS 'the number of ids that sessions took since the server started';
COMMENT ON COLUMN snowflake_ids.status.full_ticks IS 'the number of ticks whose sequence was used up';
COMMENT ON COLUMN snowflake_ids.status.steps_back IS 'the number of backward steps of the clock that calls noticed';
COMMENT ON COLUMN snowflake_ids.status.largest_step_back IS 'the largest backward step of the clock';
COMMENT ON COLUMN snowflake_ids.status.years_left IS 'years until the last tick of the layout';
COMMENT ON COLUMN snowflake_ids.status.rollback IS 'the value of the rollback bits of the layout; null while no worker id is leased';
COMMENT ON COLUMN snowflake_ids.status.high_water_mark IS 'the time up to which ids are reserved in the state file';
COMMENT ON COLUMN snowflake_ids.status.reservations IS 'the number of writes of the state file';
COMMENT ON COLUMN snowflake_ids.status.reserved_by_callers IS 'the number of writes of the state file that a call had to do itself';
COMMENT ON COLUMN snowflake_ids.status.steps_forward IS 'the number of forward steps of the clock, of a second or more, that ids followed';
COMMENT ON COLUMN snowflake_ids.status.clock_ahead IS 'how far the clock is ahead of the time that ids follow';
COMMENT ON COLUMN snowflake_ids.status.switches IS 'the number of changes to another rollback value or worker id, because the clock was set back';
COMMENT ON COLUMN snowflake_ids.status.scope IS 'the servers among which the worker id is unique: configured, shared registry, or this server only';
COMMENT ON COLUMN snowflake_ids.status.lease_expires_at IS 'the end of the lease of the worker id; null without a lease';
COMMENT ON COLUMN snowflake_ids.status.leased_from IS 'the database or foreign server that the worker id is leased from; null without a lease';
COMMENT ON COLUMN snowflake_ids.status.state IS 'ready, idle, in recovery, or the reason why no ids are issued';

COMMENT ON COLUMN snowflake_ids.generator_status.name IS 'the name of the generator';
COMMENT ON COLUMN snowflake_ids.generator_status.layout IS 'the layout of its ids';
COMMENT ON COLUMN snowflake_ids.generator_status.modulus IS 'the number of shards, if the generator makes ids of one shard';
COMMENT ON COLUMN snowflake_ids.generator_status.remainder IS 'the shard, if the generator makes ids of one shard';
COMMENT ON COLUMN snowflake_ids.generator_status.shard IS 'remainder/modulus, from the row of the generator or from the setting snowflake_ids.shard';
COMMENT ON COLUMN snowflake_ids.generator_status.sequence_start IS 'where the sequence of a fresh tick starts; null: the setting snowflake_ids.sequence_start decides';
COMMENT ON COLUMN snowflake_ids.generator_status.cache IS 'the number of ids that a session takes at once; null: the setting snowflake_ids.cache decides';
COMMENT ON COLUMN snowflake_ids.generator_status.slot IS 'the slot of its layout in shared memory; null for the layout of the server, and while it uses no slot';
COMMENT ON COLUMN snowflake_ids.generator_status.last_id IS 'the last id taken in its layout';
COMMENT ON COLUMN snowflake_ids.generator_status.last_timestamp IS 'the time of the last id taken in its layout';
COMMENT ON COLUMN snowflake_ids.generator_status.high_water_mark IS 'the time up to which ids of its layout are reserved';
COMMENT ON COLUMN snowflake_ids.generator_status.drift IS 'the time by which last_timestamp is ahead of the clock';
COMMENT ON COLUMN snowflake_ids.generator_status.years_left IS 'years until the last tick of its layout';
COMMENT ON COLUMN snowflake_ids.generator_status.fits IS 'true if the worker id and the datacenter of this server fit its layout';
COMMENT ON COLUMN snowflake_ids.generator_status.state IS 'ready, idle, in recovery, or the reason why no ids are issued';

COMMENT ON COLUMN snowflake_ids.segment_status.database IS 'the database of the tag';
COMMENT ON COLUMN snowflake_ids.segment_status.tag IS 'the tag';
COMMENT ON COLUMN snowflake_ids.segment_status.current_first IS 'the first id of the segment in use; null while the tag has no segment in shared memory';
COMMENT ON COLUMN snowflake_ids.segment_status.current_last IS 'the last id of the segment in use';
COMMENT ON COLUMN snowflake_ids.segment_status.current_next IS 'the next id of the segment in use; null when it is used up';
COMMENT ON COLUMN snowflake_ids.segment_status.next_first IS 'the first id of the next segment; null before that segment is fetched';
COMMENT ON COLUMN snowflake_ids.segment_status.next_last IS 'the last id of the next segment; null before that segment is fetched';
COMMENT ON COLUMN snowflake_ids.segment_status.used IS 'the used share of the segment in use, 0 to 1';
COMMENT ON COLUMN snowflake_ids.segment_status.step IS 'the number of ids in the next segment; this number follows demand';
COMMENT ON COLUMN snowflake_ids.segment_status.ids_issued IS 'the number of ids handed out from the buffers';
COMMENT ON COLUMN snowflake_ids.segment_status.refills IS 'the number of segments fetched';
COMMENT ON COLUMN snowflake_ids.segment_status.last_refill IS 'the duration of the last refill';
COMMENT ON COLUMN snowflake_ids.segment_status.waits IS 'the number of calls that found no ids, and waited';
COMMENT ON COLUMN snowflake_ids.segment_status.longest_wait IS 'the longest time that a call waited';
COMMENT ON COLUMN snowflake_ids.segment_status.failing_since IS 'the time since which refills fail, or no id of the tag is left';
COMMENT ON COLUMN snowflake_ids.segment_status.remedy IS 'what to do against the trouble of a tag of this database';
COMMENT ON COLUMN snowflake_ids.segment_status.exhausted_at IS 'the time at which the tag''s ids will be used up, at the rate of the last hour';
COMMENT ON COLUMN snowflake_ids.segment_status.trouble IS 'the reason why refills fail now; null if they succeed';

COMMENT ON COLUMN snowflake_ids.series_status.name IS 'the name of the series';
COMMENT ON COLUMN snowflake_ids.series_status.kind IS 'gapless or monotonic';
COMMENT ON COLUMN snowflake_ids.series_status.key_type IS 'the type of its keys';
COMMENT ON COLUMN snowflake_ids.series_status.all_keys_counted IS 'true if the column keys counts all keys';
COMMENT ON COLUMN snowflake_ids.series_status.start IS 'the first number of each key';
COMMENT ON COLUMN snowflake_ids.series_status.max_value IS 'the highest number of each key';
COMMENT ON COLUMN snowflake_ids.series_status.reset IS 'the period after which numbers begin anew: day, month or year; null: never';
COMMENT ON COLUMN snowflake_ids.series_status.time_zone IS 'the time zone in which days begin';
COMMENT ON COLUMN snowflake_ids.series_status.format IS 'the format of numbers that series_nextval_text returns';
COMMENT ON COLUMN snowflake_ids.series_status.restricted IS 'true if only roles with privileges may use it';
COMMENT ON COLUMN snowflake_ids.series_status.description IS 'the description of the series';
COMMENT ON COLUMN snowflake_ids.series_status.step IS 'the size of the first reservation, in numbers; null if the kind reserves none';
COMMENT ON COLUMN snowflake_ids.series_status.max_step IS 'the size of the largest reservation, in numbers; null if the kind reserves none';
COMMENT ON COLUMN snowflake_ids.series_status.sections IS 'the number of sections that the keys are divided into; null if the kind has none';
COMMENT ON COLUMN snowflake_ids.series_key.series IS 'the name of the series';
COMMENT ON COLUMN snowflake_ids.series_key.key IS 'the key, as text';
COMMENT ON COLUMN snowflake_ids.series_key.period IS 'the first day of the period of last_value; null if numbers never begin anew';
COMMENT ON COLUMN snowflake_ids.series_key.key_bigint IS 'the key, if keys are bigint: a condition on this column uses the index';
COMMENT ON COLUMN snowflake_ids.series_key.key_text IS 'the key, if keys are text: a condition on this column uses the index';
COMMENT ON COLUMN snowflake_ids.series_key.key_uuid IS 'the key, if keys are uuid: a condition on this column uses the index';

COMMENT ON COLUMN snowflake_ids.sequence_status.sequence IS 'the bound sequence';
COMMENT ON COLUMN snowflake_ids.sequence_status.kind IS 'the kind of its ids, snowflake or segment; unreadable if its row is not valid, so that the sequence gives no ids';
COMMENT ON COLUMN snowflake_ids.sequence_status.tag IS 'the segment tag whose ids the sequence gives; null if it gives snowflake ids';
COMMENT ON COLUMN snowflake_ids.sequence_status.increment IS 'INCREMENT BY of the sequence';
COMMENT ON COLUMN snowflake_ids.sequence_status.owner IS 'the table whose column owns it';
COMMENT ON COLUMN snowflake_ids.sequence_status.owner_column IS 'the column that owns it';
COMMENT ON COLUMN snowflake_ids.sequence_status.last_number IS 'the highest number that the sequence gave before it was bound';
COMMENT ON COLUMN snowflake_ids.sequence_status.bound_at IS 'the time at which the sequence was bound';
COMMENT ON COLUMN snowflake_ids.sequence_status.generator IS 'the named generator whose ids the sequence gives, if any';
COMMENT ON COLUMN snowflake_ids.sequence_status.last_id IS 'the highest id of the tag that may have been given; null for snowflake ids, and if a registry keeps the tag';

COMMENT ON COLUMN snowflake_ids.registry_status.database IS 'the database that uses the registry';
COMMENT ON COLUMN snowflake_ids.registry_status.position IS 'the position of the registry in the list of that database';
COMMENT ON COLUMN snowflake_ids.registry_status.server IS 'the foreign server';
COMMENT ON COLUMN snowflake_ids.registry_status.state IS 'unused (not asked yet), up or failing';
COMMENT ON COLUMN snowflake_ids.registry_status.identity IS 'the cluster, database and extension that distinguish the registry from others';
COMMENT ON COLUMN snowflake_ids.registry_status.timeline IS 'the latest timeline on which the registry was seen';
COMMENT ON COLUMN snowflake_ids.registry_status.calls IS 'the number of requests to the registry since the server started';
COMMENT ON COLUMN snowflake_ids.registry_status.failures IS 'the number of these requests that got no answer';
COMMENT ON COLUMN snowflake_ids.registry_status.failures_in_a_row IS 'the number of requests without an answer since the last answer';
COMMENT ON COLUMN snowflake_ids.registry_status.last_answer IS 'the time of its last answer';
COMMENT ON COLUMN snowflake_ids.registry_status.last_duration IS 'the duration of the last request that was answered';
COMMENT ON COLUMN snowflake_ids.registry_status.last_failure IS 'the time of its last failure';
COMMENT ON COLUMN snowflake_ids.registry_status.error IS 'the reason why the registry fails, or the fault of a tag on the registry';
COMMENT ON COLUMN snowflake_ids.registry_status.retry_at IS 'the time of the next attempt';
COMMENT ON FUNCTION snowflake_ids.status_history() IS 'the activity of this server in the last hour, one row for each sample';
COMMENT ON COLUMN snowflake_ids.segment_status.remaining_ids IS 'the number of ids that the tag has left up to its max_value';
COMMENT ON COLUMN snowflake_ids.segment_status.refill_time IS 'the total duration of the tag''s refills';
COMMENT ON COLUMN snowflake_ids.segment_status.wait_time IS 'the total time that calls waited for ids of the tag';
COMMENT ON COLUMN snowflake_ids.segment_status.stats_reset IS 'the time at which the counts of the tag began';
COMMENT ON COLUMN snowflake_ids.segment_status.standing IS
    'the worst first: without ids, refills fail, ends soon (in 30 days), waits for a refill, ends this year, fine, idle';
COMMENT ON COLUMN snowflake_ids.attention.severity IS 'alarm, warning or note';
COMMENT ON COLUMN snowflake_ids.attention.subject IS 'server, clock, worker id or launcher, or the name of a registry, tag or generator';
COMMENT ON COLUMN snowflake_ids.attention.problem IS 'the problem';
COMMENT ON COLUMN snowflake_ids.attention.action IS 'the remedy, and the section of the documentation that explains it';
COMMENT ON COLUMN snowflake_ids.attention.since IS 'the beginning of the problem, if it is known';
COMMENT ON COLUMN snowflake_ids.progress.pid IS 'the process of the call';
COMMENT ON COLUMN snowflake_ids.progress.datid IS 'the oid of the database of the call';
COMMENT ON COLUMN snowflake_ids.progress.datname IS 'the name of the database of the call';
COMMENT ON COLUMN snowflake_ids.progress.relid IS 'the oid of the table of the call';
COMMENT ON COLUMN snowflake_ids.progress.command IS 'the function that runs';
COMMENT ON COLUMN snowflake_ids.progress.phase IS 'the present phase of the call';
COMMENT ON COLUMN snowflake_ids.progress.tables_done IS 'the number of tables, or partitions, that are done';
COMMENT ON COLUMN snowflake_ids.progress.tables_total IS 'the number of all tables, or partitions';
COMMENT ON COLUMN snowflake_ids.progress.started_at IS 'the time at which the call began';
COMMENT ON COLUMN snowflake_ids.metric_node.layout IS 'the layout of the ids of the server';
COMMENT ON COLUMN snowflake_ids.metric_node.datacenter_id IS 'the datacenter of the server';
COMMENT ON COLUMN snowflake_ids.metric_node.worker_id IS 'the worker id of the server';
COMMENT ON COLUMN snowflake_ids.metric_node.rollback IS 'the rollback value of the server';
COMMENT ON COLUMN snowflake_ids.metric_node.scope IS 'where the worker id comes from';
COMMENT ON COLUMN snowflake_ids.status_history.sampled_at IS 'the time of the later of two readings';
COMMENT ON COLUMN snowflake_ids.status_history.elapsed IS 'the time between the readings, by a clock that cannot be stepped';
COMMENT ON COLUMN snowflake_ids.status_history.ids_per_second IS 'snowflake ids per second';
COMMENT ON COLUMN snowflake_ids.status_history.segment_ids_per_second IS 'ids of segment tags per second, in all databases';
COMMENT ON COLUMN snowflake_ids.status_history.drift IS 'the time by which the last id was ahead of the clock at the later reading';
COMMENT ON COLUMN snowflake_ids.status_history.waits IS 'the number of calls that found the buffers of a tag used up, in all databases';
COMMENT ON COLUMN snowflake_ids.status_history.refills IS 'the number of segments fetched, in all databases';
COMMENT ON COLUMN snowflake_ids.status_history.steps_back IS 'the number of backward steps of the clock';
COMMENT ON COLUMN snowflake_ids.status_history.steps_forward IS 'the number of forward steps of the clock';
COMMENT ON COLUMN snowflake_ids.status_history.clock_ahead IS 'the time by which the clock was ahead of the time that ids followed';

/* Called after all objects exist. */
SELECT snowflake_ids_internal.citus_join();
