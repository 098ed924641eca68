#!/usr/bin/env bash
# Sets up a new node, whose ids come from the registry.
set -euo pipefail

psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
  --set=host="$REGISTRY_HOST" --set=port="${REGISTRY_PORT:-5432}" --set=shard_password="$SHARD_PASSWORD" <<'SQL'
CREATE EXTENSION snowflake_ids;
CREATE EXTENSION postgres_fdw;
CREATE SERVER registry FOREIGN DATA WRAPPER postgres_fdw
    OPTIONS (host :'host', port :'port', dbname 'postgres', target_session_attrs 'read-write');
CREATE USER MAPPING FOR CURRENT_USER SERVER registry OPTIONS (user 'shard', password :'shard_password');
SELECT snowflake_ids.use_registry('registry');
SQL
