# The load on the demo's cluster: 8 sessions that insert rows, and their records of the rows that servers reported as committed.
# shellcheck shell=bash
# shellcheck source=devtools/demo/cluster/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

# The number of rows of one INSERT, and the least number of rows in all. With so many rows, chance makes the sizes of four shards
# differ by less than 2 %.
rows_at_once=50
rows_enough=200000

load_begin() {
  local n
  mkdir "$cluster/load"
  touch "$cluster/load/going"
  call_newest shard_3
  for n in 1 2 3 4; do session "coordinator_$n" coordinator & done
  for n in shard_1 shard_2 shard_3 newest_shard; do session "$n" "$n" & done
}

# session NAME SERVER: inserts until the load is over. If the server is gone, the session tries again and again to connect.
session() {
  local name=$1 server=$2 again=()
  for _ in {1..20}; do again+=(--file=examples/cluster/insert.sql); done
  while [[ -e $cluster/load/going ]]; do
    on "$server" --set=ON_ERROR_STOP=0 --set=VERBOSITY=sqlstate --set=rows=$rows_at_once --no-align --tuples-only \
      --field-separator=$'\t' "${again[@]}" >>"$cluster/load/$name.ids" 2>>"$cluster/load/$name.errors" || sleep 0.2
  done
}

# Sets the shard to which the last session connects next time.
call_newest() {
  ln -s "$1" "$cluster/$1.newest"
  mv -T "$cluster/$1.newest" "$cluster/newest_shard"
}

# Lets the load run until there are enough rows, for a minute at most.
load_end() {
  local deadline=$((SECONDS + 60))
  until [[ $(rows_in '*') -ge $rows_enough || $SECONDS -ge $deadline ]]; do sleep 0.2; done
  rm "$cluster/load/going"
  wait
}

# rows_in SESSION: prints the number of rows that servers reported to the session as committed; * means all sessions.
rows_in() { find "$cluster/load" -name "$1.ids" -exec cat {} + | echo $(($(wc -l) * rows_at_once)); }

# failures PATTERN: prints the number of statements that failed with a SQLSTATE that begins with the pattern.
failures() { cat "$cluster/load/"*.errors | grep --extended-regexp --count "ERROR:  ($1)" || true; }
