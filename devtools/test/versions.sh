#!/usr/bin/env bash
# versions.sh [--smoke] [MAJOR...]: runs the suites on each major version of PostgreSQL, on all six if none is named.
# devtools/build/server.sh builds a server for each, or PG_CONFIGS='/path/to/bin/pg_config ...' names servers. The results go into the
# table of docs/versions.md. With --smoke, only installcheck, isolationcheck and some server tests run, with a build that is quick to
# make, and no table is written. These tests run on the first of the versions whose server can be had. The packages below target/ stay
# as they are.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

logs=$TARGET/versions/logs
table=docs/versions.md

# The tests of features that a new version of PostgreSQL is most likely to break: recovery, promotion, COPY, parsing and planning of
# nextval, settings, workers.
smoke='test(/^(crash|promotion|bound_sequence|preload|worker_crash|parallel|standby)::/)'

# Prints the pg_config of a major version: one of PG_CONFIGS, or the pg_config of a server built here.
pg_config_of() {
  local pg_config
  for pg_config in ${PG_CONFIGS-}; do
    if [[ $("$pg_config" --version) =~ ^PostgreSQL\ $1[^0-9] ]]; then
      echo "$pg_config"
      return
    fi
  done
  "$here/build/server.sh" "$1"
}

# step TARGET: makes the target, and also writes its output to a file.
step() {
  say "$version: $1"
  "${MAKE:-make}" --no-print-directory PG_CONFIG="$pg_config" "$@" 2>&1 | tee "$logs/$major-$1.log"
}

# Prints the last lines of pg_regress, nextest and cargo test, in all their versions, as "24 passed" or "23 passed, 1 failed".
outcome() {
  awk -v suite="$1" '
    match($0, /All [0-9]+ tests passed/) { passed = $(NF - 2) + 0; ran = 1 }
    match($0, /[0-9]+ of [0-9]+ tests failed/) {
      split(substr($0, RSTART), words, " "); failed = words[1]; passed = words[3] - words[1]; ran = 1
    }
    /^test result: / { passed += $4; failed += $6; ran = 1 }
    /^ *Summary \[/ {
      passed = failed = 0; ran = 1
      for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) passed = $(i - 1); if ($i ~ /^failed/) failed = $(i - 1) }
    }
    END { print !ran ? "did not run" : failed ? passed " passed, " failed " failed" : passed " passed" }
  ' "$logs/$major-$1.log"
}

# The suites of the table, in the order of its columns. test-backend runs first, because the build that it installs contains tests.
suites=(installcheck isolationcheck test-backend test-server)

test_all() {
  local suite row="| $version |"
  step test-backend || failed+=("$version test-backend")
  step install || { failed+=("$version install"); return; }
  for suite in installcheck isolationcheck test-server; do
    step "$suite" || failed+=("$version $suite")
  done
  for suite in "${suites[@]}"; do row+=" $(outcome "$suite") |"; done
  rows[major]=$row
}

test_smoke() {
  local suite
  # `make test` builds most of what this profile needs.
  step install PROFILE=dev PACKAGE="$TARGET/versions/packages/$major" || { failed+=("$version install"); return; }
  for suite in installcheck isolationcheck; do step "$suite" || failed+=("$version $suite"); done
  step test-server FILTER="$smoke" || failed+=("$version test-server")
}

# Rows of versions that did not run stay unchanged.
write_table() {
  local line others
  others=$(sed -n '/<!-- results -->/,/<!-- end -->/p' "$table" | grep -E '^\| [0-9]+' || true)
  while IFS= read -r line; do
    [[ $line =~ ^\|\ ([0-9]+) && -z ${rows[BASH_REMATCH[1]]-} ]] || continue
    rows[BASH_REMATCH[1]]=$line
  done <<<"$others"
  {
    sed '/<!-- results -->/q' "$table"
    printf '\n| PostgreSQL | installcheck | isolationcheck | test-backend | test-server |\n| --- | --- | --- | --- | --- |\n'
    # Bash lists an array with numbers as keys in their order.
    printf '%s\n' "${rows[@]}"
    echo
    sed -n '/<!-- end -->/,$p' "$table"
  } >"$TARGET/versions/table.md"
  cp "$TARGET/versions/table.md" "$table"
}

run=test_all
if [[ ${1-} == --smoke ]]; then
  run=test_smoke
  shift
fi
[[ $# -gt 0 ]] || set -- 14 15 16 17 18 19

mkdir -p "$logs"
rows=() failed=() skipped=()
for major in "$@"; do
  status=0
  pg_config=$(pg_config_of "$major") || status=$?
  if [[ $status -eq 3 ]]; then
    skipped+=("$major")
    continue
  fi
  [[ $status -eq 0 ]] || exit "$status"
  version=$("$pg_config" --version)
  version=${version#PostgreSQL }
  version=${version%% *}
  "$run"
  [[ $run == test_all ]] || break
done
if [[ $run == test_all && ${#rows[@]} -gt 0 ]]; then write_table; fi

say 'versions'
[[ ${#rows[@]} -eq 0 ]] || printf '%s\n' "${rows[@]}"
[[ ${#skipped[@]} -eq 0 ]] || echo "Skipped: ${skipped[*]}; above is why."
[[ ${#failed[@]} -eq 0 ]] || fail "These failed:" "${failed[@]}" "What they printed is in $logs."
