#!/usr/bin/env bash
# quietly.sh WHAT COMMAND...: runs the command, and prints WHAT and the progress. Prints the command's output only if it fails.
set -euo pipefail

what=$1
shift
log=$(mktemp)
command=
# A terminal's interrupt does not reach a command in the background.
trap 'rm -f "$log"; [[ -z $command ]] || kill "$command" 2>/dev/null || true' EXIT

printf '\n== %s\n' "$what"
began=$SECONDS
"$@" >"$log" 2>&1 </dev/null &
command=$!
while kill -0 "$command" 2>/dev/null; do
  sleep 1
  if ((SECONDS > began && (SECONDS - began) % 20 == 0)); then
    printf '   %d s, %d crates compiled\n' $((SECONDS - began)) "$(grep -cE '^ *(.\[[0-9;]*m)* *Compiling' "$log" || true)"
  fi
done
status=0
wait "$command" || status=$?
command=
if ((status > 0)); then
  cat "$log" >&2
  exit "$status"
fi
printf '   done in %d s\n' $((SECONDS - began))
