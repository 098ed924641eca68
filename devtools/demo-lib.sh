# What the demos share: throwaway servers. Each has a folder with its data directory, its log and its socket.
# shellcheck shell=bash
# shellcheck source=devtools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# need_packages PACKAGE...: Debian's, where they are missing.
need_packages() {
  local package missing=()
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  { command -v apt-get >/dev/null && can_become_root; } || fail "These packages are missing: ${missing[*]}"
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

new_password() { od -An -N8 -tx8 /dev/urandom | tr -d ' '; }

# Creates FILE, which only we and the server's user can read, of what comes in.
keep_secret() {
  local file=$1
  (umask 077 && cat >"$file")
  if is_root; then chown postgres: "$file"; fi
}

# A port that nothing on this machine answers at.
free_port() {
  local port
  while true; do
    port=$((20000 + RANDOM % 10000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo "$port"
}

# server_create FOLDER PORT PASSWORD_FILE SETTING...
# Others on this machine can reach the port, so the server asks for a password.
server_create() {
  local folder=$1 port=$2 password_file=$3
  shift 3
  as_server_user "$(pg bindir)/initdb" --pgdata="$folder/data" --username=demo --pwfile="$password_file" \
    --auth=scram-sha-256 --encoding=UTF8 --no-locale --no-sync >"$folder/initdb.log"
  printf '%s\n' "shared_preload_libraries = 'snowflake_ids'" "listen_addresses = '127.0.0.1'" "port = $port" \
    "unix_socket_directories = '$folder'" "$@" >>"$folder/data/postgresql.conf"
}

# write_page FILE PSQL...: the status page of the server that PSQL asks.
write_page() {
  local file=$1
  shift
  "$@" --no-align --tuples-only --command='SELECT snowflake_ids.status_page()' --output="$file.new"
  mv "$file.new" "$file"
}

server_start() {
  local folder=$1
  as_server_user "$(pg bindir)/pg_ctl" start --pgdata="$folder/data" --log="$folder/log" --silent --wait || {
    cat "$folder/log" >&2
    fail "The demo's server did not start; above is what it says."
  }
}

# A server works in its data directory. That tells it from a process that came by its id after a crash.
server_is_running() {
  local data=$1/data pid
  [[ -e $data/postmaster.pid ]] || return 1
  read -r pid <"$data/postmaster.pid"
  [[ /proc/$pid/cwd -ef $data ]]
}

server_stop() {
  local folder=$1
  if server_is_running "$folder"; then
    as_server_user "$(pg bindir)/pg_ctl" stop --pgdata="$folder/data" --mode=fast --silent
  fi
}
