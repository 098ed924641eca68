#!/usr/bin/env bash
# install-script.sh --check|--update FOLDER: compares the install script that was generated for the packaged
# extension below FOLDER with the one in sql/install, or puts it there. The committed script shows what a
# change does to the SQL surface. Comments that say where in the sources an object comes from are left out,
# for they change with every line.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/lib.sh"

mode=$1 package=$2
version=$(sed -nE '0,/^version = /s/^version = "(.*)"/\1/p' Cargo.toml)
script=snowflake_ids--$version.sql
committed=sql/install/$script

generated() { sed -E '/^-- [^ ]+\.rs:[0-9]+$/d' "$package$(pg sharedir)/extension/$script"; }

# One object a line, sorted: pgrx writes them in an order that it does not promise to keep.
by_object() {
  tr '\n' '\f' | sed 's#/\* </end connected objects> \*/#\n#g' | sed 's/^\f*//' | sort | tr '\f' '\n'
}

# What a script calls must not be found in a schema that others may write to.
pinned='SET LOCAL search_path = pg_catalog, pg_temp;'
check_upgrades() {
  local upgrade first
  for upgrade in sql/snowflake_ids--*--*.sql; do
    [[ -e $upgrade ]] || continue
    first=$(sed -nE '/^[[:space:]]*(--.*|\/\*.*\*\/)?$/!{p;q}' "$upgrade")
    [[ $first == "$pinned" ]] || fail "$upgrade must begin with: $pinned"
  done
}

case $mode in
  --update)
    mkdir -p "$(dirname "$committed")"
    generated >"$committed"
    ;;
  --check)
    [[ -e $committed ]] || fail "$committed is missing. Give: make install-script"
    diff -u <(by_object <"$committed") <(generated | by_object) ||
      fail "$committed is not what the sources generate. Where that is meant, give: make install-script"
    grep -qxF "$pinned" "$committed" || fail "$committed lacks: $pinned"
    check_upgrades
    echo "$committed is what the sources generate"
    ;;
esac
