# An etcd and three nodes under Patroni, on this machine alone.
# shellcheck shell=bash
# shellcheck source=devtools/test/processes.sh
source "$(dirname "${BASH_SOURCE[0]}")/../processes.sh"

nodes=(a b c)
# Whether the nodes replicate synchronously, and whether each node has a configured worker id instead of a leased one.
synchronous=true numbered=false

etcd_begin() {
  local url
  server_place etcd
  server_place etcd_peer
  url=http://127.0.0.1:$(<"$cluster/etcd/port")
  begin etcd etcd --data-dir="$cluster/etcd/data" --log-level=warn --logger=zap \
    --listen-client-urls="$url" --advertise-client-urls="$url" \
    --listen-peer-urls="http://127.0.0.1:$(<"$cluster/etcd_peer/port")"
  await 'etcd answers' 60 etcd_ctl endpoint health
  # A user who can write to etcd can make Patroni run anything.
  etcd_ctl role add root
  etcd_ctl user add --interactive=false root <"$cluster/password"
  etcd_ctl user grant-role root root
  etcd_ctl auth enable
}

etcd_ctl() {
  ETCDCTL_API=3 etcdctl --endpoints="127.0.0.1:$(<"$cluster/etcd/port")" "$@" >>"$cluster/etcd/ctl" 2>&1
}

# The nodes run with the settings that docs/failover.md shows. The other settings are for this machine.
node_settings() {
  local name=$1 password
  password=$(<"$cluster/password")
  # shellcheck disable=SC2016
  sed -n '/^```yaml/,/^```$/{/^```/d;p}' docs/failover.md |
    sed "s/synchronous_mode: true/synchronous_mode: $synchronous/"
  cat <<YAML
  initdb: [{encoding: UTF8}, {locale: C}, {auth: scram-sha-256}]
scope: ids
name: $name
etcd3: {host: "127.0.0.1:$(<"$cluster/etcd/port")", username: root, password: "$password"}
restapi:
  listen: 127.0.0.1:$(<"$cluster/api_$name/port")
  connect_address: 127.0.0.1:$(<"$cluster/api_$name/port")
  authentication: {username: demo, password: "$password"}
postgresql:
  listen: 127.0.0.1:$(<"$cluster/$name/port")
  connect_address: 127.0.0.1:$(<"$cluster/$name/port")
  bin_dir: $(pg bindir)
  data_dir: $cluster/$name/data
  pgpass: $cluster/$name/pgpass
  basebackup: [{checkpoint: fast}]
  authentication:
    superuser: {username: demo, password: "$password"}
    replication: {username: replicator, password: "$password"}
    rewind: {username: rewinder, password: "$password"}
  pg_hba:
  - host all all 127.0.0.1/32 scram-sha-256
  - host replication replicator 127.0.0.1/32 scram-sha-256
  parameters:
    unix_socket_directories: $cluster/$name
    shared_buffers: 32MB
    logging_collector: "on"
    log_directory: $cluster/$name
    log_filename: log
    log_line_prefix: "%n "
    log_rotation_age: 0
    log_rotation_size: 0
YAML
  [[ $numbered == false ]] || echo "    snowflake_ids.worker_id: $(worker_number "$name")"
}

# The worker id of node a is 1, that of node b is 2.
worker_number() {
  local n
  for n in "${!nodes[@]}"; do
    [[ ${nodes[n]} != "$1" ]] || echo $((n + 1))
  done
}

node_place() {
  server_place "$1"
  server_place "api_$1"
}

node_begin() {
  [[ -e $cluster/$1/settings.yml ]] || node_settings "$1" | keep_secret "$cluster/$1/settings.yml"
  begin "$1" patroni "$cluster/$1/settings.yml"
}

# Kills Patroni and the server at once, as a loss of power does.
node_kill() {
  kill -9 "$(<"$cluster/$1/pid")" "$(head -n 1 "$cluster/$1/data/postmaster.pid")"
  rm "$cluster/$1/pid"
  # Sessions without a postmaster end by themselves.
  await "the processes of $1 are gone" 60 server_is_gone "$1"
  rm -f "$cluster/$1/data/postmaster.pid" "$cluster/$1"/.s.PGSQL.*
}

server_is_gone() { [[ -z $(processes_in "$cluster/$1/data") ]]; }

# Runs patronictl with the settings of node a, because each node's settings name the cluster.
control() { as_server_user timeout 300 patronictl --config-file "$cluster/a/settings.yml" "$@"; }

# Prints the node that takes writes. No such node, or two, are a failure.
primary() {
  local name found=()
  for name in "${nodes[@]}"; do
    [[ $(value "$name" 'SELECT pg_is_in_recovery()' 2>/dev/null) != f ]] || found+=("$name")
  done
  [[ ${#found[@]} -eq 1 ]] && echo "${found[0]}"
}

# Checks that all nodes run and that the standbys are ready to take over.
settled() {
  local leader members
  leader=$(primary) || return 1
  [[ $(value "$leader" "SELECT count(*) FROM pg_stat_replication
    WHERE state = 'streaming' AND pg_wal_lsn_diff(sent_lsn, replay_lsn) < 1000000") -eq 2 ]] || return 1
  members=$(control list --format tsv ids 2>>"$cluster/control") || return 1
  [[ $(grep -cE $'\t(running|streaming)\t' <<<"$members") -eq 3 ]] || return 1
  [[ $synchronous == false || $(grep -c $'\tSync Standby\t' <<<"$members") -eq 2 ]]
}

worker_id() { value "$1" "SELECT coalesce(worker_id::text, state) FROM snowflake_ids.status"; }

# Prints the worker id that each node reports.
worker_ids() {
  local name
  for name in "${nodes[@]}"; do printf '%s: %s  ' "$name" "$(worker_id "$name" 2>&1)"; done
  echo
}

# Prints the ends of all logs.
show_logs() {
  local log
  for log in "$cluster"/*/said "$cluster"/{a,b,c,registry}/log "$cluster/control" "$cluster"/load/*.errors; do
    [[ -s $log ]] || continue
    printf '\n== the end of %s\n' "$log"
    tail -n 25 "$log"
  done
}

# Stops everything that was begun, and remaining processes of servers, by process id.
nodes_end() {
  local name
  for name in "${nodes[@]}"; do end "$name" TERM; done
  end etcd TERM
  for name in "${nodes[@]}" registry; do
    if [[ -e $cluster/$name/data ]]; then server_kill "$name"; fi
  done
}
