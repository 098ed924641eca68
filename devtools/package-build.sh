#!/usr/bin/env bash
# package-build.sh FOLDER: builds the extension for PG_CONFIG as it is shipped, below FOLDER: with the release profile of
# Cargo.toml, whatever the environment says, and without the paths of this machine. The same commit and Rust give the same
# library wherever the checkout lies. It has a target folder of its own, as other flags build everything anew.
set -euo pipefail
# shellcheck source=devtools/package-lib.sh
source "$(dirname "$0")/package-lib.sh"

folder=$1
while IFS= read -r name; do unset "$name"; done < <(compgen -e | grep -E '^(CARGO_PROFILE_|CARGO_INCREMENTAL|RUSTFLAGS)')

# Later ones come first, and the target folder may lie in the checkout. Where the standard library's source is installed (rust-src),
# the compiler names its files there, and else below /rustc.
source=$(rustc --print sysroot)/lib/rustlib/src/rust
flags=("--remap-path-prefix=$source=/rustc/$(rustc --verbose --version | sed -n 's/^commit-hash: //p')"
  "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" "--remap-path-prefix=$PWD=/snowflake_ids"
  "--remap-path-prefix=$TARGET=/target")
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && printf '%s' "${flags[*]}")
export CARGO_ENCODED_RUSTFLAGS
# pgrx compiles a C file in its build folder.
export CFLAGS="-ffile-prefix-map=$TARGET=/target -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo"

# pgrx has rustfmt format what bindgen wrote, and the library names lines of it: by the nearest settings, which are the checkout's
# only where the target folder lies in it. These are none.
mkdir -p "$TARGET/shipped"
: >"$TARGET/shipped/rustfmt.toml"

rm -rf "$folder"
CARGO_TARGET_DIR=$TARGET/shipped cargo pgrx package --no-default-features --features "pg$major" \
  --pg-config "$PGRX_PG_CONFIG_PATH" --out-dir "$folder"
