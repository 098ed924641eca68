# The servers of the demo's cluster.
# shellcheck shell=bash
# shellcheck source=devtools/servers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../servers.sh"

# The folder that has a folder for each server, with the server's name.
cluster=

# Runs psql on a server. The connection's variables are not exported, because servers that are started here would inherit them and
# use them for connections to other servers.
on() {
  local server=$1
  shift
  PGHOST=127.0.0.1 PGPORT=$(<"$cluster/$server/port") PGUSER=demo PGPASSWORD=$(<"$cluster/password") \
    PGDATABASE=postgres "$(pg bindir)/psql" --no-psqlrc --quiet --pset=pager=off --set=ON_ERROR_STOP=1 "$@"
}

# Runs psql on a server, with the passwords of roles as psql variables.
on_with_secrets() {
  local server=$1
  shift
  on "$server" --file="$cluster/secrets" "$@"
}

value() { on "$1" --tuples-only --no-align --command="$2"; }

address() { echo "postgresql://demo:$(<"$cluster/password")@127.0.0.1:$(<"$cluster/$1/port")/postgres"; }

# Calls FUNCTION for each argument, for all at the same time.
each() {
  local function=$1 argument pid pids=()
  shift
  for argument; do
    "$function" "$argument" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
}

# Makes a folder for a server, and chooses a port that the server keeps over restarts.
server_place() {
  local port
  while port=$(free_port) && grep -qsx "$port" "$cluster"/*/port; do :; done
  mkdir "$cluster/$1"
  if is_root; then chown postgres: "$cluster/$1"; fi
  echo "$port" >"$cluster/$1/port"
}

# PostgreSQL's hash of a bigint folds its two halves into one. If all sequences began at zero, ids of one second and of the next
# would fold into the same value. Shards would then be less even than by chance.
server_begin() {
  server_create "$cluster/$1" "$(<"$cluster/$1/port")" "$cluster/password" "cluster_name = '$1'" \
    'shared_buffers = 32MB' "snowflake_ids.sequence_start = 'random'"
  server_start "$cluster/$1"
}

# false_clock FOLDER: prints the library that gives a server the clock in the file FOLDER/clock, such as -600 (seconds) or +2h.
false_clock() {
  step_clock "$1" +0
  cc -shared -fPIC -DSHARED="\"$1/clock\"" -o "$1/clock.so" pg_test/server/src/clock.c
  chmod a+r "$1/clock.so"
  echo "$1/clock.so"
}

# step_clock FOLDER OFFSET: sets the clock; +0 is the true time.
step_clock() {
  echo "$2" >"$1/clock.new"
  chmod a+r "$1/clock.new"
  mv "$1/clock.new" "$1/clock"
}

# Kills the postmaster and its children at once, as a loss of power does. A postmaster that nobody reaps would look alive for
# ever, so its lock files are removed, too.
server_kill() {
  local data=$cluster/$1/data processes
  while mapfile -t processes < <(processes_in "$data") && [[ ${#processes[@]} -gt 0 ]]; do
    kill -9 "${processes[@]}" 2>/dev/null || true
    sleep 0.05
  done
  rm -f "$data/postmaster.pid" "$cluster/$1"/.s.PGSQL.*
}

# Prints the processes of a server, which all work in its data directory.
processes_in() {
  local process
  for process in /proc/[0-9]*; do
    if [[ $process/cwd -ef $1 ]]; then echo "${process#/proc/}"; fi
  done
}
