#!/usr/bin/env bash
# patroni.sh [RUN...]: runs three nodes under Patroni, and 8 sessions that insert rows on the primary, wherever it is. Three
# failovers and three switchovers come meanwhile. Then counts ids that came twice and rows that were lost. Each run has its own
# nodes:
#   synchronous   with synchronous_mode; no row that a session was told of is lost, either
#   asynchronous  without it; rows may be lost, but no id comes twice
#   registry      like asynchronous, with ids from a registry on a fourth server
#   numbers       like asynchronous, and each node has its own configured worker id
# Each run takes six minutes. Patroni and etcd are Debian's, and are installed if they are missing. With systemd, Debian then
# starts a service of etcd, which is not used here. Everything runs on 127.0.0.1 and ends with the script.
set -Eeuo pipefail
# shellcheck source=devtools/test/patroni/events.sh
source "$(dirname "$0")/patroni/events.sh"

table=(
  '| run | event | primary | no row for, s | first row after the promotion, s | numbers passed over | failures | worker id | the former primary |'
  '| --- | --- | --- | --- | --- | --- | --- | --- | --- |'
)

run_patroni() {
  local name began=$SECONDS
  run=$1 synchronous=false numbered=false cluster=$(server_folder)
  [[ $run != synchronous ]] || synchronous=true
  [[ $run != numbers ]] || numbered=true
  say "$run"
  new_password | keep_secret "$cluster/password"
  etcd_begin
  for name in "${nodes[@]}"; do node_place "$name"; done
  node_begin a
  await 'a is the primary' 120 other_primary none
  node_begin b
  node_begin c
  await 'b and c are standbys' 180 settled
  if [[ $run == registry ]]; then registry_join; fi
  on a --file=devtools/test/patroni/schema.sql
  value "$([[ $run == registry ]] && echo registry || echo a)" "SELECT snowflake_ids.segment_create('rows')" >"$cluster/created"
  value a 'SELECT snowflake_nextval()' >>"$cluster/created"
  echo "worker ids before: $(worker_ids)"
  load_begin
  trouble
  sleep 3
  load_end
  echo "worker ids after:  $(worker_ids)"
  prove
  nodes_end
  rm -rf "$cluster"
  cluster=
  echo "$((SECONDS - began)) s"
}

# Makes a plain server the registry of the nodes.
registry_join() {
  printf '\\set %s_password %s\n' shard "$(new_password)" | keep_secret "$cluster/secrets"
  server_place registry
  server_begin registry
  on_with_secrets registry --file=examples/cluster/registry.sql
  on_with_secrets a --set=registry_port="$(<"$cluster/registry/port")" --file=examples/cluster/node.sql
}

prove() {
  local leader name acknowledged stored twice_ids twice_numbers lost worker_ids
  leader=$(primary)
  for name in "${nodes[@]}"; do
    await "$name has all rows" 60 has_rows_of "$name" "$leader"
  done
  IFS='|' read -r acknowledged stored twice_ids twice_numbers lost worker_ids < <(
    cat "$cluster"/load/*.rows | on "$leader" --no-align --tuples-only --file=devtools/test/patroni/proof.sql
  )
  proof+=("$run: $acknowledged rows acknowledged, $stored stored, $lost of the former lost;")
  proof[-1]+=" $twice_ids ids twice, $twice_numbers numbers twice; $worker_ids worker ids; failures: $(failures_by_kind)"
  echo "${proof[-1]}"
  ((acknowledged > 1000 && twice_ids == 0 && twice_numbers == 0)) || fail 'An id came twice, or there were too few.'
  [[ $synchronous == false || $lost -eq 0 ]] || fail 'Rows were lost that sessions were told of.'
}

has_rows_of() { [[ $(value "$1" 'SELECT count(*) FROM rows') == "$(value "$2" 'SELECT count(*) FROM rows')" ]]; }

at_exit() {
  local status=$?
  if [[ -n $cluster ]]; then
    [[ $status -eq 0 ]] || show_logs
    load_end || true
    nodes_end || true
    rm -rf "$cluster"
  fi
}

need_packages patroni etcd-server etcd-client
trap at_exit EXIT
trap 'exit 130' INT TERM
runs=("$@") proof=()
[[ $# -gt 0 ]] || runs=(synchronous asynchronous registry numbers)
for run in "${runs[@]}"; do run_patroni "$run"; done
say 'what happened'
printf '%s\n' "${table[@]}"
say 'what held'
printf '%s\n' "${proof[@]}"
