#!/usr/bin/env bash
# pg-upgrade.sh FROM TO [ARGUMENT...]: runs pg_upgrade from one Postgres to another, each named by its pg_config, with the
# extension built for both. Then makes servers of both replicate to each other. Nothing is installed into either Postgres. The
# arguments go to cargo-nextest.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

[[ $# -ge 2 && -n $1 && -n $2 ]] || fail "Say from where to where: make test-pg-upgrade FROM=/path/to/pg_config TO=/path/to/pg_config"
from=$1 to=$2
shift 2
for pg_config in "$from" "$to"; do
  "$pg_config" --version >/dev/null || fail "This is no pg_config: $pg_config"
done

# package PG_CONFIG: builds the extension for this pg_config, and prints the folder of the build.
package() {
  local major
  major=$("$1" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
  PG_CONFIG=$1 "${MAKE:-make}" --no-print-directory PG_CONFIG="$1" all >&2
  # The Makefile names the folder in the same way.
  if [[ ${PROFILE:-release} == release ]]; then echo "$TARGET/package/pg$major"; else echo "$TARGET/package/pg$major-$PROFILE"; fi
}

say "from $("$from" --version) to $("$to" --version)"
PG_UPGRADE_FROM_PACKAGE=$(package "$from")
PG_UPGRADE_TO_PACKAGE=$(package "$to")
export PG_UPGRADE_FROM_PACKAGE PG_UPGRADE_TO_PACKAGE PG_UPGRADE_FROM=$from PG_UPGRADE_TO=$to

servers_in_memory
unset RUST_BACKTRACE INITDB_TEMPLATE
PG_CONFIG=$to RUST_LIB_BACKTRACE=1 "$here/test/nextest.sh" run -p snowflake_ids_server_tests --run-ignored only \
  -E 'test(/^(pg_upgrade|replicated_versions)::/)' "$@"
