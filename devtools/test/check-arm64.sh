#!/usr/bin/env bash
# check-arm64.sh: type-checks the core and the extension for Linux on arm64, with the headers of PG_CONFIG's server and of an
# arm64 C library. Rust's standard library for arm64 comes from rustup, or is checked from its source. The source is rustup's
# rust-src, Debian's source of the same version, or the folder RUST_SRC. Skipped if neither the library nor its source is there.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

target=aarch64-unknown-linux-gnu
headers=/usr/aarch64-linux-gnu/include

skip() {
  echo "arm64: skipped, $*"
  exit 0
}

# Prints the folder of the standard library's source.
library() {
  local folder
  for folder in "${RUST_SRC-}" "$sysroot/lib/rustlib/src/rust" "/usr/src/rustc-$(rustc --version | cut -d' ' -f2)"; do
    if [[ -n $folder && -e $folder/library/std ]]; then echo "$folder/library" && return; fi
  done
}

sysroot=$(rustc --print sysroot)
options=()
if [[ ! -e $sysroot/lib/rustlib/$target/lib ]]; then
  source=$(library)
  [[ -n $source ]] || skip "there is no standard library for it (rustup target add $target), nor its source (rustup component add rust-src)"
  # -Zbuild-std needs these on a stable Rust, and for a source that rustup did not install.
  export RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT=$source
  options=(-Zbuild-std)
fi
[[ $(uname -m) == aarch64 || -e $headers/stdio.h ]] || skip "there are no headers of its C library (apt-get install libc6-dev-arm64-cross)"
if [[ $(uname -m) != aarch64 ]]; then
  export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="-isystem $headers"
  export CC_aarch64_unknown_linux_gnu=clang CFLAGS_aarch64_unknown_linux_gnu="--target=aarch64-linux-gnu -isystem $headers"
fi

# The check has its own target folder, because the settings above would cause everything else to be built again.
CARGO_TARGET_DIR=$TARGET/arm64 cargo check "${options[@]}" --target "$target" --package snowflake_ids \
  --no-default-features --features "pg$PG_MAJOR"
