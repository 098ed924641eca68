# The load: 8 sessions that insert rows on the primary, wherever it is, and record the answers.
# shellcheck shell=bash
# shellcheck source=devtools/test/patroni/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

sessions=()
# What psql prints if a statement or a connection fails, with the SQLSTATE if the server gave one.
failure='(ERROR|FATAL): +[0-9A-Z]{5}|connection to server was lost'

load_begin() {
  local n
  mkdir "$cluster/load"
  touch "$cluster/load/going"
  sessions=()
  for n in {1..8}; do
    session "$n" &
    sessions+=($!)
  done
}

load_end() {
  rm -f "$cluster/load/going"
  [[ ${#sessions[@]} -eq 0 ]] || wait "${sessions[@]}"
  sessions=()
}

# Connects to the node that takes writes, for a hundred rows at a time. Waits a little after a failure.
session() {
  local n=$1 again=()
  for _ in {1..100}; do again+=(--file=devtools/test/patroni/insert.sql); done
  while [[ -e $cluster/load/going ]]; do
    anywhere "${again[@]}" 2>>"$cluster/load/$n.errors" | stamp >>"$cluster/load/$n.rows" || sleep 0.1
  done
}

anywhere() {
  PGHOST=127.0.0.1,127.0.0.1,127.0.0.1 PGPORT=$(cat "$cluster"/{a,b,c}/port | paste -sd,) PGTARGETSESSIONATTRS=read-write \
    PGCONNECT_TIMEOUT=2 PGUSER=demo PGPASSWORD=$(<"$cluster/password") PGDATABASE=postgres timeout 300 "$(pg bindir)/psql" \
    --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=VERBOSITY=verbose --no-align --tuples-only --field-separator=$'\t' "$@"
}

# Appends to each line of the input the time when the line was read.
stamp() {
  local line
  while IFS= read -r line; do printf '%s\t%s\n' "$line" "$EPOCHREALTIME"; done
}

# Prints when a session got the last row from the server at this port, and the largest number from that server.
last_at() {
  tail -qn 5000 "$cluster"/load/*.rows |
    awk -v port="$1" '$4 == port && $5 > at { at = $5 } $4 == port && $2 > number { number = $2 } END { print at, number }'
}

# Prints the time and number of the first row from another server after a given time; nothing if there is none.
first_elsewhere() {
  tail -qn 5000 "$cluster"/load/*.rows |
    awk -v port="$1" -v since="$2" '$4 != port && $5 > since && (!at || $5 < at) { at = $5; number = $2 }
      END { if (at) print at, number }'
}

failures() { cat "$cluster"/load/*.errors | grep -cE "$failure" || true; }

# Prints how often each kind of failure came.
failures_by_kind() {
  cat "$cluster"/load/*.errors | grep -oE "$failure" | sed -E 's/.*: +//' | sort | uniq -c |
    awk '{ n = $1; $1 = ""; printf "%s%d times%s", sep, n, $0; sep = ", " }'
}
