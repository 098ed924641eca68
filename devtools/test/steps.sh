#!/usr/bin/env bash
# steps.sh STEP...: makes each step and prints the time it took. The first failure ends the run.
set -euo pipefail

summary=()
report() {
  printf '\n== seconds\n'
  printf '%s\n' "${summary[@]}"
}
trap report EXIT

for step in "$@"; do
  started=$SECONDS result=ok
  printf '\n== %s\n' "$step"
  "${MAKE:-make}" --no-print-directory "$step" || result=FAILED
  summary+=("$(printf '%6d  %-22s %s' $((SECONDS - started)) "$step" "$result")")
  [[ $result == ok ]] || exit 1
done
