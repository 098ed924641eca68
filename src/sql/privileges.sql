/* What every role may call: functions that check the caller's rights themselves, and those that only tell. The rest is for
   the extension's owner, a superuser; it may grant it. */
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_ids, snowflake_ids_internal FROM PUBLIC;
GRANT USAGE ON SCHEMA snowflake_ids, snowflake_ids_internal TO PUBLIC;
GRANT EXECUTE ON FUNCTION
    snowflake_ids.status(),
    snowflake_ids.status_history(),
    snowflake_ids.report(),
    snowflake_ids.status_page(),
    snowflake_ids_internal.attention(),
    snowflake_ids_internal.failed_calls(),
    snowflake_ids_internal.launcher_runs(),
    snowflake_ids_internal.layout_parts(text),
    snowflake_ids_internal.page_of(text),
    snowflake_ids_internal.presets(),
    snowflake_ids_internal.tags_by_standing(),
    snowflake_ids.audit(regclass, name, text, text[], text, integer),
    snowflake_ids_internal.is_preloaded(),
    snowflake_ids_internal.check_preloaded(text),
    snowflake_ids.segment_alter(text, bigint, bigint, bigint, bigint, text, bigint, text, text, text),
    snowflake_ids.segment_drop(text),
    snowflake_ids.segment_set(text, numeric, boolean),
    snowflake_ids.segment_raise(text, bigint),
    snowflake_ids.segment_discard(text),
    snowflake_ids.segment_grant(text, text, text),
    snowflake_ids.segment_revoke(text, text, text),
    snowflake_ids.has_segment_privilege(text, text),
    snowflake_ids.series_set(text, bigint, bigint, boolean),
    snowflake_ids.series_set(text, text, bigint, boolean),
    snowflake_ids.series_set(text, uuid, bigint, boolean),
    snowflake_ids.series_alter(text, bigint, text, text, text, text, text, integer, integer),
    snowflake_ids.series_drop(text),
    snowflake_ids.attach(regclass, name, text, text, text, text),
    snowflake_ids.detach(regclass, name, text),
    snowflake_ids.bind_sequence(regclass, text, text, text),
    snowflake_ids.unbind_sequence(regclass),
    snowflake_ids_internal.check_manages_tags(text),
    snowflake_ids.series_attach(regclass, name, text, name),
    snowflake_ids.series_detach(regclass, name),
    snowflake_ids.series_distribute(text, regclass),
    snowflake_ids_internal.series_trigger_of(regclass, name),
    snowflake_ids_internal.series_to_attach(text, oid),
    snowflake_ids_internal.series_raise(text, bigint, bigint),
    snowflake_ids_internal.series_raise(text, text, bigint),
    snowflake_ids_internal.series_raise(text, uuid, bigint),
    snowflake_ids_internal.series_make_trigger(text, oid, text, text),
    snowflake_ids_internal.series_make_shards(text, oid),
    snowflake_ids_internal.as_owner(oid, text),
    snowflake_ids_internal.audit_check(regclass, name),
    snowflake_ids_internal.audit_connect(integer, text, regclass, name),
    snowflake_ids_internal.audit_tag(text),
    snowflake_ids_internal.audit_time(bigint),
    snowflake_ids_internal.base_type(oid),
    snowflake_ids_internal.lock_to_read(oid),
    snowflake_ids_internal.qualified_name(regclass),
    snowflake_ids_internal.read_as_owner(oid, text),
    snowflake_ids_internal.progress_enter(text, oid, text),
    snowflake_ids_internal.progress_end(text),
    snowflake_ids.series_grant(text, text, text),
    snowflake_ids.series_revoke(text, text, text),
    snowflake_ids.has_series_privilege(text, text),
    snowflake_ids_internal.series_check(text, text, text, bigint, bigint, text, text, text, text, integer, integer, integer),
    snowflake_ids_internal.series_check_scope(text, text),
    snowflake_ids_internal.segment_slots(),
    snowflake_ids_internal.segment_counts(),
    snowflake_ids_internal.segment_totals(),
    snowflake_ids_internal.segment_places(),
    snowflake_ids_internal.dense_counts(),
    snowflake_ids_internal.library_version(),
    snowflake_ids_internal.layout_seconds_left(text),
    snowflake_ids_internal.progress_places(),
    snowflake_ids_internal.sequence_stands_at_end(oid),
    snowflake_ids_internal.sequence_nextval(regclass),
    snowflake_ids_internal.sequence_currval(regclass),
    snowflake_ids_internal.sequence_lastval(),
    snowflake_ids_internal.sequence_noted(regclass, bigint),
    snowflake_ids_internal.sequence_setval(regclass, bigint),
    snowflake_ids_internal.sequence_setval(regclass, bigint, boolean),
    snowflake_ids_internal.timeline(),
    snowflake_ids_internal.system_identifier(),
    snowflake_ids_internal.random_number(),
    snowflake_ids_internal.segment_check_tag(text),
    snowflake_ids_internal.generator_check(text, text, integer, integer, text, integer),
    snowflake_ids_internal.generator_unknown(text),
    snowflake_ids.layout_check(text, text),
    snowflake_ids_internal.layout_status(text),
    snowflake_ids_internal.registry_health(integer)
TO PUBLIC;

/* Administration in parts. What each takes stands here, and nowhere else. What attach and detach are made of runs with the
   caller's rights, or with those of a table's owner that the caller could become. */
CREATE FUNCTION snowflake_ids_internal.administration_objects(part text) RETURNS TABLE (object text, privileges text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT o.object, o.privileges
    FROM (VALUES
        (part, 'SCHEMA snowflake_ids, snowflake_ids_internal', 'USAGE'),
        ('tags', 'FUNCTION snowflake_ids.segment_create, snowflake_ids.stats_reset', 'EXECUTE'),
        ('tags', (SELECT 'FUNCTION ' || string_agg('snowflake_ids_internal.' || f, ', ')
            FROM unnest(ARRAY['above_other_nodes', 'attach_coordinator', 'attach_here', 'attach_in_session', 'bounded_lock_timeout', 'check_alone',
                'check_tag_stays', 'in_transaction_block', 'attach_worker', 'attach_workers', 'bind_own', 'check_coordinator', 'check_registered', 'check_worker',
                'check_workers', 'citus_run', 'citus_run_on_workers', 'detach_worker', 'detach_workers', 'discard_received', 'highest_own_id', 'highest_stored',
                'is_distributed', 'node_group', 'numbers_of_group', 'propagate', 'propagate_nothing', 'reached_by_groups', 'registries_in_use',
                'registry_identity', 'unbind_own', 'advance_sequence', 'as_owner', 'base_type', 'bind_sequences', 'column_type', 'former_identities', 'restore_identities', 'sequence_make_fit', 'sequence_make_former', 'sequence_remember', 'set_rights', 'type_maximum', 'check_attach', 'check_column', 'check_detach', 'check_kind', 'check_others_of_sequence',
                'check_room_above', 'check_uses', 'check_unnamed_tag', 'may_move_tag', 'may_take_ids', 'column_maximum', 'check_snowflake_above', 'check_table', 'create_sequence', 'create_sequence_for',
                'call_with', 'default_of', 'default_tag', 'drop_identities', 'drop_sequences', 'free_sequence_name', 'function_of', 'generator_keep',
                'highest_id', 'highest_number', 'highest_of_tag', 'id_default', 'identity_sequence', 'kept_sequence',
                'kind_of_default', 'lock_relation', 'lock_table', 'progress_end', 'progress_enter', 'progress_tables', 'qualified_name', 'restore_identity', 'restore_sequence', 'resume_sequences',
                'seed_tag', 'sequence_bind', 'sequence_check_layout', 'sequence_check_owned', 'sequence_check_redirects', 'sequence_course', 'sequence_erase',
                'sequence_is_bound', 'sequence_move', 'sequence_obstacle', 'sequence_position', 'sequence_put',
                'sequence_reach', 'sequence_record', 'sequence_resume_above', 'sequence_unbind', 'sequences_of', 'set_default',
                'set_sequence', 'table_and_below', 'tag_of_default', 'tell_numbers_go_on', 'tell_replaced_defaults',
                'tell_other_servers', 'tell_shared_tag', 'attach_shared', 'is_default_of', 'others_of_sequence', 'shared_sequence', 'tell_other_of_sequence', 'tell_tables_without_identity', 'tell_tag_stays', 'unbind_sequences']) AS f), 'EXECUTE'),
        ('tags', 'TABLE snowflake_ids.received', 'SELECT'),
        ('tags', 'TABLE snowflake_ids.sequence_binding', 'SELECT'),
        ('tags', 'TABLE snowflake_ids.segment', 'SELECT, INSERT, UPDATE, DELETE'),
        ('tags', 'TABLE snowflake_ids.segment_restricted', 'SELECT, INSERT, UPDATE, DELETE'),
        ('tags', 'TABLE snowflake_ids.segment_privilege', 'SELECT, INSERT, UPDATE, DELETE'),
        ('generators', 'FUNCTION snowflake_ids.generator_create, snowflake_ids.generator_alter, snowflake_ids.generator_drop, '
            'snowflake_ids.layout_change', 'EXECUTE'),
        ('generators', 'FUNCTION snowflake_ids_internal.generator_taken, snowflake_ids_internal.generator_users, '
            'snowflake_ids_internal.generator_check_unused, snowflake_ids_internal.server_layout, '
            'snowflake_ids_internal.layout_change_check, snowflake_ids_internal.layout_change_own', 'EXECUTE'),
        ('generators', 'TABLE snowflake_ids.sequence_binding', 'SELECT'),
        ('generators', 'TABLE snowflake_ids.generator', 'INSERT, UPDATE, DELETE'),
        ('series', 'FUNCTION snowflake_ids.series_create', 'EXECUTE'),
        -- To restore the triggers of a dump.
        ('series', 'FUNCTION snowflake_ids_internal.series_fill', 'EXECUTE'),
        ('series', 'TABLE snowflake_ids.series', 'SELECT, INSERT, UPDATE, DELETE'),
        ('series', 'TABLE snowflake_ids.series_bigint', 'SELECT, INSERT, UPDATE, DELETE'),
        ('series', 'TABLE snowflake_ids.series_text', 'SELECT, INSERT, UPDATE, DELETE'),
        ('series', 'TABLE snowflake_ids.series_uuid', 'SELECT, INSERT, UPDATE, DELETE'),
        ('series', 'TABLE snowflake_ids.series_privilege', 'SELECT, INSERT, UPDATE, DELETE'),
        ('registry', 'FUNCTION snowflake_ids.use_registry', 'EXECUTE'),
        ('registry', 'FUNCTION snowflake_ids.use_local_registry', 'EXECUTE'),
        ('registry', 'FUNCTION snowflake_ids.worker_release, snowflake_ids.worker_release_former', 'EXECUTE'),
        ('registry', 'TABLE snowflake_ids.registry_server', 'SELECT'),
        ('registry', 'TABLE snowflake_ids.received', 'SELECT'),
        ('registry', 'TABLE snowflake_ids.worker_lease', 'SELECT'),
        ('state', 'FUNCTION snowflake_ids.state_reset', 'EXECUTE'),
        ('state', 'FUNCTION snowflake_ids.state_adopt', 'EXECUTE'),
        ('state', 'FUNCTION snowflake_ids.clock_accept', 'EXECUTE')
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
            DETAIL = 'It is for roles that are trusted with it.',
            HINT = 'Name a role.';
    END IF;
    FOR object_name, object_privileges IN SELECT o.object, o.privileges FROM snowflake_ids_internal.administration_objects(part) AS o
        -- The schemas are for each of the parts: they are revoked last, with the last of them.
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
    'has a role administer a part of the extension: tags, generators, series, registry or state';

CREATE FUNCTION snowflake_ids.administration_revoke(part text, role name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.administration_change('REVOKE %1$s ON %2$s FROM %3$I', part, role);
END
$$;
COMMENT ON FUNCTION snowflake_ids.administration_revoke IS
    'takes a part of the administration of the extension away from a role';

REVOKE EXECUTE ON FUNCTION snowflake_ids_internal.administration_objects(text),
    snowflake_ids_internal.administration_change(text, text, name),
    snowflake_ids.administration_grant(text, name), snowflake_ids.administration_revoke(text, name) FROM PUBLIC;

/* The owner of the database manages its tags, generators and series, and can dump and restore it. Which worker ids are leased to whom, and which
   registry counts, concern more than this database: rows of those tables are dumped, and restored by administrators. */
DO $$
BEGIN
    PERFORM snowflake_ids.administration_grant('tags', 'pg_database_owner');
    PERFORM snowflake_ids.administration_grant('generators', 'pg_database_owner');
    PERFORM snowflake_ids.administration_grant('series', 'pg_database_owner');
END
$$;
GRANT SELECT, INSERT ON snowflake_ids.worker_lease, snowflake_ids.registry_server, snowflake_ids.received,
    snowflake_ids.sequence_binding TO pg_database_owner;

/* It tells where nodes are. */
GRANT EXECUTE ON FUNCTION snowflake_ids.citus_status() TO pg_monitor;

COMMENT ON SCHEMA snowflake_ids IS 'administration of ids';
COMMENT ON SCHEMA snowflake_ids_internal IS 'what the functions in schema snowflake_ids are made of; not to be called';

/* Once all is there. */
SELECT snowflake_ids_internal.citus_join();
