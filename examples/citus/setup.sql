-- One registry for a Citus cluster: the coordinator's database. Run this on the coordinator as a superuser, in the database that
-- has Citus. You can run it again at any time:
--
--     psql -d app -f setup.sql
--
-- Before that, preload both libraries on all nodes, add the workers, and call citus_set_coordinator_host, so that workers know
-- where the coordinator is. Workers that are added later join by themselves. See docs/citus.md.

\set ON_ERROR_STOP on

CREATE EXTENSION IF NOT EXISTS snowflake_ids;
CALL snowflake_ids.use_citus();
