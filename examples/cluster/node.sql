-- A node: a server whose ids come from the registry.

CREATE EXTENSION snowflake_ids;
CREATE EXTENSION postgres_fdw;

CREATE SERVER registry FOREIGN DATA WRAPPER postgres_fdw
    OPTIONS (host '127.0.0.1', port :'registry_port', dbname 'postgres');
CREATE USER MAPPING FOR CURRENT_USER SERVER registry OPTIONS (user 'shard', password :'shard_password');

SELECT snowflake_ids.use_registry('registry') \g /dev/null

-- For the first id, the node asks the registry for a worker id.
SELECT snowflake_nextval() \g /dev/null
