#!/usr/bin/env bash
# install-script.sh --make FOLDER: puts the generated install script of the extension packaged below FOLDER in order, and makes the
# upgrade scripts beside it, by the program in devtools/install-script.
# install-script.sh --check FOLDER: checks these scripts, and that what belongs to a release has not changed since.
# install-script.sh --release FOLDER: writes the install script to sql/install, for the commit of a release.
# install-script.sh --changed: prints the files of released scripts that are not as they were released.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

mode=$1 package=${2-}
script=snowflake_ids--$version.sql
committed=sql/install/$script
made() { echo "$package$(pg sharedir)/extension/$script"; }

# A script must not find the objects it calls in a schema to which others may write. Upgrade scripts begin with this statement.
pinned='SET LOCAL search_path = pg_catalog, pg_temp;'

changed() {
  local released file
  while IFS= read -r released; do
    while IFS= read -r file; do
      git diff --quiet "$released" -- "$file" || echo "$file"
    done < <(git ls-tree --name-only "$released" sql/install/ sql/upgrade/)
  done < <(git tag --list 'v[0-9]*') | sort -u
}

check() {
  local files
  grep -qxF "$pinned" "$(made)" || fail "$(made) lacks: $pinned"
  [[ ! -e $committed ]] || diff -u "$committed" "$(made)" ||
    fail "$committed is not what the sources make. If $version is not released yet, give: make install-script"
  files=$(changed)
  [[ -z $files ]] || fail 'These belong to a release, and have changed since:' "$files"
  echo "checked: $(basename --multiple "$(dirname "$(made)")"/*.sql | tr '\n' ' ')"
}

case $mode in
  --make) cargo run --quiet --package snowflake_ids_install_script -- "$(dirname "$(made)")" "$package$(pg pkglibdir)/snowflake_ids.so" ;;
  --check) check ;;
  --changed) changed ;;
  --release) install -D -m 644 "$(made)" "$committed" ;;
esac
