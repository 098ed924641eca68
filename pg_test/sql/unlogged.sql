-- An unlogged sequence gives no ids of ours. Before 15 there is none.
\set SHOW_CONTEXT never
CREATE UNLOGGED SEQUENCE unlogged;
SELECT snowflake_ids.bind_sequence('unlogged');
\echo :LAST_ERROR_SQLSTATE
DROP SEQUENCE unlogged;
