-- The registry: worker ids and tags of all nodes. The role of its nodes may do this one thing.

CREATE EXTENSION snowflake_ids;

CREATE ROLE shard LOGIN PASSWORD :'shard_password';
GRANT EXECUTE ON FUNCTION snowflake_ids.registry_serve(text) TO shard;

-- A node holds up to two segments of a tag: while the registry is away it numbers that many invoices.
SELECT snowflake_ids.segment_create('invoices', step => 10000) \g /dev/null
