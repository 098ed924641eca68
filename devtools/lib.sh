# Functions that the scripts share. `make` calls the scripts from the top of the checkout, with PG_CONFIG, TARGET and
# PATH set.
# shellcheck shell=bash

: "${PG_CONFIG:?call this through make}" "${TARGET:?call this through make}"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# The version of this checkout, for scripts that source this.
# shellcheck disable=SC2034
version=$(sed -nE '0,/^version = /s/^version = "(.*)"/\1/p' "$here/../Cargo.toml")

# The processor that is built for, by its name in uname -m.
machine=${CARGO_BUILD_TARGET:-$(uname -m)}
machine=${machine%%-*}

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

pg() { "$PG_CONFIG" "--$1"; }

is_root() { [[ $EUID -eq 0 ]]; }

# Prints the path of the system's own sudo, never that of the stand-in in test/bin.
real_sudo() {
  local path
  while IFS= read -r path; do
    [[ $path -ef $here/test/bin/sudo ]] || { printf '%s\n' "$path" && return; }
  done < <(type -ap sudo)
  return 1
}

can_become_root() { is_root || real_sudo >/dev/null; }

as_root() {
  if is_root; then "$@"; else "$(real_sudo)" "$@"; fi
}

# Can this user create FOLDER, or files in it?
can_write() {
  local folder=$1
  until [[ -e $folder ]]; do folder=$(dirname "$folder"); done
  [[ -w $folder ]]
}

# PostgreSQL refuses to run as root. The command starts in a folder that the server's user can enter. The command makes no
# backtraces, which would slow errors down and become part of their messages.
as_server_user() (
  unset RUST_BACKTRACE
  cd /
  if is_root; then exec runuser -u postgres -- "$@"; else exec "$@"; fi
)

# The folder for servers. Its path is short, because sockets are in it.
servers=/tmp

# Tests keep their servers in memory if there is enough memory. Such servers mostly create and remove small files. ext4 searches long
# for a free inode if many were removed a moment ago, so the tests take twice as long on ext4.
servers_in_memory() {
  local memory=/dev/shm
  if [[ -z ${TMPDIR-} && $(stat -f -c %T $memory 2>/dev/null) == tmpfs ]] &&
    (($(df --output=avail --block-size=1M $memory | tail -n 1) >= 6000)); then
    export TMPDIR=$memory
    servers=$memory
  fi
}

# Makes a new folder that the server's user owns. It is not below the checkout, which that user may not be able to enter.
server_folder() {
  local folder
  folder=$(mktemp -d "$servers/snowflake_ids.XXXXXX")
  if is_root; then chown postgres: "$folder"; fi
  printf '%s\n' "$folder"
}

# Copies the results of PostgreSQL's regression tests from the folder WORK to KEPT, and shows the differences.
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
