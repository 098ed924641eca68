# Processes beside the servers of a test: the daemons whose work with the servers is tested.
# shellcheck shell=bash
# shellcheck source=devtools/demo/cluster/servers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../demo/cluster/servers.sh"

# Waits until COMMAND succeeds. Fails after SECONDS, and then says WHAT it waited for.
await() {
  local what=$1 deadline=$((SECONDS + $2))
  shift 2
  until "$@"; do
    ((SECONDS < deadline)) || fail "Waited in vain for this: $what."
    sleep 0.2
  done
}

# begin NAME COMMAND...: runs COMMAND in the background as the server's user. Writes the process id and the output to folder NAME.
begin() {
  local folder=$cluster/$1
  shift
  rm -f "$folder/pid"
  # shellcheck disable=SC2016
  as_server_user sh -c 'echo $$ >"$0/pid"; exec "$@"' "$folder" "$@" >>"$folder/said" 2>&1 &
  await "$folder/pid is there" 30 test -s "$folder/pid"
}

# end NAME [SIGNAL]: ends the process that was begun under this name. Does not end another process that got the same process id later.
end() {
  local folder=$cluster/$1 signal=${2:-TERM} pid
  pid=$(cat "$folder/pid" 2>/dev/null) || return 0
  if is_ours "$pid"; then kill "-$signal" "$pid" || true; fi
  for _ in {1..150}; do
    is_ours "$pid" || break
    sleep 0.2
  done
  if is_ours "$pid"; then kill -9 "$pid" || true; fi
  rm -f "$folder/pid"
}

is_ours() { grep -qsF "$cluster" "/proc/$1/cmdline"; }
