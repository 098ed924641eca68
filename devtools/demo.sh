#!/usr/bin/env bash
# demo.sh start: starts a throwaway server with the installed extension. The server's database "shop" has tables with both kinds of
# ids and a table for the browser; the script shows rows of these tables. The database "try" is empty, for README's SQL.
# demo.sh stop: stops and removes that server, and no other.
set -Eeuo pipefail
# shellcheck source=devtools/demo-lib.sh
source "$(dirname "$0")/demo-lib.sh"

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

demo_start() {
  local folder port password psql
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
