-- Of its own, as each migration is a transaction: a new server gives snowflake ids once this is committed.
CREATE EXTENSION snowflake_ids;
