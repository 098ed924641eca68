-- One registry for a Citus cluster: the coordinator's database. Run on the coordinator, in the database that has Citus, as a
-- superuser; again whenever you like:
--
--     psql -d app -f setup.sql
--
-- Before: both libraries are preloaded on all nodes, the workers are added, and citus_set_coordinator_host has told them where
-- the coordinator is. Workers that are added later join by themselves. See docs/citus.md.

\set ON_ERROR_STOP on

CREATE EXTENSION IF NOT EXISTS snowflake_ids;
CALL snowflake_ids.use_citus();
