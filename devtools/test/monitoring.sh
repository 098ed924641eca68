#!/usr/bin/env bash
# monitoring.sh: checks the alerts under promtool. Then starts servers of the installed extension, Debian's
# prometheus-postgres-exporter and prometheus on 127.0.0.1, with the files of monitoring/. Under load no alert may fire for
# LOAD_SECONDS (30). Then one fault follows another, and during each fault only its own alerts may fire. Takes about ten minutes.
# Missing packages are installed. With systemd, Debian then starts services of both packages, which are not used here.
set -Eeuo pipefail
# shellcheck source=devtools/test/monitoring/faults.sh
source "$(dirname "$0")/monitoring/faults.sh"

load_seconds=${LOAD_SECONDS:-30}
cluster='' holder='' launcher=''

can_run() {
  command -v dpkg-query >/dev/null || { echo "skipped: this is not Debian or Ubuntu" && return 1; }
  local package
  for package in prometheus prometheus-postgres-exporter; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || can_become_root ||
      { echo "skipped: $package is missing, and there is neither root nor sudo to install it" && return 1; }
  done
}

# Writes each expression of the dashboard as a rule, with figures in place of its variables.
dashboard_rules() {
  printf '%s\n' 'groups:' '- name: dashboard' '  rules:'
  sed -nE 's/^ *"expr": "(.*)",?$/\1/p' monitoring/grafana.json |
    sed -E 's/\\"/"/g; s/[$]__rate_interval/5m/g; s/[$][a-z]+/.*/g' |
    while IFS= read -r expression; do printf '  - record: dashboard:%s\n    expr: |\n      %s\n' "$((++n))" "$expression"; done
}

check_files() {
  local n=0 rules
  promtool check rules monitoring/alerts.yaml
  (cd monitoring && promtool test rules alerts_test.yaml)
  rules=$(mktemp)
  dashboard_rules >"$rules"
  promtool check rules "$rules"
  rm "$rules"
}

check_served() {
  local name
  for name in node client; do
    served "$name" | grep -E '^(# (HELP|TYPE) )?snowflake_ids_' >"$cluster/served_$name"
    promtool check metrics <"$cluster/served_$name"
  done
}

# Checks that Prometheus has each metric that alerts and the dashboard use.
check_known() {
  local metric
  while IFS= read -r metric; do
    [[ -n $(ask "count(count_over_time(${metric}[1h]))") ]] || fail "Prometheus has no $metric."
  done < <(grep -hoE 'snowflake_ids_[a-z_]+' monitoring/alerts.yaml monitoring/grafana.json | sort -u)
}

at_exit() {
  local status=$?
  if [[ -n $cluster ]]; then
    [[ $status -eq 0 ]] || { firing && show_logs; } || true
    [[ -z $launcher ]] || kill -CONT "$launcher" 2>/dev/null || true
    stage_end || true
    rm -rf "$cluster"
  fi
}

can_run || exit 0
need_packages prometheus prometheus-postgres-exporter
check_files
while IFS= read -r alert; do untried[$alert]=; done < <(sed -nE 's/^ *- alert: //p' monitoring/alerts.yaml)
trap at_exit EXIT
trap 'exit 130' INT TERM
cluster=$(server_folder)
chmod a+rx "$cluster"
stage_begin
check_served
say "$load_seconds s of load"
await 'all alerts are quiet' 120 all_is_quiet
sleep "$load_seconds"
false_ones=$(fired "$load_seconds")
[[ -z $false_ones ]] || fail "These alerts fired though nothing was wrong: $false_ones"
echo "no alert fired"
say faults
faults
# The forecast of a tag's end needs two counts, half an hour apart; monitoring/alerts_test.yaml tries its alert.
unset 'untried[SnowflakeIdsTagEnding]'
check_known
[[ ${#untried[@]} -eq 0 ]] || fail "No fault was made for these alerts: ${!untried[*]}"
say 'what fired'
printf '%s\n' "${table[@]}"
