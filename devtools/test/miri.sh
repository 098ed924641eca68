#!/usr/bin/env bash
# Runs tests of the core's generator, alone and under threads, with miri, if miri is installed.
set -euo pipefail

if RUSTUP_AUTO_INSTALL=0 cargo +nightly miri --version >/dev/null 2>&1; then
  cargo +nightly miri test -p snowflake_ids_core --lib --test core -- generator:: threads::
else
  echo "miri: skipped, it is not installed (rustup component add --toolchain nightly miri rust-src)"
fi
