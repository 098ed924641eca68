-- The registry: worker ids and tags of all nodes, which log in as the role "shard".

CREATE EXTENSION snowflake_ids;

SELECT snowflake_ids.registry_allow('shard', :'shard_password') \g /dev/null

-- A node holds up to two segments of a tag. It can number that many invoices while the registry is down.
SELECT snowflake_ids.segment_create('invoices', step => 10000) \g /dev/null
