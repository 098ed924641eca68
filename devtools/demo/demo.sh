#!/usr/bin/env bash
# demo.sh start: builds and installs the extension, and starts a throwaway server with it. The server's database "shop" has tables
# with both kinds of ids and a table for the browser; the script shows rows of these tables. The database "try" is empty, for
# README's SQL.
# demo.sh stop: stops and removes that server, and no other.
set -Eeuo pipefail
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"

# The file with the name of the server's folder.
state=$TARGET/demo/folder

demo_stop() {
  local folder
  [[ -e $state ]] || return 0
  folder=$(<"$state")
  server_stop "$folder"
  rm -rf "$folder" "$state"
  echo "The demo's server is stopped and removed."
}

# Runs four sessions at once.
load() {
  local pid pids=() started=$SECONDS
  for _ in 1 2 3 4; do
    "${psql[@]}" --file=examples/demo/load.sql &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  echo "loaded in $((SECONDS - started)) seconds"
}

# Shows what JavaScript makes of ids.
browser() {
  if ! command -v node >/dev/null; then
    echo "node is not installed: what JavaScript makes of the ids is not shown."
    return 0
  fi
  "${psql[@]}" --no-align --tuples-only --file=examples/demo/browser.sql | node examples/demo/browser.mjs
}

# quietly WHAT COMMAND...: runs the command, and prints WHAT and the progress. Prints the command's output only if it fails.
quietly() (
  local what=$1 log command='' began status=0
  shift
  log=$(mktemp)
  # A terminal's interrupt does not reach a command in the background.
  trap 'rm -f "$log"; [[ -z $command ]] || kill "$command" 2>/dev/null || true' EXIT

  printf '\n== %s\n' "$what"
  began=$SECONDS
  "$@" >"$log" 2>&1 </dev/null &
  command=$!
  while kill -0 "$command" 2>/dev/null; do
    sleep 1
    if ((SECONDS > began && (SECONDS - began) % 20 == 0)); then
      printf '   %d s, %d crates compiled\n' $((SECONDS - began)) "$(grep -cE '^ *(.\[[0-9;]*m)* *Compiling' "$log" || true)"
    fi
  done
  wait "$command" || status=$?
  command=
  if ((status > 0)); then
    cat "$log" >&2
    exit "$status"
  fi
  printf '   done in %d s\n' $((SECONDS - began))
)

demo_start() {
  local folder port password psql
  quietly 'setting up: packages and a tool, two minutes at first' "${MAKE:-make}" --no-print-directory setup
  quietly 'building and installing the extension, three minutes at first' "${MAKE:-make}" --no-print-directory install
  demo_stop
  mkdir -p "$TARGET/demo"
  folder=$(server_folder)
  echo "$folder" >"$state"
  port=$(free_port)
  password=$(new_password)
  keep_secret "$folder/password" <<<"$password"
  export PGHOST=127.0.0.1 PGPORT=$port PGUSER=demo PGDATABASE=postgres PGPASSWORD=$password
  psql=("$(pg bindir)/psql" --no-psqlrc --quiet --pset=pager=off --set=ON_ERROR_STOP=1)

  say "starting a server on port $port"
  server_create "$folder" "$port" "$folder/password" 'max_wal_size = 4GB'
  server_start "$folder"
  trap 'echo "The demo stopped half way; its server still runs. To stop it:  make demo-stop" >&2' ERR
  say "creating the tables orders, 4 shards, each with a partition per month, invoices, and posts"
  "${psql[@]}" --command='CREATE DATABASE shop' --command='CREATE DATABASE try'
  export PGDATABASE=shop
  "${psql[@]}" --file=examples/demo/schema.sql
  say "loading 1 million orders, 100,000 invoices and 10,000 posts from 4 sessions"
  load
  "${psql[@]}" --file=examples/demo/show.sql
  say "reading ids as a browser does: as JavaScript numbers"
  browser
  write_page "$TARGET/demo/status.html" "${psql[@]}"
  printf '%s\n' "Its status page: $TARGET/demo/status.html" "To look around:      psql postgresql://$PGUSER:$PGPASSWORD@$PGHOST:$PGPORT/shop" \
    "To try README's SQL: psql postgresql://$PGUSER:$PGPASSWORD@$PGHOST:$PGPORT/try" \
    "To stop it:          make demo-stop"
}

case $1 in
  start) demo_start ;;
  stop) if [[ -e $state ]]; then demo_stop; else echo "The demo has no server."; fi ;;
esac
