-- Shows whether all nodes have the registry, and worker ids of their own. Run it on any node.

SELECT node_id, node_name, node_port, worker_id, layout, registry, version, problem FROM snowflake_ids.citus_status();
