-- Attaching gives a column a default of this extension, in place of a sequence, an identity or no default. Detaching is the
-- reverse.
--
-- ALTER TABLE and similar statements make all changes, so the new default is dumped, restored and upgraded like any other.
-- Row security is never bypassed: a policy that hides rows from these functions causes an error, as with pg_dump.
--
-- The table must belong to the caller, or the caller must be a superuser. A table may contain code of its owner: index
-- expressions, checks, policies, and functions. Therefore:
-- * as_owner reads and changes each table, because partitions and children may have different owners.
-- * The caller's rights are used to change tags and to create sequences, because these steps run no code of the owner.
-- * Checks that were made before a lock was acquired are repeated under the lock, by oid.

CREATE FUNCTION snowflake_ids.attach(relation regclass, "column" name, kind text DEFAULT 'snowflake',
    tag text DEFAULT NULL, sequence text DEFAULT 'redirect', generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    done record;
    failed jsonb;
    unchecked record;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('attach');
    IF relation IS NULL OR "column" IS NULL OR sequence IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'relation, column, kind and sequence must not be null';
    ELSIF sequence COLLATE "C" NOT IN ('redirect', 'keep', 'drop') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unrecognized value for sequence: "%s"', left(sequence, 128)),
            HINT = 'Known values are redirect, keep and drop.';
    END IF;
    PERFORM snowflake_ids_internal.check_kind(kind, tag, generator);
    PERFORM snowflake_ids_internal.sequence_check_redirects() WHERE sequence COLLATE "C" = 'redirect';
    PERFORM snowflake_ids_internal.check_coordinator(relation);
    IF NOT snowflake_ids_internal.is_distributed(relation) THEN
        PERFORM snowflake_ids_internal.attach_here(relation, "column", kind, tag, sequence, generator);
        RETURN;
    END IF;
    -- The tag and the coordinator are changed first, so that no worker repeats an id of the coordinator.
    -- A separate session changes the coordinator, and commits before the workers are changed.
    -- A later failure does not undo this change.
    PERFORM snowflake_ids_internal.check_alone('attach', relation);
    SELECT r.success, r.result INTO done FROM pg_catalog.run_command_on_coordinator(format(
        'SELECT snowflake_ids_internal.attach_in_session(%L, %L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), "column", kind, tag, sequence, generator,
        snowflake_ids_internal.bounded_lock_timeout())) AS r;
    IF done.success IS NOT TRUE THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'could not change the coordinator in a separate session',
            DETAIL = left(coalesce(done.result, 'No answer.'), 1000),
            HINT = 'Correct the cause, and repeat the call; no worker has been changed.';
    ELSIF done.result <> '' THEN
        failed := done.result;
        RAISE EXCEPTION USING
            ERRCODE = failed ->> 'code',
            MESSAGE = failed ->> 'message',
            DETAIL = coalesce(nullif(failed ->> 'detail', ''), format('The coordinator reported this for table "%s".', relation)),
            HINT = coalesce(nullif(failed ->> 'hint', ''), 'Correct the cause, and repeat the call; no worker has been changed.');
    END IF;
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'waiting for other nodes');
    tag := CASE WHEN kind COLLATE "C" = 'segment' THEN coalesce(tag, snowflake_ids_internal.default_tag(relation)) END;
    PERFORM snowflake_ids_internal.citus_run_on_workers(format(
        'SELECT snowflake_ids_internal.attach_worker(%L, %L, %L, %L, %L, %L, %L, %L)',
        snowflake_ids_internal.qualified_name(relation), "column", snowflake_ids_internal.id_default(kind, tag, generator),
        kind, tag, sequence, generator, snowflake_ids_internal.bounded_lock_timeout()));
    PERFORM snowflake_ids_internal.progress_end('attach');
    FOR unchecked IN SELECT * FROM snowflake_ids_internal.citus_keys(relation) LOOP
        RAISE NOTICE USING
            MESSAGE = format('Citus does not check key "%s" of relation "%s" across shards', unchecked.key, relation),
            DETAIL = coalesce(upper(left(unchecked.fault, 1)) || substr(unchecked.fault, 2) || '.',
                'Its ids are unique as long as no statement sets them itself.'),
            HINT = CASE WHEN unchecked.fault IS NULL THEN 'Leave the column out of each INSERT and UPDATE.'
                ELSE upper(left(unchecked.hint, 1)) || substr(unchecked.hint, 2) || '.' END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_ids.attach IS
    'makes a column take ids above its present values, from snowflake_nextval(), snowflake_nextval(generator) or segment_nextval(tag)';

-- Attaches the column on this node, without Citus' DDL propagation. Otherwise Citus would refuse to alter a sequence that it
-- still treats as distributed, although its table is not distributed any more.
CREATE FUNCTION snowflake_ids_internal.attach_here(relation regclass, "column" name, kind text, tag text, sequence text,
    generator text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
DECLARE
    distributed boolean := snowflake_ids_internal.is_distributed(relation);
    known text;
    highest bigint;
    most bigint;
    expression text;
    former text;
    identities jsonb;
    shared regclass;
BEGIN
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'waiting for the table');
    PERFORM snowflake_ids_internal.lock_table(relation);
    shared := snowflake_ids_internal.column_verdict(relation, "column", kind, tag, sequence, generator);
    IF shared IS NOT NULL THEN
        PERFORM snowflake_ids_internal.attach_shared(relation, "column", shared, kind, tag, generator);
        PERFORM snowflake_ids_internal.progress_end('attach');
        RETURN;
    END IF;
    former := snowflake_ids_internal.default_of(relation, "column");
    IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
        -- If the parent was attached first, and one sequence served both tables, the parent's tag is used. Both defaults may
        -- name another role's tag, so the table's owner needs the right to move the tag.
        SELECT t.tag INTO tag
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, snowflake_ids_internal.tag_of_default(former) AS t (tag)
        WHERE i.inhrelid = relation AND snowflake_ids_internal.default_of(i.inhparent, "column") = former COLLATE "C"
            AND snowflake_ids_internal.may_move_tag(c.relowner, t.tag);
    END IF;
    IF kind COLLATE "C" = 'segment' AND tag IS NULL THEN
        tag := snowflake_ids_internal.default_tag(relation);
        PERFORM snowflake_ids_internal.check_unnamed_tag(relation, tag);
        PERFORM snowflake_ids_internal.tell_shared_tag(relation, "column", tag);
    END IF;
    expression := snowflake_ids_internal.id_default(kind, tag, generator);
    identities := snowflake_ids_internal.former_identities(relation, "column");
    -- A node gives ids of the former tag until the node learns of the change. The new tag could give the same ids.
    known := CASE WHEN distributed THEN snowflake_ids_internal.tag_of_default(former) END;
    IF tag <> known COLLATE "C" THEN
        RAISE feature_not_supported USING
            MESSAGE = format('column "%s" of relation "%s" already takes ids of tag "%s"', "column", relation, known),
            DETAIL = 'While nodes change to the new tag one after another, both tags could give the same ids.',
            HINT = format('First SELECT snowflake_ids.detach(%L, %L). Then attach the column to the new tag.', relation, "column");
    END IF;
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'searching for the highest id');
    PERFORM snowflake_ids_internal.resume_sequences(relation, "column");
    highest := snowflake_ids_internal.highest_id(relation, "column");
    PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'changing defaults');
    IF kind COLLATE "C" = 'segment' THEN
        PERFORM snowflake_ids_internal.check_room_above(relation, "column", highest);
    ELSIF expression IS DISTINCT FROM former COLLATE "C" THEN
        PERFORM snowflake_ids_internal.check_snowflake_above(relation, "column", highest, expression);
    END IF;
    PERFORM snowflake_ids_internal.check_workers(relation, "column", kind, generator,
        CASE WHEN expression IS DISTINCT FROM former COLLATE "C" THEN highest END, expression, false) WHERE distributed;
    PERFORM snowflake_ids_internal.tell_replaced_defaults(relation, "column", expression);
    IF distributed THEN
        PERFORM snowflake_ids_internal.unbind_own(relation, "column", NULL);
        -- The tag gives ids as soon as the coordinator is changed.
        -- Other nodes still use their former defaults then, and some of their ids are not stored yet.
        -- The tag begins above these ids if they may be in its range.
        IF highest >= 1::bigint << 48 AND former IS DISTINCT FROM expression COLLATE "C" THEN
            highest := least(9223372036854775807, highest::numeric + (1::bigint
                << CASE snowflake_ids_internal.kind_of_default(former) COLLATE "C" WHEN 'snowflake' THEN 42 ELSE 36 END));
        END IF;
    ELSE
        PERFORM snowflake_ids_internal.unbind_sequences(relation, "column", highest);
    END IF;
    PERFORM snowflake_ids_internal.drop_identities(relation, "column", sequence COLLATE "C" <> 'drop');
    PERFORM snowflake_ids_internal.set_default(relation, "column", 'SET DEFAULT ' || expression);
    -- A registry on another server keeps its change even if this transaction is rolled back. So the tag is raised there after
    -- all steps that may fail here, and before any node gives ids of the tag.
    IF kind COLLATE "C" = 'segment' THEN
        PERFORM snowflake_ids_internal.progress_enter('attach', relation, 'raising the tag');
        SELECT least(snowflake_ids_internal.column_maximum(relation, "column"), min(s.seqmax)) INTO most
        FROM snowflake_ids_internal.sequences_of(relation, "column") o JOIN pg_sequence s ON s.seqrelid = o.sequence
        WHERE attach_here.sequence COLLATE "C" = 'redirect' AND o.owner IS NOT NULL AND s.seqincrement > 0
            -- A sequence that ends at its type's maximum is widened.
            AND s.seqmax <> snowflake_ids_internal.type_maximum(s.seqtypid);
        PERFORM snowflake_ids_internal.seed_tag(tag, highest, most, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = relation));
    END IF;
    IF sequence COLLATE "C" = 'redirect' THEN
        PERFORM snowflake_ids_internal.bind_sequences(relation, "column", kind, tag, generator, identities);
    ELSIF sequence COLLATE "C" = 'drop' THEN
        PERFORM snowflake_ids_internal.drop_sequences(relation, "column");
    END IF;
    PERFORM snowflake_ids_internal.progress_end('attach');
END
$$;

CREATE FUNCTION snowflake_ids.detach(relation regclass, "column" name, kind text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
DECLARE
    distributed boolean;
    expression text;
    identities jsonb;
    highest bigint;
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('detach');
    distributed := snowflake_ids_internal.is_distributed(relation);
    IF relation IS NULL OR "column" IS NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = 'relation and column must not be null';
    ELSIF kind COLLATE "C" NOT IN ('sequence', 'identity', 'none') THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('unrecognized kind "%s"', left(kind, 128)),
            HINT = 'Known kinds are sequence, identity and none.';
    END IF;
    PERFORM snowflake_ids_internal.check_coordinator(relation);
    PERFORM snowflake_ids_internal.check_alone('detach', relation) WHERE distributed;
    PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'waiting for the table');
    PERFORM snowflake_ids_internal.lock_table(relation);
    PERFORM snowflake_ids_internal.check_column(relation, "column", 'segment');
    expression := snowflake_ids_internal.default_of(relation, "column");
    IF snowflake_ids_internal.kind_of_default(expression) IS NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column "%s" of relation "%s" is not attached', "column", relation),
            DETAIL = CASE WHEN expression IS NULL THEN 'It has no default.'
                ELSE format('Its default is %s.', expression) END,
            HINT = coalesce((SELECT format('To unbind the sequence of the column, for all columns that use the sequence: SELECT snowflake_ids.unbind_sequence(%L);',
                    s.sequence) FROM snowflake_ids_internal.sequences_of(relation, "column") s
                WHERE snowflake_ids_internal.sequence_is_bound(s.sequence) LIMIT 1),
                'Detach only columns whose default is snowflake_nextval() or segment_nextval(tag).');
    END IF;
    identities := CASE WHEN distributed THEN '{}' ELSE snowflake_ids_internal.former_identities(relation, "column") END;
    IF kind IS NULL AND identities ? relation::oid::text AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = relation
        AND a.attname = "column" COLLATE "C" AND a.atttypid <> ALL (ARRAY['bigint', 'integer', 'smallint']::regtype[]))
    THEN
        kind := 'sequence';
        RAISE NOTICE USING
            MESSAGE = format('column "%s" of relation "%s" was an identity and gets the default of its sequence', "column", relation),
            DETAIL = 'An identity column must be of type bigint, integer or smallint.';
    END IF;
    kind := coalesce(kind, CASE WHEN identities ? relation::oid::text THEN 'identity' ELSE 'sequence' END);
    IF distributed THEN
        PERFORM snowflake_ids_internal.check_workers(relation, "column", NULL, NULL, NULL, NULL, kind COLLATE "C" = 'identity');
        PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'waiting for other nodes');
        -- Workers first: afterwards no worker takes an id, so the highest id stays the highest.
        PERFORM snowflake_ids_internal.detach_workers(relation, "column", kind, expression);
        highest := coalesce(snowflake_ids_internal.highest_of_group(0, relation, "column", expression), 0);
        PERFORM snowflake_ids_internal.unbind_own(relation, "column", highest);
    ELSE
        PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'searching for the highest id');
        PERFORM snowflake_ids_internal.resume_sequences(relation, "column");
        highest := snowflake_ids_internal.highest_id(relation, "column");
        PERFORM snowflake_ids_internal.unbind_sequences(relation, "column", highest);
    END IF;
    PERFORM snowflake_ids_internal.progress_enter('detach', relation, 'changing defaults');
    IF kind COLLATE "C" = 'none' THEN
        PERFORM snowflake_ids_internal.set_default(relation, "column", 'DROP DEFAULT');
    ELSE
        PERFORM snowflake_ids_internal.check_room_above(relation, "column", highest);
        IF NOT distributed AND highest > 0 AND snowflake_ids_internal.kind_of_default(expression) COLLATE "C" = 'snowflake' THEN
            RAISE NOTICE USING
                MESSAGE = format('column "%s" of relation "%s" continues from its highest id', "column", relation),
                DETAIL = format('The highest id is %s. Snowflake ids that are in the column stay.', highest);
        END IF;
        IF kind COLLATE "C" = 'sequence' THEN
            PERFORM snowflake_ids_internal.restore_sequence(relation, "column", highest);
        ELSE
            PERFORM snowflake_ids_internal.restore_identities(relation, "column", highest, identities);
        END IF;
    END IF;
    PERFORM snowflake_ids_internal.tell_tag_stays(expression);
    PERFORM snowflake_ids_internal.progress_end('detach');
END
$$;
COMMENT ON FUNCTION snowflake_ids.detach IS
    'gives an attached column its former sequence or identity back, or what the argument kind names: sequence, identity or none';
