#!/usr/bin/env bash
# demo.sh start: a throwaway server with the installed extension, tables with both kinds of ids, and a look at them.
# demo.sh stop: stops that server, and no other, and removes it.
set -Eeuo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/lib.sh"

# Says in which folder the demo's server lives.
state=$TARGET/demo/folder

# A server works in its data directory. That tells it from a process that came by its id after a crash.
is_running() {
  local data=$1 pid
  [[ -e $data/postmaster.pid ]] || return 1
  read -r pid <"$data/postmaster.pid"
  [[ /proc/$pid/cwd -ef $data ]]
}

server_stop() {
  local folder
  [[ -e $state ]] || return 0
  folder=$(<"$state")
  if is_running "$folder/data"; then
    as_server_user "$(pg bindir)/pg_ctl" stop --pgdata="$folder/data" --mode=fast --silent
  fi
  rm -rf "$folder" "$state"
  echo "The demo's server is stopped and removed."
}

# A port that nothing on this machine answers at.
free_port() {
  local port
  while true; do
    port=$((20000 + RANDOM % 10000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo "$port"
}

server_start() {
  local folder=$1 port=$2
  # Others on this machine can reach the port, so it asks for a password.
  as_server_user "$(pg bindir)/initdb" --pgdata="$folder/data" --username=demo --pwfile="$folder/password" \
    --auth=scram-sha-256 --encoding=UTF8 --no-locale --no-sync >"$TARGET/demo/initdb.log"
  cat >>"$folder/data/postgresql.conf" <<CONF
shared_preload_libraries = 'snowflake_ids'
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = '$folder'
max_wal_size = 4GB
CONF
  as_server_user "$(pg bindir)/pg_ctl" start --pgdata="$folder/data" --log="$folder/log" --silent --wait || {
    cat "$folder/log" >&2
    fail "The demo's server did not start; above is what it says."
  }
}

# Four sessions at once.
load() {
  local pid pids=() started=$SECONDS
  for _ in 1 2 3 4; do
    "${psql[@]}" --file=examples/demo/load.sql &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  echo "loaded in $((SECONDS - started)) seconds"
}

demo_start() {
  local folder port password psql
  server_stop
  mkdir -p "$TARGET/demo"
  folder=$(server_folder)
  echo "$folder" >"$state"
  port=$(free_port)
  password=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
  echo "$password" >"$folder/password"
  if is_root; then chown postgres: "$folder/password"; fi
  export PGHOST=127.0.0.1 PGPORT=$port PGUSER=demo PGDATABASE=postgres PGPASSWORD=$password
  psql=("$(pg bindir)/psql" --no-psqlrc --quiet --pset=pager=off --set=ON_ERROR_STOP=1)

  say "starting a server on port $port"
  server_start "$folder" "$port"
  trap 'echo "The demo stopped half way; its server still runs. To stop it:  make demo-stop" >&2' ERR
  say "creating the tables orders, 4 shards, each with a partition per month, and invoices"
  "${psql[@]}" --file=examples/demo/schema.sql
  say "loading 1 million orders and 100,000 invoices from 4 sessions"
  load
  "${psql[@]}" --file=examples/demo/show.sql
  printf '%s\n' "To look around:  psql postgresql://$PGUSER:$PGPASSWORD@$PGHOST:$PGPORT/$PGDATABASE" \
    "To stop it:      make demo-stop"
}

case $1 in
  start) demo_start ;;
  stop) if [[ -e $state ]]; then server_stop; else echo "The demo has no server."; fi ;;
esac
