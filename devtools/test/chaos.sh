#!/usr/bin/env bash
# Runs the random tests of whole servers (chaos.rs and chaos_nodes.rs in pg_test/server/tests) with one seed after another.
# CHAOS_SEED is the first seed, by default the present second. Each seed runs for CHAOS_RUN (60) seconds, and all seeds together for
# CHAOS_SECONDS (600). The output of a failed run is kept in target/chaos.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

seed=${CHAOS_SEED:-$(date +%s)}
run=${CHAOS_RUN:-60}
end=$((SECONDS + ${CHAOS_SECONDS:-600}))
kept=$TARGET/chaos
mkdir -p "$kept"
runs=0 bad=0
cargo test --quiet -p snowflake_ids_server_tests --no-run
while ((SECONDS < end)); do
  if ! env -u RUST_BACKTRACE CHAOS_SEED="$seed" CHAOS_SECONDS="$run" CHAOS_LOG="$kept/$seed.server.log" \
    cargo test --quiet -p snowflake_ids_server_tests -- chaos:: chaos_nodes:: >"$kept/$seed.log" 2>&1; then
    bad=$((bad + 1))
    say "seed $seed failed, see $kept/$seed.log: $(grep -A 1 '^Caused by:' "$kept/$seed.log" | grep -v '^Caused\|^--' | cut -c -200)"
  else
    rm -f "$kept/$seed.log"
  fi
  runs=$((runs + 1)) seed=$((seed + 1))
done
say "$runs seeds, $bad of them failed"
((bad == 0))
