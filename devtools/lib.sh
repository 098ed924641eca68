# What the scripts beside this file share. They are called by `make`, from the top of the checkout and with
# PG_CONFIG, TARGET and PATH set.
# shellcheck shell=bash

: "${PG_CONFIG:?call this through make}" "${TARGET:?call this through make}"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

pg() { "$PG_CONFIG" "--$1"; }

is_root() { [[ $EUID -eq 0 ]]; }

# The system's own sudo, never the stand-in beside this file.
real_sudo() {
  local path
  while IFS= read -r path; do
    [[ $path -ef $here/sudo ]] || { printf '%s\n' "$path" && return; }
  done < <(type -ap sudo)
  return 1
}

can_become_root() { is_root || real_sudo >/dev/null; }

as_root() {
  if is_root; then "$@"; else "$(real_sudo)" "$@"; fi
}

# Can we create FOLDER, or files in it?
can_write() {
  local folder=$1
  until [[ -e $folder ]]; do folder=$(dirname "$folder"); done
  [[ -w $folder ]]
}

# PostgreSQL refuses to run as root. The command starts in a folder that its user can enter, and without
# the backtraces that would slow errors down and end up in them.
as_server_user() (
  unset RUST_BACKTRACE
  cd /
  if is_root; then exec runuser -u postgres -- "$@"; else exec "$@"; fi
)

# Where servers are to be, in a short path, because sockets will lie in it.
servers=/tmp

# Tests keep their servers in memory where there is enough of it. Most of what they do is to make and remove small
# files, and ext4 searches long for an inode where many were removed a moment ago: with it the tests take twice as long.
servers_in_memory() {
  local memory=/dev/shm
  if [[ -z ${TMPDIR-} && $(stat -f -c %T $memory 2>/dev/null) == tmpfs ]] &&
    (($(df --output=avail --block-size=1M $memory | tail -n 1) >= 6000)); then
    export TMPDIR=$memory
    servers=$memory
  fi
}

# A new folder that the server's user owns. Not below the checkout, which that user may not be able to
# enter.
server_folder() {
  local folder
  folder=$(mktemp -d "$servers/snowflake_ids.XXXXXX")
  if is_root; then chown postgres: "$folder"; fi
  printf '%s\n' "$folder"
}

# Copies what a run of PostgreSQL's regression tests left in the folder WORK to KEPT, and shows how it differs.
keep_results() {
  local work=$1 kept=$2 file
  rm -rf "$kept"
  mkdir -p "$kept"
  for file in results log server/log regression.out regression.diffs; do
    [[ ! -e $work/$file ]] || cp -r "$work/$file" "$kept"
  done
  if [[ -s $work/regression.diffs ]]; then
    cat "$work/regression.diffs"
    echo "These differences, and what came out, are in $kept."
  fi
}
