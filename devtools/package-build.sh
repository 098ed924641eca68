#!/usr/bin/env bash
# package-build.sh FOLDER: builds the extension for PG_CONFIG below FOLDER, as it is shipped. The release profile of Cargo.toml
# applies, whatever the environment says, and no paths of this machine are in the library. The same commit and Rust give the same
# library, wherever the checkout is. The build has its own target folder, because other flags build everything again.
set -euo pipefail
# shellcheck source=devtools/package-lib.sh
source "$(dirname "$0")/package-lib.sh"

folder=$1
while IFS= read -r name; do unset "$name"; done < <(compgen -e | grep -E '^(CARGO_PROFILE_|CARGO_INCREMENTAL|RUSTFLAGS)')

# Later flags win, and the target folder may be in the checkout. The compiler names files of the standard library's source if it
# is installed (rust-src), and otherwise names below /rustc.
source=$(rustc --print sysroot)/lib/rustlib/src/rust
flags=("--remap-path-prefix=$source=/rustc/$(rustc --verbose --version | sed -n 's/^commit-hash: //p')"
  "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" "--remap-path-prefix=$PWD=/snowflake_ids"
  "--remap-path-prefix=$TARGET=/target")
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && printf '%s' "${flags[*]}")
export CARGO_ENCODED_RUSTFLAGS
# pgrx compiles a C file in its build folder.
export CFLAGS="-ffile-prefix-map=$TARGET=/target -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo"

# pgrx has rustfmt format the output of bindgen, and the library names lines of it. rustfmt uses the nearest settings file. That
# would be the checkout's only if the target folder is in the checkout, so this file sets nothing instead.
mkdir -p "$TARGET/shipped"
: >"$TARGET/shipped/rustfmt.toml"

rm -rf "$folder"
CARGO_TARGET_DIR=$TARGET/shipped cargo pgrx package --no-default-features --features "pg$major" \
  --pg-config "$PGRX_PG_CONFIG_PATH" --out-dir "$folder"
