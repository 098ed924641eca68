#!/usr/bin/env bash
# next-version.sh VERSION: begins the next version after a release. Names it in Cargo.toml, Cargo.lock, META.json and the
# changelog, and keeps the install script of the version before in sql/install. Commits nothing.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

next=$1
[[ $next =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "Say which version comes next: make next-version VERSION=1.1.0"
[[ $next != "$version" && $(printf '%s\n' "$version" "$next" | sort --version-sort | tail -n 1) == "$next" ]] ||
  fail "$next does not come after $version."
[[ -z $(git status --porcelain) ]] || fail "The work tree has changes that are not committed."
git merge-base --is-ancestor "v$version" HEAD 2>/dev/null || echo "note: no tag v$version is before this commit: was $version released?"
# Upgrade scripts of later versions begin with the install script of this one.
[[ -e sql/install/snowflake_ids--$version.sql ]] || "${MAKE:-make}" --no-print-directory install-script

say "$next after $version"
sed -i "0,/^version = \"$version\"/s//version = \"$next\"/" Cargo.toml
cargo update --quiet --offline --workspace
# The substitutions stop at meta-spec, whose version is that of the file's format.
sed -i -E "1,/\"meta-spec\"/ { s/(\"version\": \")${version//./\\.}\"/\1$next\"/; s/(\"release_status\": \")[a-z]+/\1unstable/ }" META.json
sed -i "0,/^## /s//## $next (unreleased)\n\n## /" CHANGELOG.md
