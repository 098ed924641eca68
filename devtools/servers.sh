# Throwaway servers of demos and tests. Each server has a folder with its data directory, its log and its socket.
# shellcheck shell=bash
# shellcheck source=devtools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# need_packages PACKAGE...: installs Debian packages that are missing.
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

# keep_secret FILE: creates FILE from the standard input. Only this user and the server's user can read the file.
keep_secret() {
  local file=$1
  (umask 077 && cat >"$file")
  if is_root; then chown postgres: "$file"; fi
}

# Prints a port at which nothing on this machine answers.
free_port() {
  local port
  while true; do
    port=$((20000 + RANDOM % 10000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo "$port"
}

# server_create FOLDER PORT PASSWORD_FILE SETTING...
# Other users of this machine can reach the port, so the server asks for a password.
server_create() {
  local folder=$1 port=$2 password_file=$3
  shift 3
  as_server_user "$(pg bindir)/initdb" --pgdata="$folder/data" --username=demo --pwfile="$password_file" \
    --auth=scram-sha-256 --encoding=UTF8 --no-locale --no-sync >"$folder/initdb.log"
  printf '%s\n' "shared_preload_libraries = 'snowflake_ids'" "listen_addresses = '127.0.0.1'" "port = $port" \
    "unix_socket_directories = '$folder'" "$@" >>"$folder/data/postgresql.conf"
}

# write_page FILE PSQL...: writes the status page of the server that PSQL connects to.
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

# A server works in its data directory. A process that got the server's process id after a crash does not.
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
