/* Bound sequences, whose numbers are ids of this extension. Calls of nextval and similar functions are redirected to the
   functions below. The sequence itself is kept at its end, the sentinel, so that a call that is not redirected fails. */
CREATE TABLE snowflake_ids.sequence_binding (
    sequence    regclass PRIMARY KEY,
    tag         text COLLATE "C",
    last_number bigint NOT NULL,
    bound_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    generator   text COLLATE "C",
    checked     boolean NOT NULL DEFAULT false,
    single      boolean NOT NULL DEFAULT false,
    type        regtype,
    cycles      boolean,
    unlogged    boolean,
    identity    "char"
);
COMMENT ON TABLE snowflake_ids.sequence_binding IS 'sequences that give ids of snowflake_ids, as bound by snowflake_ids.bind_sequence';
COMMENT ON COLUMN snowflake_ids.sequence_binding.tag IS 'the segment tag whose ids the sequence gives; null if it gives snowflake ids';
COMMENT ON COLUMN snowflake_ids.sequence_binding.generator IS 'the named generator whose ids the sequence gives, if any';
COMMENT ON COLUMN snowflake_ids.sequence_binding.last_number IS 'the highest number that the sequence gave before it was bound';
COMMENT ON COLUMN snowflake_ids.sequence_binding.checked IS
    'true if the sequence was seen at its maximum, where a bound sequence is kept; if false, it counts as bound only while it is at its maximum';
COMMENT ON COLUMN snowflake_ids.sequence_binding.single IS
    'true if a number stands for one id of the tag, which has the increment of the sequence; if false, for as many consecutive ids';
COMMENT ON COLUMN snowflake_ids.sequence_binding.type IS 'the type before the binding, which unbinding restores; null: the type of its column';
COMMENT ON COLUMN snowflake_ids.sequence_binding.cycles IS 'true if the sequence had CYCLE before the binding; unbinding restores this';
COMMENT ON COLUMN snowflake_ids.sequence_binding.unlogged IS 'true if the sequence was unlogged before the binding; unbinding restores this';
COMMENT ON COLUMN snowflake_ids.sequence_binding.identity IS
    'a (ALWAYS) or d (BY DEFAULT) if its column was an identity; detach makes the column an identity again';
/* Leaves the bindings of dropped sequences out of dumps, because the oids may belong to other relations after a restore. */
SELECT pg_catalog.pg_extension_config_dump('snowflake_ids.sequence_binding',
    'WHERE EXISTS (SELECT FROM pg_catalog.pg_sequence AS s WHERE s.seqrelid OPERATOR(pg_catalog.=) sequence)');

CREATE TRIGGER sequence_binding_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_ids.sequence_binding
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_ids_internal.sequence_binding_changed();

/* Only the database's owner may write to the table by hand, to restore a dump. The sequences must belong to the owner, or to
   a role that the owner is a member of. A dump may set sequences to their end before or after it loads this table. */
CREATE FUNCTION snowflake_ids_internal.sequence_binding_check() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT pg_has_role(coalesce((SELECT c.relowner FROM pg_class AS c WHERE c.oid = NEW.sequence AND c.relkind = 'S'),
            (SELECT c.relowner FROM pg_class AS c WHERE c.oid = TG_RELID)), 'MEMBER') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of sequence %s', NEW.sequence),
            DETAIL = 'Only the owner of a sequence may bind it.',
            HINT = 'Ask the owner of the sequence to call snowflake_ids.bind_sequence.';
    END IF;
    NEW.checked := snowflake_ids_internal.sequence_stands_at_end(NEW.sequence);
    RETURN NEW;
END
$$;
CREATE TRIGGER sequence_binding_check BEFORE INSERT OR UPDATE OF sequence ON snowflake_ids.sequence_binding
    FOR EACH ROW EXECUTE FUNCTION snowflake_ids_internal.sequence_binding_check();

CREATE FUNCTION snowflake_ids_internal.generator_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE snowflake_ids.sequence_binding AS b SET generator = NEW.name WHERE b.generator = OLD.name;
    RETURN NULL;
END
$$;
CREATE TRIGGER generator_follow AFTER UPDATE ON snowflake_ids.generator
    FOR EACH ROW WHEN (OLD.name <> NEW.name) EXECUTE FUNCTION snowflake_ids_internal.generator_follow();

/* All roles may call these functions, which check the same rights as the server's nextval, currval and setval. */
CREATE FUNCTION snowflake_ids_internal.sequence_nextval(sequence regclass) RETURNS bigint
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_nextval_wrapper';
CREATE FUNCTION snowflake_ids_internal.sequence_currval(sequence regclass) RETURNS bigint
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_currval_wrapper';
CREATE FUNCTION snowflake_ids_internal.sequence_lastval() RETURNS bigint
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_lastval_wrapper';
CREATE FUNCTION snowflake_ids_internal.sequence_setval(sequence regclass, value bigint) RETURNS bigint
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_setval_wrapper';
CREATE FUNCTION snowflake_ids_internal.sequence_setval(sequence regclass, value bigint, is_called boolean) RETURNS bigint
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_setval3_wrapper';

/* Records an id from a column's default as the last number of the column's sequence, for currval. */
CREATE FUNCTION snowflake_ids_internal.sequence_recorded(sequence regclass, id bigint) RETURNS bigint
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_recorded_wrapper';

/* Raises the tag of a bound sequence for setval; returns the tag's highest id. Runs with the rights of the owner of the table
   of tags. */
CREATE FUNCTION snowflake_ids_internal.sequence_raise(tag text, value bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reached bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        RETURN snowflake_ids_internal.segment_raise(tag, value);
    END IF;
    SELECT max(r.max_id) INTO reached FROM snowflake_ids.received AS r WHERE r.tag = sequence_raise.tag COLLATE "C";
    RETURN CASE WHEN reached >= value OR NOT snowflake_ids_internal.registry_seed(tag, value) THEN reached ELSE value END;
END
$$;

/* Returns whether another sequence, or a default of another column or a domain, uses a bound sequence's tag. Other sessions'
   temporary tables do not count, because any login can create them. */
CREATE FUNCTION snowflake_ids_internal.sequence_tag_is_shared(sequence oid, tag text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
BEGIN
    RETURN EXISTS (SELECT FROM snowflake_ids.sequence_binding AS b WHERE b.tag = tag COLLATE "C" AND b.sequence <> sequence)
        OR EXISTS (
            SELECT FROM (
                SELECT f.adrelid AS relation, c.relowner AS owner, pg_get_expr(f.adbin, f.adrelid) AS written
                FROM pg_attrdef AS f JOIN pg_class AS c ON c.oid = f.adrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
                UNION ALL SELECT 0::oid, t.typowner, pg_get_expr(t.typdefaultbin, 0) FROM pg_type AS t
                WHERE t.typtype = 'd' AND NOT pg_is_other_temp_schema(t.typnamespace)) AS f
            WHERE EXISTS (
                    SELECT FROM unnest(ARRAY['segment_nextval', 'segment_id', 'segment_nextval_text']) AS call (called)
                    WHERE strpos(f.written, snowflake_ids_internal.call_with(called, tag) COLLATE "C") > 0)
                -- Any role may name a tag in a default.
                AND snowflake_ids_internal.may_take_ids(f.owner, tag)
                AND f.relation NOT IN (
                    SELECT t FROM pg_depend AS d, snowflake_ids_internal.table_and_below(d.refobjid::regclass) AS t
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence AND d.refclassid = 'pg_class'::regclass
                        AND d.deptype IN ('a', 'i')));
END
$$;

/* Fails if the caller does not manage tags. This check only gives a clearer error: the internal functions refuse such a
   caller, too. */
CREATE FUNCTION snowflake_ids_internal.check_manages_tags(function text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT has_function_privilege('snowflake_ids_internal.bind_here'::regproc, 'EXECUTE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for function %s', left(function, 32)),
            DETAIL = format('Role %s does not manage segment tags in this database.', quote_ident(current_user)),
            HINT = format('Ask the owner of the database or a superuser to run SELECT snowflake_ids.administration_grant(''tags'', %L).',
                current_user);
    END IF;
END
$$;

/* Returns whether workers of a Citus cluster take ids from this database's tags. */
CREATE FUNCTION snowflake_ids_internal.has_workers() RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pg_catalog.pg_dist_node') IS NULL THEN
        RETURN false;
    END IF;
    RETURN EXISTS (SELECT FROM pg_catalog.pg_dist_node AS n WHERE n.groupid <> 0);
END
$$;

/* Restarts the tag of a bound sequence, unless other sequences, columns or servers take ids of the tag, too. Runs with the
   rights of the owner of the table of bindings. The caller has checked that the sequence's owner may move the tag. */
CREATE FUNCTION snowflake_ids_internal.sequence_restart(sequence oid, tag text, highest bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    others text;
    way text;
BEGIN
    IF EXISTS (SELECT FROM snowflake_ids.registry_server) THEN
        others := 'It gives ids of segment tag "%s", which a registry gives to other servers, too.';
        way := 'To restart the tag, move it at the registry, with snowflake_ids.segment_set.';
    ELSIF snowflake_ids_internal.has_workers() THEN
        others := 'It gives ids of segment tag "%s", of which other nodes of this Citus cluster hold some.';
        way := 'To restart the tag, with no inserts meanwhile: SELECT snowflake_ids.segment_set(%1$L, 0, true), and on each other '
            'node SELECT snowflake_ids.segment_discard(%1$L).';
    ELSIF snowflake_ids_internal.sequence_tag_is_shared(sequence, tag) THEN
        others := 'Others take ids of segment tag "%s", too.';
        way := 'To restart the tag for all of them: SELECT snowflake_ids.segment_set(%L, 0, true).';
    ELSE
        -- Numbers of a column with gaps go on from the new number.
        UPDATE snowflake_ids.segment AS s SET remainder = (highest + 1) % s.increment
        WHERE s.tag = sequence_restart.tag AND s.is_made AND s.remainder <> (highest + 1) % s.increment;
        PERFORM snowflake_ids_internal.segment_set(tag, highest, true);
        RETURN;
    END IF;
    RAISE NOTICE USING
        MESSAGE = format('sequence "%s" is not restarted', (SELECT c.relname FROM pg_class AS c WHERE c.oid = sequence)),
        DETAIL = format(others, tag),
        HINT = format(way, tag);
END
$$;

/* Removes the bindings of dropped sequences, and returns their tags. Skips rows that other transactions have locked. */
CREATE FUNCTION snowflake_ids_internal.sequence_forget_dropped() RETURNS TABLE (tag text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM snowflake_ids.sequence_binding AS b WHERE b.sequence = ANY (ARRAY(
        SELECT g.sequence FROM snowflake_ids.sequence_binding AS g
        WHERE NOT EXISTS (SELECT FROM pg_sequence AS s WHERE s.seqrelid = g.sequence) FOR UPDATE SKIP LOCKED))
    RETURNING b.tag
$$;

/* Sets a sequence's position. A rollback undoes the change, because ALTER SEQUENCE ... RESTART first writes a new file. */
CREATE FUNCTION snowflake_ids_internal.sequence_put(sequence regclass, number bigint, is_called boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM snowflake_ids_internal.as_owner(sequence,
        format('ALTER SEQUENCE %s RESTART', snowflake_ids_internal.qualified_name(sequence)));
    PERFORM snowflake_ids_internal.sequence_move(sequence, number, is_called);
END
$$;

CREATE FUNCTION snowflake_ids_internal.sequence_is_bound(sequence regclass) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM snowflake_ids.sequence_binding AS b
        WHERE b.sequence = $1 AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end($1)))
$$;

CREATE FUNCTION snowflake_ids.bind_sequence(sequence regclass, kind text DEFAULT 'snowflake', tag text DEFAULT NULL,
    generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('bind_sequence');
    PERFORM snowflake_ids_internal.bind_here(sequence, kind, tag, generator);
END
$$;
COMMENT ON FUNCTION snowflake_ids.bind_sequence IS 'makes nextval of a sequence give snowflake ids, or ids of a segment tag';

CREATE FUNCTION snowflake_ids.unbind_sequence(sequence regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET citus.enable_ddl_propagation = off AS $$
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    PERFORM snowflake_ids_internal.check_manages_tags('unbind_sequence');
    PERFORM snowflake_ids_internal.unbind_here(sequence);
END
$$;
COMMENT ON FUNCTION snowflake_ids.unbind_sequence IS 'makes a bound sequence count by itself again, above all ids that it gave';

CREATE VIEW snowflake_ids.sequence_status WITH (security_barrier) AS
SELECT b.sequence, CASE WHEN NOT r.readable THEN 'unreadable' WHEN b.tag IS NULL THEN 'snowflake' ELSE 'segment' END AS kind,
       CASE WHEN r.readable THEN b.tag END AS tag, s.seqincrement AS increment,
       d.refobjid::regclass AS owner, a.attname AS owner_column, b.last_number, b.bound_at,
       CASE WHEN r.readable THEN b.generator END AS generator,
       CASE WHEN r.readable THEN t.max_id END AS last_id
FROM snowflake_ids.sequence_binding AS b CROSS JOIN LATERAL (SELECT CASE
        WHEN b.tag IS NULL AND b.generator IS NULL THEN true
        WHEN b.tag IS NULL THEN EXISTS (SELECT FROM snowflake_ids.generator AS g WHERE g.name = b.generator)
        ELSE b.generator IS NULL AND pg_catalog.octet_length(b.tag) <= 512 AND pg_catalog.length(b.tag) BETWEEN 1 AND 128
    END) AS r (readable)
    JOIN pg_catalog.pg_sequence AS s ON s.seqrelid = b.sequence
    LEFT JOIN snowflake_ids.segment AS t ON t.tag = b.tag
    LEFT JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = b.sequence
        AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.deptype IN ('a', 'i')
    LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE (b.checked OR snowflake_ids_internal.sequence_stands_at_end(b.sequence))
    AND CASE WHEN r.readable AND b.tag IS NOT NULL THEN snowflake_ids.has_segment_privilege(b.tag, 'SELECT') ELSE true END;
COMMENT ON VIEW snowflake_ids.sequence_status IS 'the sequences that give ids of snowflake_ids';
