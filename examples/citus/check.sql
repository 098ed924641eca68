-- Shows whether all nodes use the registry, and have different worker ids. Run this on any node.

SELECT node_id, node_name, node_port, worker_id, layout, registry, version, problem FROM snowflake_ids.citus_status();
