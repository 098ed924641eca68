#!/usr/bin/env bash
# Sets up a new node, whose ids come from the registry.
set -euo pipefail

psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
  --set=host="$REGISTRY_HOST" --set=port="${REGISTRY_PORT:-5432}" --set=shard_password="$SHARD_PASSWORD" <<'SQL'
CREATE EXTENSION snowflake_ids;
SELECT snowflake_ids.registry_join(format('host=%s port=%s dbname=postgres user=shard password=''%s''', :'host', :'port',
    regexp_replace(:'shard_password', '[''\\]', '\\\&', 'g')));
SQL
