-- A node: a server whose ids come from the registry.

CREATE EXTENSION snowflake_ids;

SELECT snowflake_ids.registry_join(format('host=127.0.0.1 port=%s dbname=postgres user=shard password=%s',
    :'registry_port', :'shard_password')) \g /dev/null

-- For the first id, the node asks the registry for a worker id.
SELECT snowflake_nextval() \g /dev/null
