#!/usr/bin/env bash
# backend.sh [TEST]: runs the tests inside a server (`cargo pgrx test`). Installs a build of the extension that contains
# these tests.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

servers_in_memory
data=$(server_folder)
trap 'rm -rf "$data"' EXIT
export CARGO_PGRX_TEST_PGDATA=$data

# When cargo-pgrx runs the server as another user, it copies files with sudo. A PostgreSQL that this user owns needs no sudo.
if is_root; then
  export CARGO_PGRX_TEST_RUNAS=postgres
elif ! can_write "$(pg pkglibdir)" || ! can_write "$(pg sharedir)/extension"; then
  CARGO_PGRX_TEST_RUNAS=$(id -un)
  export CARGO_PGRX_TEST_RUNAS
fi
USER=$(id -un)
export USER PATH=$here/test/bin:$PATH
# In a server's environment this variable would put backtraces into errors that the tests compare.
unset RUST_BACKTRACE

cargo pgrx test "pg$PG_MAJOR" "$@"
