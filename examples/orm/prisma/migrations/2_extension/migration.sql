-- Of its own: a new server gives snowflake ids once this is committed.
CREATE EXTENSION snowflake_ids;
