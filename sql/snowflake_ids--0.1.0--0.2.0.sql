/* From 0.1.0 to 0.2.0. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* The page about this server, and what its curves are drawn of. */
CREATE DOMAIN snowflake_ids."text/html" AS text;
COMMENT ON DOMAIN snowflake_ids."text/html" IS 'a page of HTML, as PostgREST names the type of what it answers';
CREATE FUNCTION snowflake_ids.status_page() RETURNS snowflake_ids."text/html"
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'status_page_wrapper';
COMMENT ON FUNCTION snowflake_ids.status_page IS 'a page of HTML about this server, of what the caller may see in the views';

CREATE FUNCTION snowflake_ids.status_history() RETURNS TABLE (
    sampled_at timestamptz, elapsed interval, ids_per_second double precision, segment_ids_per_second double precision,
    drift interval, waits bigint, refills bigint, steps_back bigint, steps_forward bigint, clock_ahead interval
)
STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'status_history_wrapper';
CREATE VIEW snowflake_ids.status_history AS SELECT * FROM snowflake_ids.status_history();
COMMENT ON VIEW snowflake_ids.status_history IS 'what this server did in the last hour, a row for each sample';
GRANT SELECT ON snowflake_ids.status_history TO PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_ids.status_history(), snowflake_ids.status_page() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_ids.status_history(), snowflake_ids.status_page() TO PUBLIC;
