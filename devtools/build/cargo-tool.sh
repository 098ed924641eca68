#!/usr/bin/env bash
# cargo-tool.sh NAME VERSION [FEATURES]: builds a cargo command, or another program of a crate, in exactly this version below
# target/, unless it is there already. Leaves ~/.cargo/bin alone.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

name=$1 version=$2 features=${3-}

if [[ $name == cargo-* ]]; then command=(cargo "${name#cargo-}"); else command=("$name"); fi
found=$("${command[@]}" --version 2>/dev/null) || true
# Some programs print a commit after the version, and more lines. Some put a v before the version.
[[ "${found/ v/ } " != "$name $version"[[:space:]]* ]] || exit 0

say "building $name $version (once; one to three minutes)"
# A debug build without default features takes a third of the time, and the program is quick enough.
CARGO_PROFILE_DEV_DEBUG=0 cargo install "$name" --version "=$version" --root "$TARGET/tools" \
  --locked --debug --no-default-features --features "$features"
