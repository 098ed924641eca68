# The failovers and switchovers of the nodes under load.
# shellcheck shell=bash
# shellcheck source=devtools/test/patroni/load.sh
source "$(dirname "${BASH_SOURCE[0]}")/load.sh"

# Three rounds: the primary is lost, returns in one of three ways, and becomes the primary again.
trouble() {
  local back
  for back in rewound reinitialised emptied; do
    failover "$back"
    switchover
  done
}

# Kills the primary's Patroni and server. The node returns when ids are given again.
failover() {
  local how=$1 old
  old=$(primary) || fail 'There is no primary, or more than one.'
  event_begin "$old"
  node_kill "$old"
  event_end
  [[ $how != emptied ]] || rm -r "${cluster:?}/$old/data"
  node_begin "$old"
  await "$old runs again as a standby" 300 settled
  [[ $how == emptied || $(came_back "$old") == rewound ]] || fail "pg_rewind did not run on $old."
  if [[ $how == reinitialised ]]; then
    control reinit --force --wait ids "$old" >>"$cluster/control" 2>&1
    await "$old runs again as a standby, from a base backup" 300 settled
  fi
  event_report failover "$how"
  former=$old
}

# Makes the node that returned last the primary.
switchover() {
  local old
  old=$(primary) || fail 'There is no primary, or more than one.'
  event_begin "$old"
  control switchover --leader "$old" --candidate "$former" --force ids >>"$cluster/control" 2>&1
  event_end
  [[ $event_new == "$former" ]] || fail "The switchover was to $former, and $event_new is the primary."
  await "$old runs again as a standby" 300 settled
  event_report switchover "$(came_back "$old")"
}

# Prints how a former primary became a standby: by pg_rewind, or with nothing to undo.
came_back() {
  if tail -n "+$event_said" "$cluster/$1/said" | grep -q 'pg_rewind exit code=0'; then echo rewound; else echo followed; fi
}

event_begin() {
  sleep 3
  event_old=$1 event_worker=$(worker_id "$1") event_failures=$(failures) event_began=$EPOCHREALTIME
  event_said=$(wc -l <"$cluster/$1/said")
}

# Waits until ids are given again, and computes the figures of the event.
event_end() {
  local port last last_number first first_number
  port=$(<"$cluster/$event_old/port")
  await "another node than $event_old is the primary" 300 other_primary "$event_old"
  event_new=$(primary)
  await "rows are inserted on $event_new" 300 rows_flow "$port" "$event_began"
  read -r last last_number < <(last_at "$port")
  read -r first first_number < <(first_elsewhere "$port" "$event_began")
  event_pause=$(minus "$first" "$last") event_late=$(minus "$first" "$(promoted_at "$event_new")")
  event_gap=$((first_number - last_number - 1))
  event_failures=$(($(failures) - event_failures)) event_worker+=", then $(worker_id "$event_new")"
}

# event_report WHAT HOW_BACK: prints a line for the table.
event_report() {
  table+=("$(printf '| %s ' "$run" "$1" "$event_old to $event_new" "$event_pause" "$event_late" "$event_gap" \
    "$event_failures" "$event_worker" "$2")|")
  echo "${table[-1]}"
}

other_primary() { local now && now=$(primary) && [[ $now != "$1" ]]; }

rows_flow() { [[ -n $(first_elsewhere "$1" "$2") ]]; }

# Prints when a server began to take writes, by its log.
promoted_at() { awk '/ready to accept connections/ { at = $1 } END { print at }' "$cluster/$1/log"; }

minus() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a - b }'; }
