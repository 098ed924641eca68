/* From 0.1.0 to 0.2.0. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* Dense series that draw from a registry. */
ALTER TABLE snowflake_ids.series_bigint ADD COLUMN version bigint;
ALTER TABLE snowflake_ids.series_text ADD COLUMN version bigint;
ALTER TABLE snowflake_ids.series_uuid ADD COLUMN version bigint;
COMMENT ON COLUMN snowflake_ids.series_bigint.version IS
    'by what a node knows what it reserved last, where several count the key; null where the last reservation was none of a node''s';
