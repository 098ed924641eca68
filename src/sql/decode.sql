-- Returns whether an id is in a span of time. The tick in which the span ends does not count. The planner inlines the
-- function as two comparisons, so that it can use an index on the ids and prune partitions.

CREATE FUNCTION snowflake_between(id bigint, "from" timestamptz, "to" timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT id OPERATOR(pg_catalog.>=) pg_catalog.snowflake_min_id("from") AND id OPERATOR(pg_catalog.<) pg_catalog.snowflake_min_id("to")
$$;
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
    'true if an id was generated at or after "from" and before "to", to the tick';

CREATE FUNCTION snowflake_between(id bigint, "from" timestamptz, "to" timestamptz, layout text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT id OPERATOR(pg_catalog.>=) pg_catalog.snowflake_min_id("from", layout)
        AND id OPERATOR(pg_catalog.<) pg_catalog.snowflake_min_id("to", layout)
$$;
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, text) IS
    'true if an id of a layout or generator was generated at or after "from" and before "to", to the tick';

CREATE FUNCTION snowflake_between(id uuid, "from" timestamptz, "to" timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT id OPERATOR(pg_catalog.>=) pg_catalog.snowflake_min_uuid("from") AND id OPERATOR(pg_catalog.<) pg_catalog.snowflake_min_uuid("to")
$$;
COMMENT ON FUNCTION snowflake_between(uuid, timestamptz, timestamptz) IS
    'true if a UUID of version 7 was generated at or after "from" and before "to", to the millisecond';
