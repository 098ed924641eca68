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

/* Returns whether another sequence, or a default of another column or a domain, uses a bound sequence's tag. Other sessions'
   temporary tables do not count, because any login can create them. */
CREATE FUNCTION snowflake_ids_internal.sequence_tag_is_shared(sequence oid, tag text) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
    SELECT EXISTS (SELECT FROM snowflake_ids.sequence_binding AS b WHERE b.tag = $2 COLLATE "C" AND b.sequence <> $1)
        OR EXISTS (
            SELECT FROM (
                SELECT f.adrelid AS relation, c.relowner AS owner, pg_get_expr(f.adbin, f.adrelid) AS written
                FROM pg_attrdef AS f JOIN pg_class AS c ON c.oid = f.adrelid AND NOT pg_is_other_temp_schema(c.relnamespace)
                UNION ALL SELECT 0::oid, t.typowner, pg_get_expr(t.typdefaultbin, 0) FROM pg_type AS t
                WHERE t.typtype = 'd' AND NOT pg_is_other_temp_schema(t.typnamespace)) AS f
            WHERE EXISTS (
                    SELECT FROM unnest(ARRAY['segment_nextval', 'segment_id', 'segment_nextval_text']) AS call (called)
                    WHERE strpos(f.written, snowflake_ids_internal.call_with(called, $2) COLLATE "C") > 0)
                -- Any role may name a tag in a default.
                AND snowflake_ids_internal.may_take_ids(f.owner, $2)
                AND f.relation NOT IN (
                    SELECT t FROM pg_depend AS d, snowflake_ids_internal.table_and_below(d.refobjid::regclass) AS t
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = $1 AND d.refclassid = 'pg_class'::regclass
                        AND d.deptype IN ('a', 'i')))
$$;

CREATE FUNCTION snowflake_ids_internal.sequence_is_bound(sequence regclass) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM snowflake_ids.sequence_binding AS b
        WHERE b.sequence = $1 AND (b.checked OR snowflake_ids_internal.sequence_stands_at_end($1)))
$$;

CREATE FUNCTION snowflake_ids.bind_sequence(sequence regclass, kind text DEFAULT 'snowflake', tag text DEFAULT NULL,
    generator text DEFAULT NULL) RETURNS void
LANGUAGE c SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS 'MODULE_PATHNAME', 'bind_sequence_wrapper';
COMMENT ON FUNCTION snowflake_ids.bind_sequence IS 'makes nextval of a sequence give snowflake ids, or ids of a segment tag';

CREATE FUNCTION snowflake_ids.unbind_sequence(sequence regclass) RETURNS void
LANGUAGE c SET search_path = pg_catalog, pg_temp SET citus.enable_ddl_propagation = off AS 'MODULE_PATHNAME', 'unbind_sequence_wrapper';
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
