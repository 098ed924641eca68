# Servers with an exporter each, and a Prometheus that knows the alerts, on this machine alone.
# shellcheck shell=bash
# shellcheck source=devtools/test/processes.sh
source "$(dirname "${BASH_SOURCE[0]}")/../processes.sh"

# node: has a false clock, and leases its worker id from itself. client: has a configured worker id, and gets its tags' ids from the
# registry. twin: has the client's worker id, and runs only in one fault.
stage=(node client registry twin)

server_settings() {
  case $1 in
    node) printf '%s\n' "snowflake_ids.worker_id = 'auto'" "snowflake_ids.lease_duration = '60s'" ;;
    client | twin) printf '%s\n' 'snowflake_ids.worker_id = 5' ;;
    registry) printf '%s\n' 'snowflake_ids.worker_id = 6' ;;
  esac
}

# Only the node has a false clock.
stage_server() {
  local name=$1 folder=$cluster/$1 settings
  mapfile -t settings < <(server_settings "$name")
  server_create "$folder" "$(<"$folder/port")" "$cluster/password" "cluster_name = '$name'" 'shared_buffers = 32MB' 'fsync = off' \
    "${settings[@]}"
  if [[ $name == node ]]; then
    LD_PRELOAD=$(false_clock "$folder") server_start "$folder"
  else
    server_start "$folder"
  fi
  {
    echo 'CREATE EXTENSION snowflake_ids;'
    echo "CREATE ROLE exporter LOGIN PASSWORD '$(<"$cluster/password")' IN ROLE pg_monitor;"
  } | on "$name"
}

# The exporter's password is in a file that only the server's user can read.
stage_exporter() {
  local name=$1 folder=$cluster/exporter_$1
  printf 'postgresql://exporter:%s@127.0.0.1:%s/postgres?sslmode=disable' "$(<"$cluster/password")" "$(<"$cluster/$name/port")" |
    keep_secret "$folder/source"
  # shellcheck disable=SC2016
  begin "exporter_$name" sh -c 'DATA_SOURCE_NAME=$(cat "$1") exec "$2" "$3" "$4" --disable-default-metrics --disable-settings-metrics' \
    sh "$folder/source" "$(command -v prometheus-postgres-exporter)" \
    "--extend.query-path=$cluster/postgres_exporter.yaml" "--web.listen-address=127.0.0.1:$(<"$folder/port")"
  await "the exporter of $name answers" 60 serves "$name"
}

serves() { served "$1" | grep -q '^snowflake_ids_server_ready'; }

# Prints what an exporter serves.
served() {
  { exec {connection}<>"/dev/tcp/127.0.0.1/$(<"$cluster/exporter_$1/port")"; } 2>/dev/null || return 1
  printf 'GET /metrics HTTP/1.0\r\n\r\n' >&"$connection"
  sed '1,/^\r$/d' <&"$connection"
  exec {connection}>&-
}

# Prints the shipped rules with shorter durations, and otherwise unchanged.
sooner() {
  sed -E 's/for: [0-9]+[mh]$/for: 5s/; s/\[1h\]/[40s]/; s/\[(15|10)m\]/[15s]/; s/\[5m\]/[10s]/' monitoring/alerts.yaml
}

stage_prometheus() {
  local name
  sooner >"$cluster/alerts.yaml"
  {
    printf '%s\n' 'global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}' "rule_files: [$cluster/alerts.yaml]" \
      'scrape_configs:' '- job_name: snowflake_ids' '  static_configs:'
    for name in "${stage[@]}"; do echo "  - targets: ['127.0.0.1:$(<"$cluster/exporter_$name/port")']"; done
  } >"$cluster/prometheus.yaml"
  chmod a+r "$cluster/alerts.yaml" "$cluster/prometheus.yaml"
  promtool check config "$cluster/prometheus.yaml" >"$cluster/prometheus/checked"
  begin prometheus prometheus "--config.file=$cluster/prometheus.yaml" "--storage.tsdb.path=$cluster/prometheus/data" \
    "--web.listen-address=127.0.0.1:$(<"$cluster/prometheus/port")" --log.level=warn
  await 'Prometheus answers' 60 answers
}

answers() { [[ -n $(ask 'vector(1)') ]]; }

# ask QUERY: prints a line for each result of Prometheus.
ask() { promtool query instant "http://127.0.0.1:$(<"$cluster/prometheus/port")" "$1" 2>>"$cluster/prometheus/asked"; }

# firing: prints the alerts that fire now. fired SECONDS: prints the alerts that fired in the last SECONDS.
firing() { alert_names 'ALERTS{alertstate="firing"}'; }
fired() { alert_names "count_over_time(ALERTS{alertstate=\"firing\"}[${1}s])"; }
alert_names() { ask "$1" | sed -nE 's/.*alertname="([^"]+)".*/\1/p' | sort -u; }

fires() { firing | grep -qx "$1"; }
all_is_quiet() { [[ -z $(ask 'ALERTS') ]]; }

stage_begin() {
  local name
  new_password | keep_secret "$cluster/password"
  install -m 644 monitoring/postgres_exporter.yaml "$cluster/postgres_exporter.yaml"
  for name in "${stage[@]}"; do
    server_place "$name"
    server_place "exporter_$name"
  done
  server_place prometheus
  for name in node client registry; do
    stage_server "$name"
    stage_exporter "$name"
  done
  printf '\\set %s_password %s\n' shard "$(new_password)" | keep_secret "$cluster/secrets"
  on_with_secrets registry --file=devtools/test/monitoring/registry.sql
  on_with_secrets client --set=registry_port="$(<"$cluster/registry/port")" --file=devtools/test/monitoring/client.sql
  on node --command="SELECT snowflake_ids.segment_create('rows')" >"$cluster/created"
  # A server that leases worker ids to another one also leases its own.
  on node --command="INSERT INTO snowflake_ids.worker_lease (datacenter_id, worker_id, system_identifier, timeline, host, port,
      data_directory, token, expires_at, clock, last_time, leased_at, renewed_at, layout)
    SELECT 0, 31, 1, 1, 'elsewhere', 5432, '/elsewhere', 1, now() + interval '30 days', now(), now(), now(), now(), s.layout
    FROM snowflake_ids.status AS s" >/dev/null
  await 'the node leases its worker id' 60 leases node
  load rows node "SELECT count(snowflake_nextval()), count(segment_nextval('rows')) FROM generate_series(1, 100)"
  load far client "SELECT count(snowflake_nextval()), count(segment_nextval('far')) FROM generate_series(1, 10)"
  stage_prometheus
}

leases() { [[ $(value "$1" 'SELECT leased_from IS NOT NULL FROM snowflake_ids.status') == t ]]; }

# load NAME SERVER STATEMENT: runs the statement several times a second until load_end NAME, and ignores failures. The server's
# own pg_sleep would follow the false clock.
load() {
  local name=$1 server=$2 statement=$3
  mkdir -p "$cluster/load"
  touch "$cluster/load/$name.going"
  while [[ -e $cluster/load/$name.going ]]; do
    on "$server" --command="$statement" >/dev/null 2>>"$cluster/load/$name.errors" || true
    sleep 0.1
  done &
}

load_end() { rm -f "$cluster/load/$1.going"; }

# hold SERVER STATEMENT: runs the statement in a transaction that stays open until release.
hold() {
  on "$1" --command="BEGIN; $2; SELECT pg_sleep(600)" >/dev/null 2>>"$cluster/held" &
  holder=$1
}

release() {
  on "$holder" --command="SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND pid <> pg_backend_pid()" \
    >/dev/null
}

show_logs() {
  local log
  for log in "$cluster"/*/said "$cluster"/{node,client,registry,twin}/log "$cluster/held" "$cluster"/load/*.errors; do
    [[ -s $log ]] || continue
    printf '\n== the end of %s\n' "$log"
    tail -n 15 "$log"
  done
}

# Stops everything that was begun, by process id.
stage_end() {
  local name
  rm -f "$cluster"/load/*.going
  end prometheus
  for name in "${stage[@]}"; do
    end "exporter_$name"
    if [[ -e $cluster/$name/data ]]; then server_kill "$name"; fi
  done
  wait
}
