#!/usr/bin/env bash
# nextest.sh ARGUMENT...: runs cargo-nextest with these arguments, in the version that the tests need.
set -euo pipefail

"$(dirname "$0")/../build/cargo-tool.sh" cargo-nextest 0.9.143
exec cargo nextest "$@"
