-- One registry for a Citus cluster: the coordinator's database. Run on the coordinator, in the database that has
-- Citus, by the superuser who creates extensions:
--
--     psql -d app -v registry_host=coordinator -v registry_port=5432 -v password=... -f setup.sql
--
-- Before: both libraries are preloaded on all nodes, and the nodes are added. See docs/citus.md.

\set ON_ERROR_STOP on

-- Citus creates both on the workers as well.
CREATE EXTENSION snowflake_ids;
CREATE EXTENSION postgres_fdw;

-- What the workers log in as. It may do nothing here but ask for ids.
CREATE ROLE shard LOGIN PASSWORD :'password';
GRANT EXECUTE ON FUNCTION snowflake_ids.registry_serve(text) TO shard;

-- Citus creates the server on the workers, too. The coordinator makes no use of it: its ids come from its own tables.
CREATE SERVER ids_registry FOREIGN DATA WRAPPER postgres_fdw
    OPTIONS (host :'registry_host', port :'registry_port', dbname :'DBNAME', target_session_attrs 'read-write');

-- User mappings and the use of a registry stay where they are made, so each worker is told by itself. Neither is
-- an error here if a worker fails: every line must say success = t.
SELECT nodename, nodeport, success, result FROM run_command_on_workers(
    format('CREATE USER MAPPING FOR %I SERVER ids_registry OPTIONS (user %L, password %L)',
           current_user, 'shard', :'password'));
SELECT nodename, nodeport, success, result FROM run_command_on_workers(
    $$SELECT snowflake_ids.use_registry('ids_registry')$$);

\ir check.sql
