#!/usr/bin/env bash
# install-script.sh --check|--update|--arrange FOLDER: compares the install script that was generated for the packaged
# extension below FOLDER with the one in sql/install, which shows what a change does to the SQL surface; puts it there, in the
# order of the one before; or puts the one in sql/install in its place, where both say the same, so that what is installed and
# tested has the order that is shipped. Comments that say where in the sources an object comes from are left out, for they
# change with every line.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/lib.sh"

mode=$1 package=$2
version=$(sed -nE '0,/^version = /s/^version = "(.*)"/\1/p' Cargo.toml)
script=snowflake_ids--$version.sql
committed=sql/install/$script

made=$package$(pg sharedir)/extension/$script
generated() { sed -E '/^-- [^ ]+\.rs:[0-9]+$/d' "$made"; }

# The script whose order the committed one keeps: itself, or in a new version the one of the version before.
before() { if [[ -e $committed ]]; then echo "$committed"; else find sql/install -name '*.sql' | sort --version-sort | tail -n 1; fi; }

update() {
  local before new
  before=$(before)
  if [[ -n $before ]] && command -v python3 >/dev/null; then
    new=$(generated | python3 "$here/install-script-order.py" "$before")
  else
    new=$(generated)
  fi
  printf '%s\n' "$new" >"$committed"
}

# One object a line, sorted: pgrx writes them in an order that it does not promise to keep.
by_object() {
  tr '\n' '\f' | sed 's#/\* </end connected objects> \*/#\n#g' | sed 's/^\f*//' | sort | tr '\f' '\n'
}

# What a script calls must not be found in a schema that others may write to.
pinned='SET LOCAL search_path = pg_catalog, pg_temp;'
check_upgrades() {
  local upgrade
  for upgrade in sql/snowflake_ids--*--*.sql; do
    [[ ! -e $upgrade || $(without_first_comments "$upgrade") == "$pinned"* ]] || fail "$upgrade must begin with: $pinned"
  done
}

# A script in one line, from its first statement on.
without_first_comments() { sed -E '/^[[:space:]]*--/d' "$1" | tr '\n' ' ' | sed -E 's#^( |/\*([^*]|\*+[^*/])*\*+/)*##'; }

case $mode in
  --update) update ;;
  --arrange)
    if [[ -e $committed ]] && cmp --silent <(by_object <"$committed") <(generated | by_object); then
      install -m 644 "$committed" "$made"
    fi
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
