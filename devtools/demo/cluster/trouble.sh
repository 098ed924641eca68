# The disturbances of the demo's cluster under load.
# shellcheck shell=bash
# shellcheck source=devtools/demo/cluster/load.sh
source "$(dirname "${BASH_SOURCE[0]}")/load.sh"

load_and_trouble() {
  load_began=$(milliseconds)
  load_begin
  sleep 2
  shard_add
  sleep 1
  shard_kill
  sleep 1
  registry_stop
  load_end
  load_report
}

milliseconds() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

seconds() { printf '%d.%d s' $(($1 / 1000)) $(($1 % 1000 / 100)); }

# report WHEN WHAT FIGURES HELD: adds a row to the table that is shown at the end.
report() {
  on coordinator --set=at="$(seconds $(($1 - load_began)))" --set=what="$2" --set=figures="$3" --set=ok="$4" <<'SQL'
INSERT INTO report (at, what, figures, ok) VALUES (:'at', :'what', :'figures', :'ok');
SQL
}

# Adds a shard, which takes a bucket from each other shard.
shard_add() {
  local began failed joining joined
  echo 'adding a shard'
  began=$(milliseconds) failed=$(failures .)
  server_place shard_4
  server_begin shard_4
  joining=$(milliseconds)
  node_join shard_4
  joined=$(($(milliseconds) - joining))
  shard_fill shard_4 9 10 11
  failed=$(($(failures .) - failed))
  call_newest shard_4
  report "$began" 'a shard added' \
    "first id after $(seconds $joined); took over 3 of 12 buckets; $failed inserts failed" \
    $((joined < 2000 && failed == 0))
}

# Kills a shard and starts it again. Its sessions have to connect again, and its worker id has to be the same.
shard_kill() {
  local began gone failed rows worker again
  echo 'killing a shard, and starting it again'
  began=$(milliseconds) failed=$(failures .) worker=$(worker_id shard_2)
  server_kill shard_2
  sleep 2
  server_start "$cluster/shard_2"
  gone=$(($(milliseconds) - began)) rows=$(rows_in shard_2)
  for _ in {1..100}; do
    [[ $(rows_in shard_2) -eq $rows ]] || break
    sleep 0.1
  done
  failed=$(($(failures .) - failed)) rows=$(($(rows_in shard_2) - rows)) again=$(worker_id shard_2)
  report "$began" 'a shard killed, started again' \
    "gone for $(seconds $gone); $failed inserts failed and were tried again; worker id $worker, then $again" \
    $((rows > 0 && again == worker))
}

worker_id() { value "$1" 'SELECT coalesce(worker_id, -1) FROM snowflake_ids.status'; }

# Stops the registry until a node has missed it. Sessions must not notice, and nodes must find the registry again by themselves.
registry_stop() {
  local began gone failed rows missed
  echo 'stopping the registry, and starting it again'
  began=$(milliseconds) failed=$(failures .) rows=$(rows_in '*') missed=$(over_nodes failures)
  server_stop "$cluster/registry"
  sleep 5
  for _ in {1..50}; do
    [[ $(over_nodes failures) -eq $missed ]] || break
    sleep 0.2
  done
  gone=$(($(milliseconds) - began)) failed=$(($(failures .) - failed)) rows=$(($(rows_in '*') - rows))
  missed=$(($(over_nodes failures) - missed))
  server_start "$cluster/registry"
  for _ in {1..50}; do
    [[ $(over_nodes failures_in_a_row) -ne 0 ]] || break
    sleep 0.2
  done
  report "$began" 'the registry stopped, started again' \
    "gone for $(seconds $gone); $missed calls to it in vain; $rows rows meanwhile, $failed inserts failed" \
    $((rows > 0 && failed == 0 && $(over_nodes failures_in_a_row) == 0))
}

# Prints a sum over the nodes' rows in registry_status.
over_nodes() {
  local node sum=0
  for node in coordinator shard_{1..4}; do
    sum=$((sum + $(value "$node" "SELECT sum($1) FROM snowflake_ids.registry_status")))
  done
  echo $sum
}

# SQLSTATEs of class 08 and those that begin with 57P mean that a server is not there. No other failure may have happened, least of
# all a violation of a key by a repeated id.
load_report() {
  local failed
  failed=$(failures .)
  report "$(milliseconds)" 'the load over' \
    "$(rows_in '*') rows; of $failed failures $(failures '08|57P') because a server was not there" \
    $(($(rows_in '*') >= rows_enough && failed == $(failures '08|57P')))
}
