#!/usr/bin/env bash
# cluster.sh start: starts a registry, three shards and a coordinator, inserts from 8 sessions, and disturbs the cluster
# meanwhile. Then prints a table of the checks with their results, and fails if a check failed.
# cluster.sh stop: stops and removes these servers, and no others.
set -Eeuo pipefail
# shellcheck source=devtools/demo/cluster/trouble.sh
source "$(dirname "$0")/cluster/trouble.sh"

# The file with the name of the servers' folder.
state=$TARGET/demo-cluster/folder

demo_start() {
  cluster_stop
  say 'starting a registry, a coordinator and three shards'
  cluster_start
  say '8 sessions insert orders and invoices, 4 at the coordinator and 4 on shards'
  load_and_trouble
  say 'what happened, and what held'
  prove
  write_page "$TARGET/demo-cluster/status.html" on coordinator
  printf '%s\n' "Its status page: $TARGET/demo-cluster/status.html" "To look around:  psql $(address coordinator)" "                 psql $(address registry)" \
    'To stop it:      make demo-cluster-stop'
  [[ $(value coordinator 'SELECT bool_and(ok) FROM report') == t ]] || fail 'Something did not hold, see above.'
}

cluster_start() {
  local name
  mkdir -p "$TARGET/demo-cluster"
  cluster=$(server_folder)
  echo "$cluster" >"$state"
  trap at_exit EXIT
  # Otherwise a command could take the interrupt for itself, and the demo would continue.
  trap 'exit 130' INT
  new_password | keep_secret "$cluster/password"
  printf '\\set %s_password %s\n' shard "$(new_password)" peer "$(new_password)" | keep_secret "$cluster/secrets"

  for name in registry coordinator shard_{1,2,3}; do server_place "$name"; done
  each server_begin registry coordinator shard_{1,2,3}
  on_with_secrets registry --file=examples/cluster/registry.sql
  each node_join coordinator shard_{1,2,3}
  each node_route coordinator shard_{1,2,3}
  on coordinator --file=examples/cluster/report.sql
}

# Leaves the servers running, and nothing else.
at_exit() {
  local status=$?
  rm -f "$cluster/load/going"
  wait
  [[ $status -eq 0 ]] || echo 'The servers still run. To stop and remove them:  make demo-cluster-stop' >&2
}

cluster_stop() {
  local cluster data
  [[ -e $state ]] || return 0
  cluster=$(<"$state")
  rm -f "$cluster/load/going"
  for data in "$cluster"/*/data; do server_stop "${data%/data}"; done
  rm -rf "$cluster" "$state"
  echo "The cluster's servers are stopped and removed."
}

prove() {
  cat "$cluster/load/"*.ids | on coordinator --command='COPY acknowledged FROM STDIN'
  on coordinator --set=table=orders --file=examples/cluster/proof_of_table.sql
  on coordinator --set=table=invoices --file=examples/cluster/proof_of_table.sql
  on coordinator --file=examples/cluster/proof_of_nodes.sql
  on coordinator --file=examples/cluster/show.sql
}

case $1 in
  start) demo_start ;;
  stop) if [[ -e $state ]]; then cluster_stop; else echo "The demo has no cluster."; fi ;;
esac
