-- A Citus cluster: what is refused where there is none, and to whom; and of what Citus' catalog says, the errors.
\set VERBOSITY verbose

CALL snowflake_ids.use_citus();
CALL snowflake_ids.use_citus('elsewhere');
SELECT * FROM snowflake_ids.citus_status();
SELECT snowflake_ids.use_registry('citus_coordinator');

-- Superusers alone set the registry of all nodes; who may look at all sessions may look at all nodes.
CREATE ROLE citus_user;
CREATE ROLE citus_monitor IN ROLE pg_monitor;
SET ROLE citus_user;
CALL snowflake_ids.use_citus();
SELECT * FROM snowflake_ids.citus_status();
SELECT snowflake_ids_internal.citus_run_on_workers('SELECT 1');
SET ROLE citus_monitor;
SELECT * FROM snowflake_ids.citus_status();
RESET ROLE;

-- Tables of Citus' names, without Citus.
SELECT snowflake_ids.series_create('of a node');
SELECT series_nextval('of a node', 1);
BEGIN;
SET LOCAL allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_local_group (groupid integer NOT NULL PRIMARY KEY);
CREATE TABLE pg_catalog.pg_dist_node (nodeid integer, groupid integer, nodename text, nodeport integer, isactive boolean);
GRANT SELECT ON pg_catalog.pg_dist_local_group, pg_catalog.pg_dist_node TO PUBLIC;
INSERT INTO pg_catalog.pg_dist_local_group VALUES (0);
\set ON_ERROR_ROLLBACK on
-- A coordinator that workers could not find.
CALL snowflake_ids.use_citus();
SELECT snowflake_ids.use_registry('citus_coordinator');
INSERT INTO pg_catalog.pg_dist_node VALUES (1, 0, 'coordinator', 5432, true);
CALL snowflake_ids.use_citus('elsewhere');
SELECT snowflake_ids.use_registry('citus_coordinator');

-- A worker.
UPDATE pg_catalog.pg_dist_local_group SET groupid = 1;
CALL snowflake_ids.use_citus();
-- Each would count for itself.
SELECT series_nextval('of a node', 1);
SELECT snowflake_ids.series_create('of another node');
SELECT snowflake_ids.series_create('of a shard', scope => 'node');
SELECT series_nextval('of a shard', 1);
SELECT snowflake_ids.series_drop('of a shard');
-- What Citus is told of its connections is not passed over where it cannot be read.
SET LOCAL citus.node_conninfo = 'sslmode';
SELECT snowflake_ids.use_registry('citus_coordinator');
SET LOCAL citus.node_conninfo = '';
UPDATE pg_catalog.pg_dist_node SET isactive = false;
SELECT snowflake_ids.use_registry('citus_coordinator');
DELETE FROM pg_catalog.pg_dist_node;
SELECT snowflake_ids.use_registry('citus_coordinator');
CALL snowflake_ids.use_citus();

-- A foreign server of the coordinator's name is not what is meant.
CREATE FOREIGN DATA WRAPPER citus_none;
CREATE SERVER citus_coordinator FOREIGN DATA WRAPPER citus_none;
SELECT snowflake_ids.use_registry('citus_coordinator');

-- All nodes that failed are named.
INSERT INTO pg_catalog.pg_dist_node VALUES (1, 0, 'coordinator', 5432, true), (2, 1, 'one', 1, true), (3, 2, 'two', 2, true), (4, 3, 'three', 3, true);
CREATE FUNCTION pg_catalog.run_command_on_workers(command text, OUT nodename text, OUT nodeport integer, OUT success boolean, OUT result text)
RETURNS SETOF record LANGUAGE sql AS $$
    VALUES ('one', 1, command LIKE '%SELECT 1%', 'ERROR:  no'), ('two', 2, true, '1'), ('three', 3, command LIKE '%SELECT 1%', NULL)
$$;
SELECT snowflake_ids_internal.citus_run_on_workers('SELECT 1');
SELECT snowflake_ids_internal.citus_run_on_workers('SELECT 2');
\set ON_ERROR_ROLLBACK off
ROLLBACK;
DROP ROLE citus_user, citus_monitor;
SELECT snowflake_ids.series_drop('of a node');

-- What nodes say of themselves.
SELECT r ->> 'layout' AS layout, r ->> 'worker_id' AS worker_id, r ->> 'registry' AS registry, r ->> 'identity' = snowflake_ids_internal.registry_identity() AS is_its_own
FROM (SELECT snowflake_ids_internal.citus_report()::json AS r) AS r;
