-- A further worker. Run on the new server, in the database of the same name, before it is added to the cluster:
-- else it makes ids as a server without a registry.
--
--     psql -d app -v registry_host=coordinator -v registry_port=5432 -v password=... -f add_worker.sql
--
-- Then, on the coordinator: SELECT citus_add_node('worker3', 5432);

\set ON_ERROR_STOP on

CREATE EXTENSION citus;
CREATE EXTENSION snowflake_ids;
CREATE EXTENSION postgres_fdw;

-- The same as on the other nodes; citus_add_node leaves it as it is.
CREATE SERVER ids_registry FOREIGN DATA WRAPPER postgres_fdw
    OPTIONS (host :'registry_host', port :'registry_port', dbname :'DBNAME', target_session_attrs 'read-write');
CREATE USER MAPPING FOR CURRENT_USER SERVER ids_registry OPTIONS (user 'shard', password :'password');
SELECT snowflake_ids.use_registry('ids_registry');

SELECT snowflake_nextval();
SELECT worker_id, scope, registry, state FROM snowflake_ids.status;
