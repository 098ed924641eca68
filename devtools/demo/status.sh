#!/usr/bin/env bash
# status.sh: writes a server's status page to target/status.html, and says so. SERVER, a connection string, and libpq's variables
# name the server.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

# Any psql will do, because the server need not be PG_CONFIG's.
psql=psql
command -v psql >/dev/null || psql=$(pg bindir)/psql

page=$TARGET/status.html
mkdir -p "$TARGET"
"$psql" --no-psqlrc --no-align --tuples-only --quiet --set=ON_ERROR_STOP=1 --dbname="${SERVER-}" \
  --command='SELECT snowflake_ids.status_page()' --output="$page.new"
mv "$page.new" "$page"
echo "The status page is $page"
"$psql" --no-psqlrc --no-align --tuples-only --quiet --set=ON_ERROR_STOP=1 --dbname="${SERVER-}" \
  --command="SELECT coalesce(string_agg(concat(severity, ' ', subject, ': ', problem), E'\n'), 'Nothing needs attention.') FROM snowflake_ids.attention"
