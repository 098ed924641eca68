-- Every node takes an id and says as whom. All worker ids must differ, and all workers name the registry.

SELECT nodeid, success, result FROM run_command_on_all_nodes($$SELECT snowflake_nextval()$$);
SELECT nodeid, success, result FROM run_command_on_all_nodes(
    $$SELECT format('worker id %s from %s (%s): %s', worker_id, registry, scope, state) FROM snowflake_ids.status$$);
