#!/usr/bin/env bash
# arm64.sh: tests on arm64, in what devtools/build/arm64.sh makes: the SQL surface, interleavings, the core without its simulations,
# and some tests with servers. Then servers of both processors share a registry, and take each other's data directories. Emulation
# is slow, and orders memory as this machine's processor does: `make loom` and `make miri` try weaker orders.
# ARM64_CORE and ARM64_SERVER are nextest's expressions for the tests to run.
set -euo pipefail
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"

core=${ARM64_CORE:-not test(/simulation|registries|removal|fuzz|refill_locks/)}
server=${ARM64_SERVER:-test(/^(crash|durable|worker_crash|parallel|copies|uuid)::/)}

# on_host COMMAND...: runs the command with programs for this machine's processor. The servers of PG_CONFIG stay those of arm64.
on_host() { env -u CARGO_BUILD_TARGET "$@"; }

step() {
  say "arm64: $*"
  "$@"
}

tests() {
  step on_host "$here/test/nextest.sh" --version
  step "${MAKE:-make}" install
  step "${MAKE:-make}" installcheck isolationcheck
  step on_host "${MAKE:-make}" test-server FILTER="$server"
  step "$here/test/nextest.sh" run -p snowflake_ids_core --features guards -E "$core"
}

# start FOLDER PG_CONFIG: starts the server in the folder by the programs of this PG_CONFIG, and makes it unless it is there.
start() {
  local folder=$1
  [[ -e $folder/data ]] || PG_CONFIG=$2 server_create "$folder" "$(free_port)" "$work/password" "snowflake_ids.worker_id = ${3:-auto}"
  PG_CONFIG=$2 server_start "$folder"
}

port() { sed -n 4p "$1/data/postmaster.pid"; }

# sql FOLDER STATEMENT...
sql() {
  local folder=$1
  shift
  "$("$HOST_PG_CONFIG" --bindir)/psql" --no-psqlrc --quiet --no-align --tuples-only --set=ON_ERROR_STOP=1 --host="$folder" \
    --port="$(port "$folder")" --username=demo --dbname=postgres "${@/#/--command=}"
}

tag="SELECT snowflake_ids.segment_create('orders')"
table="CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n bigint UNIQUE DEFAULT segment_nextval('orders'))"
rows='INSERT INTO orders SELECT FROM generate_series(1, 2000)'

# share REGISTRY NODE: a registry and a node, by these two PG_CONFIGs. All rows of the node get into the registry's table.
share() {
  local registry=$work/registry node=$work/node rows_of_both
  rm -rf "$registry" "$node"
  as_server_user mkdir "$registry" "$node"
  start "$registry" "$1"
  start "$node" "$2"
  sql "$registry" 'CREATE EXTENSION snowflake_ids' "$tag" "SELECT snowflake_ids.registry_allow('shard', password => '$PGPASSWORD')" >/dev/null
  sql "$node" 'CREATE EXTENSION snowflake_ids' \
    "SELECT snowflake_ids.registry_join('host=127.0.0.1 port=$(port "$registry") dbname=postgres user=shard password=$PGPASSWORD')" >/dev/null
  sql "$registry" "$table" "$rows"
  sql "$node" "$table" "$rows"
  sql "$node" 'COPY orders TO STDOUT' | sql "$registry" 'COPY orders FROM STDIN'
  rows_of_both=$(sql "$registry" 'SELECT count(*) FROM orders')
  [[ $rows_of_both == 4000 ]] || fail "The registry has $rows_of_both rows, not 4000."
  [[ $(sql "$node" 'SELECT scope FROM snowflake_ids.status') == 'shared registry' ]] || fail 'The node has no lease from the registry.'
  PG_CONFIG=$2 server_stop "$node"
  PG_CONFIG=$1 server_stop "$registry"
  echo "ok: $rows_of_both rows of both, no id twice"
}

# move FROM TO: a server by the first PG_CONFIG, and its copied data directory by the second.
move() {
  local original=$work/original copy=$work/copy last refusal
  rm -rf "$original" "$copy"
  as_server_user mkdir "$original" "$copy"
  start "$original" "$1" 5
  sql "$original" 'CREATE EXTENSION snowflake_ids' "$tag" "$table" "$rows" >/dev/null
  last=$(sql "$original" 'SELECT max(id) FROM orders')
  PG_CONFIG=$1 server_stop "$original"
  cp -a "$original/data" "$copy"
  sed -i "s|$original|$copy|" "$copy/data/postgresql.conf"
  start "$copy" "$2"
  if refusal=$(sql "$copy" "$rows" 2>&1); then fail 'The copy issues ids.'; fi
  [[ $refusal == *'this data directory is a copy'* ]] || fail "The copy says: $refusal"
  sql "$copy" 'SELECT snowflake_ids.state_adopt()' "$rows" >/dev/null
  [[ $(sql "$copy" "SELECT count(*), min(id) FILTER (WHERE id > $last) IS NOT NULL FROM orders") == '4000|t' ]] ||
    fail 'The ids of the copy do not go on above those of the original.'
  PG_CONFIG=$2 server_stop "$copy"
  echo 'ok: the copy is known; adopted, its ids go on above those of the original'
}

both() {
  servers_in_memory
  work=$(server_folder)
  trap 'for folder in "$work"/*/; do server_stop "$folder" || true; done; rm -rf "$work"' EXIT
  PGPASSWORD=$(new_password)
  export PGPASSWORD
  keep_secret "$work/password" <<<"$PGPASSWORD"
  [[ -e $("$HOST_PG_CONFIG" --sharedir)/extension/snowflake_ids.control ]] ||
    fail "The extension is not installed for $HOST_PG_CONFIG. Give: make install"
  step share "$HOST_PG_CONFIG" "$PG_CONFIG"
  step share "$PG_CONFIG" "$HOST_PG_CONFIG"
  step move "$HOST_PG_CONFIG" "$PG_CONFIG"
  step move "$PG_CONFIG" "$HOST_PG_CONFIG"
}

[[ ${1-} == both ]] || tests
[[ $(uname -m) == aarch64 ]] || both
