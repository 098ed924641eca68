#!/usr/bin/env bash
# page.sh: opens the status pages of servers in four states in a headless Chromium: quiet, busy with 200 tags, with a clock
# that was set back, and with a registry that is down. Chromium is Debian's. playwright-core and axe-core come from npm, below
# target/page, in the versions of pg_test/page/package.json. The pictures go to docs/images.
set -Eeuo pipefail
# shellcheck source=devtools/demo/cluster/servers.sh
source "$(dirname "$0")/../demo/cluster/servers.sh"

work=$TARGET/page
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false npm_config_loglevel=error

need_packages chromium gcc
command -v npm >/dev/null || need_packages npm

begin() {
  mkdir -p "$work/pages"
  cp pg_test/page/* "$work"
  (cd "$work" && npm install --silent)
  cluster=$(server_folder)
  trap at_exit EXIT
  new_password | keep_secret "$cluster/password"
  printf '\\set %s_password %s\n' shard "$(new_password)" | keep_secret "$cluster/secrets"
}

at_exit() {
  local status=$? data
  for data in "$cluster"/*/data; do
    [[ $status -eq 0 ]] || tail -n 20 "${data%/data}/log" >&2
    server_stop "${data%/data}"
  done
  rm -rf "$cluster"
}

# server NAME SETTING...: makes a new server. It takes a sample each second, because curves over seconds show the same as over hours.
server() {
  local name=$1
  shift
  server_place "$name"
  server_create "$cluster/$name" "$(<"$cluster/$name/port")" "$cluster/password" "cluster_name = '$name'" \
    'shared_buffers = 32MB' 'snowflake_ids.sample_interval = 1' 'snowflake_ids.segment_wait_timeout = 1000' "$@"
}

# Waits until a query on a server gives true.
becomes_true() {
  local tries
  for ((tries = 0; tries < 600; tries++)); do
    [[ $(value "$1" "$2") != t ]] || return 0
    sleep 0.2
  done
  fail "On server $1 it did not become true: $2"
}

page() { write_page "$work/pages/$1.html" on "$1"; }

quiet() {
  server quiet
  server_start "$cluster/quiet"
  on quiet --file=pg_test/page/quiet.sql >/dev/null
  becomes_true quiet 'SELECT count(*) > 8 FROM snowflake_ids.status_history'
  page quiet
}

busy() {
  local round
  server busy
  server_start "$cluster/busy"
  on busy --file=pg_test/page/busy.sql >/dev/null
  for round in {1..24}; do
    on busy --set=round="$((round % 6 + 1))" --file=pg_test/page/load.sql >/dev/null
  done &
  becomes_true busy 'SELECT (SELECT h.ids_per_second > 0 AND h.segment_ids_per_second > 0
    FROM snowflake_ids.status_history AS h ORDER BY h.sampled_at DESC LIMIT 1) AND count(*) > 16 FROM snowflake_ids.status_history'
  value busy 'SELECT json_agg(k) FROM known AS k' >"$work/pages/known.json"
  page busy
  wait
}

clock() {
  server clock "snowflake_ids.clock_wait_timeout = 100"
  LD_PRELOAD=$(false_clock "$cluster/clock") server_start "$cluster/clock"
  on clock --file=pg_test/page/quiet.sql >/dev/null
  becomes_true clock 'SELECT count(*) > 8 FROM snowflake_ids.status_history'
  step_clock "$cluster/clock" -600
  on clock --command='SELECT snowflake_nextval()' >/dev/null 2>&1 && fail 'An id came in spite of the clock.'
  becomes_true clock 'SELECT max(steps_back) > 0 FROM snowflake_ids.status_history'
  page clock
}

registry() {
  server registry
  server_start "$cluster/registry"
  on_with_secrets registry --file=examples/cluster/registry.sql
  server node
  server_start "$cluster/node"
  on_with_secrets node --set=registry_port="$(<"$cluster/registry/port")" --file=examples/cluster/node.sql
  on node --command="SELECT count(segment_nextval('invoices')) FROM generate_series(1, 10000)" >/dev/null
  server_stop "$cluster/registry"
  on node --command="SELECT count(segment_nextval('invoices')) FROM generate_series(1, 100000)" >/dev/null 2>&1 &&
    fail 'Ids of a tag came without the registry.'
  becomes_true node "SELECT bool_or(state = 'failing') FROM snowflake_ids.registry_status"
  page node
}

begin
say 'servers in four states'
quiet
busy
clock
registry
say 'their pages in Chromium'
cd "$work"
node page.mjs "$work/pages" "$OLDPWD/docs/images"
