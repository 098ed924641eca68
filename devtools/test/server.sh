#!/usr/bin/env bash
# server.sh [ARGUMENT...]: runs the tests with throwaway servers against the installed extension. The arguments go to
# cargo-nextest, such as a part of a test's name.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

# Servers begin with copies of one cluster, because initdb takes longer than most tests.
servers_in_memory
template=$(server_folder)
trap 'rm -rf "$template"' EXIT
as_server_user "$(pg bindir)/initdb" --no-sync --auth=trust --username=postgres --encoding=UTF8 --locale=C \
  --pgdata="$template/data" >/dev/null
# Each copy gets a WAL of its own.
rm "$template"/data/pg_wal/0*

# In a server's environment this variable would put backtraces into errors that the tests compare.
unset RUST_BACKTRACE
# Tests wait for servers more than they compute. More tests than cores keep the machine busy without an overload.
INITDB_TEMPLATE=$template/data RUST_LIB_BACKTRACE=1 \
  "$here/test/nextest.sh" run -p snowflake_ids_server_tests --test-threads "${TEST_THREADS:-$(($(nproc) * 2))}" "$@"
