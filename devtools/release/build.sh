#!/usr/bin/env bash
# build.sh FOLDER: builds the extension for PG_CONFIG below FOLDER, as it is shipped. The release profile of Cargo.toml
# applies, whatever the environment says, and no paths of this machine are in the library. The same commit and Rust give the same
# library, wherever the checkout is. The build has its own target folder, because cargo builds everything again for other flags.
set -euo pipefail
# shellcheck source=devtools/release/lib.sh
source "$(dirname "$0")/lib.sh"

folder=$1
while IFS= read -r name; do unset "$name"; done < <(compgen -e | grep -E '^(CARGO_PROFILE_|CARGO_INCREMENTAL|RUSTFLAGS)')

# Later flags win, and the target folder may be in the checkout. If the standard library's source is installed (rust-src), the
# compiler records the paths of its files, and otherwise paths below /rustc.
source=$(rustc --print sysroot)/lib/rustlib/src/rust
flags=("--remap-path-prefix=$source=/rustc/$(rustc --verbose --version | sed -n 's/^commit-hash: //p')"
  "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" "--remap-path-prefix=$PWD=/snowflake_ids"
  "--remap-path-prefix=$TARGET=/target")
CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && printf '%s' "${flags[*]}")
export CARGO_ENCODED_RUSTFLAGS
# pgrx compiles a C file in its build folder. Headers of another processor's server are below SERVER_ROOT, which may be in the target
# folder of another checkout.
export CFLAGS="-ffile-prefix-map=$TARGET/shipped=/target/shipped -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo"
CFLAGS+=${SERVER_ROOT:+" -ffile-prefix-map=$SERVER_ROOT="}

# pgrx formats the output of bindgen with rustfmt, and the library contains line numbers of this output. rustfmt uses the nearest
# settings file. Without the empty file made here, that would be the checkout's file, but only for a target folder in the checkout.
mkdir -p "$TARGET/shipped"
: >"$TARGET/shipped/rustfmt.toml"

rm -rf "$folder"
CARGO_TARGET_DIR=$TARGET/shipped cargo pgrx package --no-default-features --features "pg$major" \
  ${CARGO_BUILD_TARGET:+--target="$CARGO_BUILD_TARGET"} --pg-config "$PGRX_PG_CONFIG_PATH" --out-dir "$folder"
"$here/build/install-script.sh" --make "$folder"
