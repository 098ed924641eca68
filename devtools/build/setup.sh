#!/usr/bin/env bash
# setup.sh [--check]: installs what building and testing need and this machine lacks.
# With --check it installs nothing, and fails if something is missing.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

check_only() { [[ $mode == --check ]]; }

# Prints the version that Cargo.toml asks for, such as rust-of-make = "1.95" or pgrx = "=0.19.3".
wanted() { sed -nE "s/^$1 = .*\"=?([0-9.]+)\".*/\1/p" Cargo.toml; }

is_older() { [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

need_rust() {
  local found want
  want=$(wanted rust-of-make)
  found=$(rustc --version 2>/dev/null | cut -d' ' -f2) || true
  if [[ -z $found ]] || ! command -v cargo >/dev/null; then
    fail "Rust is missing. Install Rust $want or newer, so that cargo and rustc are in PATH or in ~/.cargo/bin."
  fi
  if is_older "$found" "$want"; then
    fail "Rust $found is too old. Give: rustup update, or: rustup default $want"
  fi
}

has_headers() { [[ -e $(pg includedir-server 2>/dev/null)/postgres.h ]]; }
has_server() { [[ -x $(pg bindir 2>/dev/null)/initdb ]]; }

# Prints the major version whose Debian packages have PG_CONFIG. Prints nothing for a PostgreSQL that the user built.
packaged_major() {
  if [[ $PG_CONFIG =~ ^/usr/lib/postgresql/([0-9]+)/bin/pg_config$ ]]; then
    echo "${BASH_REMATCH[1]}"
  elif [[ $PG_CONFIG == pg_config ]] && ! pg version 2>/dev/null | sed -nE 's/^PostgreSQL ([0-9]+).*/\1/p'; then
    { apt-cache depends postgresql 2>/dev/null || true; } | sed -nE 's/.*Depends: postgresql-([0-9]+)$/\1/p'
  fi
}

missing_packages() {
  local package major
  for package in build-essential clang libclang-dev pgbouncer pkg-config shellcheck; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
  major=$(packaged_major)
  if [[ -n $major ]]; then
    has_server || echo "postgresql-$major"
    has_headers || echo "postgresql-server-dev-$major"
  fi
}

# Debian's package lists say which PostgreSQL it has. A fresh system has no lists yet.
need_lists() {
  check_only || [[ -n $(apt-cache show postgresql 2>/dev/null) ]] || ! can_become_root || as_root apt-get update -q
}

need_packages() {
  local packages
  need_lists
  mapfile -t packages < <(missing_packages)
  [[ ${#packages[@]} -gt 0 ]] || return 0
  if check_only; then fail "These packages are missing: ${packages[*]}" "Give: make setup"; fi
  can_become_root || fail \
    "These packages are missing, and there is neither root nor sudo to install them: ${packages[*]}" \
    "Ask someone who can be root to give: apt-get install ${packages[*]}"
  say "installing ${packages[*]}"
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"
}

need_postgres() {
  if ! has_server || ! has_headers; then
    fail "PG_CONFIG=$PG_CONFIG does not lead to a PostgreSQL with its server and headers." \
      "Give: make ... PG_CONFIG=/path/to/bin/pg_config"
  fi
}

need_cargo_pgrx() {
  if ! check_only; then
    "$here/build/cargo-tool.sh" cargo-pgrx "$(wanted pgrx)"
  elif [[ $(cargo pgrx --version 2>/dev/null) != "cargo-pgrx $(wanted pgrx)" ]]; then
    fail "cargo-pgrx $(wanted pgrx) is missing. Give: make setup"
  fi
}

need_rights() {
  local folder
  for folder in "$(pg pkglibdir)" "$(pg sharedir)/extension"; do
    can_write "$folder" || can_become_root || fail \
      "The extension cannot be installed: $folder is not yours to write to, and there is neither root nor sudo." \
      "Give: make ... PG_CONFIG=/path/to/bin/pg_config of a PostgreSQL that is yours"
  done
}

mode=${1-}
need_rust
if command -v dpkg-query >/dev/null; then
  need_packages
else
  echo "This is not Debian or Ubuntu: a C compiler, clang, libclang, PgBouncer, shellcheck and PostgreSQL are yours to install."
fi
need_postgres
check_only || need_rights
need_cargo_pgrx
