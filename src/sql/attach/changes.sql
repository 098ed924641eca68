-- Changes that attach and detach make.

-- Creates a sequence that belongs to the table's owner, because a column can own only such a sequence. For a distributed table,
-- Citus refuses OWNED BY in the statement that creates the sequence.
CREATE FUNCTION snowflake_ids_internal.create_sequence(relation regclass, attribute name, sequence_name text, options text)
RETURNS regclass LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.made::regclass
    FROM (SELECT format('OWNED BY %s.%I', snowflake_ids_internal.qualified_name($1), $2) AS owner,
            snowflake_ids_internal.is_distributed($1) AS is_later OFFSET 0) c,
        LATERAL (SELECT snowflake_ids_internal.create_sequence_for($1,
            concat_ws(' ', 'CREATE SEQUENCE', $3, $4, CASE WHEN NOT c.is_later THEN c.owner END)) AS made OFFSET 0) s
    WHERE NOT c.is_later OR snowflake_ids_internal.as_owner(s.made,
        format('ALTER SEQUENCE %s %s', snowflake_ids_internal.qualified_name(s.made), c.owner)) IS NULL
$$;

-- Drops the sequences that a column owns, except those that other objects use.
CREATE FUNCTION snowflake_ids_internal.drop_sequences(relation regclass, attribute name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owned regclass;
    users text;
BEGIN
    FOR owned IN SELECT s.sequence FROM snowflake_ids_internal.sequences_of(relation, attribute) s
        WHERE s.owner IS NOT NULL AND NOT snowflake_ids_internal.sequence_is_bound(s.sequence)
    LOOP
        BEGIN
            PERFORM snowflake_ids_internal.as_owner(owned, format('DROP SEQUENCE %s', owned));
        EXCEPTION WHEN dependent_objects_still_exist THEN
            GET STACKED DIAGNOSTICS users = PG_EXCEPTION_DETAIL;
            RAISE NOTICE USING MESSAGE = format('sequence "%s" is kept, because others use it', owned), DETAIL = users;
        END;
    END LOOP;
END
$$;

-- Returns the sequence that a column owns, or null. Widens the sequence to the column's type if the next numbers do not fit.
-- The column may have been an integer when the sequence was created.
CREATE FUNCTION snowflake_ids_internal.kept_sequence(relation regclass, attribute name, highest bigint) RETURNS regclass
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT k.sequence
    FROM (SELECT s.sequence FROM snowflake_ids_internal.sequences_of($1, $2) s WHERE s.owner = $1 ORDER BY s.sequence LIMIT 1) k
        JOIN pg_sequence s ON s.seqrelid = k.sequence, snowflake_ids_internal.column_type($1, $2) t (type)
    WHERE s.seqtypid = t.type OR $3 < snowflake_ids_internal.type_maximum(s.seqtypid)
        OR snowflake_ids_internal.as_owner(k.sequence, format('ALTER SEQUENCE %s AS %s', k.sequence, t.type)) IS NULL
$$;

-- Returns the highest id of a tag that this database has reserved or received.
CREATE FUNCTION snowflake_ids_internal.highest_of_tag(tag text) RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM snowflake_ids.registry_server)
        THEN (SELECT max(r.max_id) FROM snowflake_ids.received r WHERE r.tag = $1 COLLATE "C")
        ELSE snowflake_ids.segment_raise($1, 0) END
$$;

-- Advances a sequence to a number that the sequence would have reached by its own increment. A descending sequence never
-- reaches this extension's ids.
CREATE FUNCTION snowflake_ids_internal.advance_sequence(sequence regclass, highest bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.sequence_move($1,
        (s.seqstart + ceil(($2::numeric + 1 - s.seqstart) / s.seqincrement) * s.seqincrement)::bigint, false)
    FROM pg_sequence s WHERE s.seqrelid = $1 AND s.seqincrement > 0 AND snowflake_ids_internal.highest_number($1) < $2
$$;

-- Restores nextval defaults. A partition or child that has a sequence of its own gets its default from that sequence.
CREATE FUNCTION snowflake_ids_internal.restore_sequence(relation regclass, attribute name, highest bigint) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT snowflake_ids_internal.create_sequence($1, $2, snowflake_ids_internal.free_sequence_name($1, $2), '')
    WHERE snowflake_ids_internal.kept_sequence($1, $2, $3) IS NULL;
    SELECT snowflake_ids_internal.advance_sequence(t.own, $3), snowflake_ids_internal.as_owner(t.member,
        format('ALTER TABLE ONLY %s ALTER COLUMN %I SET DEFAULT nextval(%L::regclass)', t.member, $2, t.own::oid))
    FROM (SELECT m AS member, coalesce(snowflake_ids_internal.kept_sequence(m, $2, $3),
            snowflake_ids_internal.kept_sequence($1, $2, $3)) AS own
        FROM snowflake_ids_internal.table_and_below($1) m OFFSET 0) t
$$;
