#!/usr/bin/env bash
# test-server.sh [ARGUMENT...]: the tests with throwaway servers against the installed extension, by cargo-nextest,
# which is given the arguments, such as a part of the name of a test.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/lib.sh"

# The servers begin with copies of one cluster: initdb costs more than most tests.
servers_in_memory
template=$(server_folder)
trap 'rm -rf "$template"' EXIT
as_server_user "$(pg bindir)/initdb" --no-sync --auth=trust --username=postgres --encoding=UTF8 --locale=C \
  --pgdata="$template/data" >/dev/null
# Each copy gets a WAL of its own.
rm "$template"/data/pg_wal/0*

# In a server's environment it puts backtraces into the errors that the tests compare.
unset RUST_BACKTRACE
# Tests wait for servers more than they compute, but the machine is to be busy, not drowned.
INITDB_TEMPLATE=$template/data RUST_LIB_BACKTRACE=1 \
  "$here/nextest.sh" run -p snowflake_ids_server_tests --test-threads "${TEST_THREADS:-$(($(nproc) * 2))}" "$@"
