-- The registry of the client. Its segments are small, so that the client asks often.
CREATE ROLE shard LOGIN PASSWORD :'shard_password';
GRANT EXECUTE ON FUNCTION snowflake_ids.registry_serve(text) TO shard;
SELECT snowflake_ids.segment_create('far', step => 500, max_step => 500) \g /dev/null
