#!/usr/bin/env bash
# next-version.sh VERSION: begins the next version after a release. Names it in Cargo.toml, Cargo.lock, META.json and the
# changelog, and writes an upgrade script without statements. Released files are not touched. Commits nothing; `make
# install-script` has to follow.
set -euo pipefail
# shellcheck source=devtools/package-lib.sh
source "$(dirname "$0")/package-lib.sh"

next=$1
[[ $next =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "Say which version comes next: make next-version VERSION=0.3.0"
[[ $next != "$version" && $(printf '%s\n' "$version" "$next" | sort --version-sort | tail -n 1) == "$next" ]] ||
  fail "$next does not come after $version."
is_released || fail "$version has no date in CHANGELOG.md: it is the version that is worked on."
git merge-base --is-ancestor "v$version" HEAD 2>/dev/null || fail "There is no tag v$version before this commit: release $version first."
[[ -z $(git status --porcelain) ]] || fail "The work tree has changes that are not committed."

say "$next after $version"
sed -i "0,/^version = \"$version\"/s//version = \"$next\"/" Cargo.toml
cargo update --quiet --offline --workspace
# The substitutions stop at meta-spec, whose version is that of the file's format.
old=${version//./\\.}
sed -i -E "1,/\"meta-spec\"/ { s/(\"version\": \")$old\"/\1$next\"/; s/--$old\.sql/--$next.sql/; s/(\"release_status\": \")[a-z]+/\1unstable/ }" META.json
sed -i "0,/^## /s//## $next (unreleased)\n\n## /" CHANGELOG.md
cat >"sql/snowflake_ids--$version--$next.sql" <<END
/* From $version to $next. Nothing that others could have put into a schema of theirs is found. */
SET LOCAL search_path = pg_catalog, pg_temp;
END
