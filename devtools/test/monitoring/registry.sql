-- The registry of the client. Its segments are small, so that the client asks often.
SELECT snowflake_ids.registry_allow('shard', :'shard_password') \g /dev/null
SELECT snowflake_ids.segment_create('far', step => 500, max_step => 500) \g /dev/null
