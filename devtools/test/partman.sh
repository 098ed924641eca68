#!/usr/bin/env bash
# partman.sh: runs the SQL of docs/time.md for pg_partman on throwaway servers, once with each version that it names, and
# checks the results. The SQL of pg_partman comes from packages of Debian trixie (5) and bookworm (4), and is installed into the
# server. Skipped if the packages cannot be had.
set -euo pipefail
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"
# shellcheck disable=SC2034
subject=pg_partman distribution=Debian
# shellcheck source=devtools/build/source.sh
source "$here/build/source.sh"

# Prints the SQL blocks of the section.
# shellcheck disable=SC2016
recipe() { sed -n '/^## With pg_partman/,/^## A BRIN/p' docs/time.md | sed -n '/^```sql/,/^```$/{/^```/d;p}'; }

# Changes a recipe, or the check of its results, to what the section says of version 4.
of_version_4() { sed "s/'id', snowflake_interval/'id', 'native', snowflake_interval/; /^CREATE TABLE sessions/,\$d; /sessions/d"; }

on_server() { "$(pg bindir)/psql" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 "$@"; }

# try RELEASE PACKAGE FILTER: tries the version of a Debian release. Its SQL is the same for all versions of PostgreSQL.
try() {
  # shellcheck disable=SC2034
  release=$1
  work=$(mktemp -d) server=$(server_folder)
  trap 'server_stop "$server"; rm -rf "$work" "$server"' EXIT
  (get_package "$2") || exit 0
  as_root cp "$work"/package/usr/share/postgresql/*/extension/pg_partman* "$(pg sharedir)/extension"
  password=$(new_password)
  port=$(free_port)
  keep_secret "$server/password" <<<"$password"
  export PGHOST=127.0.0.1 PGPORT=$port PGUSER=demo PGDATABASE=postgres PGPASSWORD=$password
  server_create "$server" "$port" "$server/password"
  server_start "$server"
  on_server --file=pg_test/partman/before.sql
  recipe | "$3" | on_server >"$work/recipe.log"
  "$3" <pg_test/partman/after.sql | on_server
  echo "pg_partman $(on_server --tuples-only --no-align --command="SELECT extversion FROM pg_extension WHERE extname = 'pg_partman'"): passed"
}

servers_in_memory
(try trixie postgresql-17-partman cat)
(try bookworm postgresql-15-partman of_version_4)
