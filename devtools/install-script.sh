#!/usr/bin/env bash
# install-script.sh --check|--update|--arrange FOLDER: works on the install script generated for the packaged extension below
# FOLDER. --check compares the generated script with the script in sql/install, to show what a change does to the SQL surface.
# --update writes the generated script to sql/install, in the order of the script there. --arrange replaces the generated script by
# the script in sql/install if both have the same content: the installed and tested script then has the shipped order. Comments that
# name an object's place in the sources are left out, because these places change with every line.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/lib.sh"

mode=$1 package=$2
version=$(sed -nE '0,/^version = /s/^version = "(.*)"/\1/p' Cargo.toml)
script=snowflake_ids--$version.sql
committed=sql/install/$script

made=$package$(pg sharedir)/extension/$script
generated() { sed -E '/^-- [^ ]+\.rs:[0-9]+$/d' "$made"; }

# The script whose order is kept: the committed script itself, or that of the version before for a new version.
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

# Prints one object a line, sorted: pgrx promises no order.
by_object() {
  tr '\n' '\f' | sed 's#/\* </end connected objects> \*/#\n#g' | sed 's/^\f*//' | sort | tr '\f' '\n'
}

# A script must not find the objects it calls in a schema to which others may write.
pinned='SET LOCAL search_path = pg_catalog, pg_temp;'
check_upgrades() {
  local upgrade
  for upgrade in sql/snowflake_ids--*--*.sql; do
    [[ ! -e $upgrade || $(without_first_comments "$upgrade") == "$pinned"* ]] || fail "$upgrade must begin with: $pinned"
  done
}

# Prints a script as one line, from its first statement on.
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
