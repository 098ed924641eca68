#!/usr/bin/env bash
# Runs random SQL against the installed extension for SQLSMITH_SECONDS, in a throwaway server. Fails if the server crashed, or if
# the extension raised an internal error (XX000). The server's log is kept in target/sqlsmith.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

seconds=${SQLSMITH_SECONDS:-120}

need_sqlsmith() {
  command -v sqlsmith >/dev/null && return
  { command -v apt-get >/dev/null && can_become_root; } || fail "sqlsmith is missing: install it yourself."
  say 'installing sqlsmith'
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends sqlsmith
}

at_exit() {
  as_server_user "$(pg bindir)/pg_ctl" stop --pgdata="$work/data" --mode=immediate --silent || true
  rm -rf "$work"
}

on_server() { as_server_user "$(pg bindir)/psql" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --host="$work" --username=postgres "$@"; }

need_sqlsmith
kept=$TARGET/sqlsmith
mkdir -p "$kept"
work=$(server_folder)
trap at_exit EXIT
as_server_user "$(pg bindir)/initdb" --pgdata="$work/data" --username=postgres --auth=trust --encoding=UTF8 --no-locale \
  --no-sync >"$kept/initdb.log"
printf '%s\n' "shared_preload_libraries = 'snowflake_ids'" "listen_addresses = ''" "unix_socket_directories = '$work'" \
  'fsync = off' "log_line_prefix = '%p %e '" "statement_timeout = '1s'" "snowflake_ids.worker_id = 1" \
  "snowflake_ids.segment_wait_timeout = '100ms'" >>"$work/data/postgresql.conf"
as_server_user "$(pg bindir)/pg_ctl" start --pgdata="$work/data" --log="$work/log" --silent --wait
on_server postgres >"$kept/setup.log" <<'SQL'
CREATE DATABASE smith;
\c smith
CREATE EXTENSION snowflake_ids;
SELECT snowflake_ids.segment_create('invoices');
SELECT snowflake_ids.segment_create('orders', reset => 'day', format => '{YYYY}{MM}{DD}-{n:6}');
CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT segment_nextval('invoices'), note text);
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), invoice bigint REFERENCES invoices, at timestamptz);
-- No superuser: it would call what writes files and ends processes.
CREATE ROLE smith LOGIN;
GRANT USAGE ON SCHEMA snowflake_ids, snowflake_ids_internal TO smith;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_ids, snowflake_ids_internal TO smith;
GRANT ALL ON ALL TABLES IN SCHEMA public, snowflake_ids TO smith;
INSERT INTO invoices (note) SELECT 'n' FROM generate_series(1, 20);
INSERT INTO orders (invoice, at) SELECT i, now() FROM generate_series(1, 20) AS i;
SQL

say "sqlsmith for $seconds seconds"
status=0
as_server_user timeout "$seconds" sqlsmith --target="host=$work dbname=smith user=smith" --exclude-catalog \
  >"$kept/sqlsmith.log" 2>&1 || status=$?
cp "$work/log" "$kept/server.log"
[[ $status -eq 124 || $status -eq 0 ]] || echo "sqlsmith itself ended with status $status, see $kept/sqlsmith.log."
grep -cE ' ERROR: ' "$kept/server.log" | sed 's/$/ statements failed./' || true
if grep -nE 'terminated by signal|PANIC: |TRAP: ' "$kept/server.log"; then
  fail "The server crashed, see $kept/server.log."
fi
if grep -nE '^[0-9]+ XX' "$kept/server.log" | sort -t: -k3 -u | head -20 | tee "$kept/internal.log" | grep -iE 'snowflake|segment|pgrx|rust|panicked|unwrap'; then
  fail "Internal errors of ours, see $kept/internal.log."
fi
echo "No crash, and no internal error of ours. The log is $kept/server.log; internal errors of Postgres's own: $(wc -l <"$kept/internal.log")."
