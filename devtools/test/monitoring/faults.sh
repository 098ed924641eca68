# The faults of the stage: how each fault is made and undone.
# shellcheck shell=bash
# shellcheck source=devtools/test/monitoring/stage.sh
source "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

# Alerts that no fault has set off yet.
# shellcheck disable=SC2034  # read by the script that includes this
declare -A untried

table=('| fault | alert | seconds until it fired |' '| --- | --- | --- |')

# fault WORDS MAKE UNDO 'ALERT...' 'ALLOWED...': makes the fault. Each ALERT has to fire. No other alert may fire, except those in
# ALLOWED.
fault() {
  local words=$1 make=$2 undo=$3 alerts allowed alert began=$SECONDS others
  read -ra alerts <<<"$4"
  read -ra allowed <<<"${5-}"
  await 'all alerts are quiet before' 300 all_is_quiet
  echo "$words"
  "$make"
  for alert in "${alerts[@]}"; do
    await "$alert fires" 300 fires "$alert"
    table+=("| $words | \`$alert\` | $((SECONDS - began)) |")
    echo "  $alert: $((SECONDS - began)) s"
    unset "untried[$alert]"
  done
  "$undo"
  await 'all alerts are quiet again' 300 all_is_quiet
  others=$(fired $((SECONDS - began)) | grep -vxF "$(printf '%s\n' "${alerts[@]}" "${allowed[@]}")" || true)
  [[ -z $others ]] || fail "These alerts fired, too: $others"
}

back_a_little() { step_clock "$cluster/node" -40; }
back_a_lot() { step_clock "$cluster/node" -600; }
days_ahead() { step_clock "$cluster/node" +172800; }
clock_is_right() { step_clock "$cluster/node" +0; }

lock_leases() { hold node 'LOCK TABLE snowflake_ids.worker_lease IN ACCESS EXCLUSIVE MODE'; }

lock_tag() {
  on node --command="SELECT snowflake_ids.segment_create('locked', step => 100, max_step => 100), segment_nextval('locked')" >/dev/null
  hold node "SELECT FROM snowflake_ids.segment WHERE tag = 'locked' FOR UPDATE"
  load locked node "SELECT count(segment_nextval('locked')) FROM generate_series(1, 10)"
}
unlock_tag() {
  release
  load_end locked
  on node --command="SELECT snowflake_ids.segment_drop('locked')" >/dev/null
}

crowd_tag() {
  on node --command="SELECT snowflake_ids.segment_create('narrow', step => 1, max_step => 1)" >/dev/null
  load narrow node "SELECT count(segment_nextval('narrow')) FROM generate_series(1, 100)"
}
leave_tag() {
  load_end narrow
  on node --command="SELECT snowflake_ids.segment_drop('narrow')" >/dev/null
}

# 35 bits of milliseconds are 397 days.
old_layout() {
  on client --command="SELECT snowflake_ids.generator_create('old', '35/5/5/12 epoch=$(date --utc --date='390 days ago' +%F)')" >/dev/null
}
no_old_layout() { on client --command="SELECT snowflake_ids.generator_drop('old')" >/dev/null; }

stop_registry() { server_kill registry; }
start_registry() { server_start "$cluster/registry"; }

stop_exporter() { end exporter_client; }
start_exporter() { stage_exporter client; }

start_twin() {
  stage_server twin
  stage_exporter twin
}
stop_twin() {
  end exporter_twin
  server_kill twin
}

stop_launcher() {
  on node --command="ALTER SYSTEM SET snowflake_ids.reserve = '200ms'" --command='SELECT pg_reload_conf()' >/dev/null
  launcher=$(value node "SELECT pid FROM pg_stat_activity WHERE backend_type = 'snowflake_ids launcher'")
  kill -STOP "$launcher"
}
continue_launcher() {
  kill -CONT "$launcher"
  on node --command='ALTER SYSTEM RESET snowflake_ids.reserve' --command='SELECT pg_reload_conf()' >/dev/null
}

faults() {
  fault 'clock set back by 40 s' back_a_little clock_is_right 'SnowflakeIdsClockSteppedBack SnowflakeIdsDriftHigh'
  fault 'clock set back by 10 minutes' back_a_lot clock_is_right SnowflakeIdsNotReady \
    'SnowflakeIdsClockSteppedBack SnowflakeIdsDriftHigh SnowflakeIdsLeaseEnding'
  fault 'clock two days ahead' days_ahead clock_is_right SnowflakeIdsClockAhead SnowflakeIdsClockSteppedBack
  fault 'launcher stopped' stop_launcher continue_launcher SnowflakeIdsReservedByCallers 'SnowflakeIdsLeaseEnding SnowflakeIdsRefillsFail'
  fault 'table of leases locked' lock_leases release SnowflakeIdsLeaseEnding SnowflakeIdsNotReady
  fault 'layout near its end' old_layout no_old_layout SnowflakeIdsLayoutEnding
  fault "tag's row locked" lock_tag unlock_tag 'SnowflakeIdsRefillsFail SnowflakeIdsTagDry' SnowflakeIdsTagWaits
  fault 'tag with segments of one id' crowd_tag leave_tag SnowflakeIdsTagWaits
  fault 'registry away' stop_registry start_registry SnowflakeIdsRegistryFails \
    'SnowflakeIdsMetricsGone SnowflakeIdsRefillsFail SnowflakeIdsTagDry SnowflakeIdsTagWaits'
  fault 'exporter away' stop_exporter start_exporter SnowflakeIdsMetricsGone
  fault 'second server with the same worker id' start_twin stop_twin SnowflakeIdsSameNode SnowflakeIdsMetricsGone
}
