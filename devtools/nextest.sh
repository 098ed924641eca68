#!/usr/bin/env bash
# nextest.sh ARGUMENT...: cargo-nextest with these arguments, of the version that the tests are run with.
set -euo pipefail

"$(dirname "$0")/cargo-tool.sh" cargo-nextest 0.9.143
exec cargo nextest "$@"
