-- A server whose tags come from the registry.
SELECT snowflake_ids.registry_join(format('host=127.0.0.1 port=%s dbname=postgres user=shard password=%s',
    :'registry_port', :'shard_password')) \g /dev/null
