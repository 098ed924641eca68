#!/usr/bin/env bash
# release.sh check: checks whether the last commit may be released. Nothing may be uncommitted. Cargo.toml, META.json, the control
# file, the changelog, the install script and the tag must have the same version. Prints everything that is wrong at
# once.
# release.sh files PACKAGES IMAGE FOLDER: puts the release's files into FOLDER: packages, the folders of an image, the plain SQL
# for pg_tle, the sources, a list of the built-in crates (SBOM) and checksums. Files of other major versions stay there.
# TRY=1 continues if the version has no date or tag yet, to show what a release would be.
set -euo pipefail
# shellcheck source=devtools/release/lib.sh
source "$(dirname "$0")/lib.sh"

wrong=()
later() { if [[ -n ${TRY-} ]]; then echo "not yet: $1"; else wrong+=("$1"); fi; }

check_tag() {
  if [[ $(git rev-parse --quiet --verify "v$version^{commit}" || true) != "$(git rev-parse HEAD)" ]]; then
    later "the last commit has no tag v$version: git tag --annotate v$version"
  fi
  is_released || later "CHANGELOG.md has no date for it: ## $version ($(date --utc +%F))"
}

# Scripts of released versions never change, and later versions make their upgrade scripts from this one's install script.
check_scripts() {
  local file
  while IFS= read -r file; do wrong+=("$file is not the one that was released"); done < <("$here/build/install-script.sh" --changed)
  [[ -e sql/install/snowflake_ids--$version.sql ]] ||
    later "sql/install has no install script of it: make install-script"
}

check() {
  say "may $version be released"
  [[ -z $(git status --porcelain) ]] || wrong+=("the work tree has changes that are not committed")
  cargo test --quiet --package snowflake_ids_layers --test versions ||
    wrong+=("files say other versions: above")
  check_tag
  check_scripts
  [[ ${#wrong[@]} -eq 0 ]] || fail "" "This is no release of $version:" "${wrong[@]/#/- }"
  echo "it may"
}

# Prints the statements of snowflake_ids.sql that can run again: functions, rights and comments. A statement ends with a semicolon
# outside of $$.
plain_functions() {
  awk '
    !on && /^CREATE FUNCTION / { sub(/^CREATE/, "CREATE OR REPLACE"); on = 1; quotes = 0 }
    !on && /^(GRANT|REVOKE|COMMENT ON FUNCTION) / { print; next }
    on { print; quotes += gsub(/\$\$/, "&"); if (/;$/ && quotes % 2 == 0) on = 0 }' sql/plain/snowflake_ids.sql
}

# write_tle FILE: writes a script that makes the plain SQL an extension of pg_tle. An upgrade replaces the extension's functions. A
# version that changes the extension's tables needs upgrade statements of its own.
write_tle() (
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cat sql/plain/snowflake_ids.sql packaging/pg_tle/dump.sql >"$work/script"
  plain_functions >"$work/functions"
  sed -e "s/@VERSION@/$version/" -e "/^@SCRIPT@$/{r $work/script" -e 'd}' -e "/^@FUNCTIONS@$/{r $work/functions" -e 'd}' \
    packaging/pg_tle/install.sql >"$1"
)

files() {
  local packages=$1 image=$2 folder=$3 full sums
  full=$(package_version)
  install -d "$folder"
  # Packages of other major versions stay.
  find "$folder" -maxdepth 1 -type f ! -name "*[-_]${full}[-.]*" -delete
  find "$packages" -maxdepth 1 -type f \( -name "*_$full-*.deb" -o -name "*-$full-*.rpm" -o -name "*-$full-pg*.tar.gz" \) -exec cp {} "$folder" \;
  ((major < 18)) || tar --directory="$image" --sort=name --owner=0 --group=0 --numeric-owner --create . |
    gzip -9n >"$folder/snowflake_ids-$full-pg$major-$machine-image.tar.gz"
  write_tle "$folder/snowflake_ids_plain-$full-pg_tle.sql"
  # PGXN takes a zip file.
  git archive --format=zip --prefix="snowflake_ids-$version/" --output="$folder/snowflake_ids-$full.zip" HEAD
  git archive --format=tar --prefix="snowflake_ids-$version/" HEAD | gzip -9n >"$folder/snowflake_ids-$full.tar.gz"
  linked_crates | python3 "$here/release/sbom.py" snowflake_ids "$full" "$(rustc --version | cut -d' ' -f2)" \
    >"$folder/snowflake_ids-$full.cdx.json"
  sums=$(cd "$folder" && find . -maxdepth 1 -type f ! -name 'SHA256SUMS*' ! -name key.asc -printf '%P\n' | LC_ALL=C sort | xargs sha256sum)
  printf '%s\n' "$sums" >"$folder/SHA256SUMS"
  say "$folder"
  printf '%s\n' "$sums"
}

case $1 in
  check) check ;;
  files) files "$2" "$3" "$4" ;;
esac
