#!/usr/bin/env bash
# Sets up the new registry, for worker ids and tags of all nodes.
set -euo pipefail

psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
  --set=shard_password="$SHARD_PASSWORD" <<'SQL'
CREATE EXTENSION snowflake_ids;
SELECT snowflake_ids.registry_allow('shard', :'shard_password');
SELECT snowflake_ids.segment_create('invoices');
SQL
