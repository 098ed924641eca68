-- The registry: worker ids and tags of all nodes. The nodes' role "shard" may only call registry_serve.

CREATE EXTENSION snowflake_ids;

CREATE ROLE shard LOGIN PASSWORD :'shard_password';
GRANT EXECUTE ON FUNCTION snowflake_ids.registry_serve(text) TO shard;

-- A node holds up to two segments of a tag. It can number that many invoices while the registry is down.
SELECT snowflake_ids.segment_create('invoices', step => 10000) \g /dev/null
