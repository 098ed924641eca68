#!/usr/bin/env bash
# test-upgrade.sh [ARGUMENT...]: builds the last release before this version, once. Then runs the tests that upgrade servers from
# its library to the installed one, and back. The arguments go to cargo-nextest.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/lib.sh"

version=$(sed -nE '0,/^version = /s/^version = "(.*)"/\1/p' Cargo.toml)
released=$(git tag --list 'v[0-9]*' --sort=version:refname | sed 's/^v//' | grep -vxF "$version" | tail -n 1)
[[ -n $released ]] || fail "No version was released before $version, or this checkout has no tags: git fetch --tags"

work=$TARGET/released/$released
package=$work/target/package/pg$PG_MAJOR
if [[ ! -e $package.whole ]]; then
  say "building $released, once"
  mkdir -p "$work/checkout"
  git archive "v$released" | tar --extract --directory "$work/checkout"
  "${MAKE:-make}" --no-print-directory -C "$work/checkout" TARGET="$work/target" CARGO_TARGET_DIR="$work/target" all
  touch "$package.whole"
fi

say "from $released"
SNOWFLAKE_IDS_RELEASED=$package "$here/test-server.sh" --run-ignored only -E 'test(/^upgrade_from_/)' "$@"
