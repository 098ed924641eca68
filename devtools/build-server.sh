#!/usr/bin/env bash
# build-server.sh MAJOR: PostgreSQL of this major version, with assertions, from the source package of the Debian or Ubuntu release
# that has it; below target/versions, once. Prints the path of its pg_config. Ends with status 3, and says why, where there is no
# source for it here. apt gets the sources, by lists of its own, and checks them. Those of the distribution that this machine does
# not run come from DEBIAN_MIRROR and DEBIAN_KEYRING, or UBUNTU_MIRROR and UBUNTU_KEYRING.
set -euo pipefail
# The server's own makefiles take it for options of the compiler.
unset PROFILE
# shellcheck source=devtools/demo-lib.sh
source "$(dirname "$0")/demo-lib.sh"

# What comes out goes to the caller; what is said on the way goes to the terminal.
exec 3>&1 1>&2

# The release whose sources have this major version.
release_of() {
  case $1 in
    14) echo Ubuntu jammy ;;
    15) echo Debian bookworm ;;
    16) echo Ubuntu noble ;;
    17) echo Debian trixie ;;
    18) echo Debian forky ;;
    19) echo Debian experimental ;;
    *) fail "There is no PostgreSQL $1 to test: 14 to 19." ;;
  esac
}

# shellcheck source=devtools/source-lib.sh
source "$here/source-lib.sh"

# Below target/, unless the servers' user cannot go there; then where root alone can write.
versions_folder() {
  mkdir -p "$TARGET/versions"
  if as_server_user test -x "$TARGET/versions"; then echo "$TARGET/versions"; else echo /var/cache/snowflake_ids; fi
}

# What the tests use beside the server itself.
modules=$(echo contrib/{amcheck,auto_explain,dblink,hstore,pg_stat_statements,postgres_fdw,test_decoding} src/test/isolation)

# Quick to build rather than to run: the library is what is tested. Joined by &&, as its caller asks for its status, where `set -e`
# has no effect. Without what a make above this one tells those below it: PostgreSQL makes its headers at the top level only.
configure_and_make() {
  unset MAKELEVEL MAKEFLAGS MFLAGS
  ./configure --prefix="$prefix" --enable-cassert --with-openssl --with-icu --with-gssapi --without-llvm \
    CFLAGS='-O1 -g0 -fno-omit-frame-pointer' &&
    make -s -j "$(nproc)" &&
    make -s install &&
    for module in $modules; do
      make -s -j "$(nproc)" -C "$module" install || return
    done
}

major=$1
subject="PostgreSQL $major"
read -r distribution release < <(release_of "$major")
prefix=$(versions_folder)/$major
if [[ ! -e $prefix/complete || $(<"$prefix/complete") != "$modules" ]]; then
  command -v apt-get >/dev/null || skip "there is no apt-get to get its sources with; name a server of your own in PG_CONFIGS"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  get_source "postgresql-$major"
  (need_packages build-essential bison flex perl libicu-dev libkrb5-dev libreadline-dev libssl-dev zlib1g-dev) ||
    skip "what building it takes is missing; above is what"
  say "building PostgreSQL $major (once; two to six minutes)"
  rm -rf "$prefix"
  (cd "$work/source" && configure_and_make) >"$work/make.log" 2>&1 || {
    tail -n 20 "$work/make.log"
    fail "PostgreSQL $major could not be built; above is why."
  }
  chmod -R a+rX "$prefix"
  echo "$modules" >"$prefix/complete"
fi
echo "$prefix/bin/pg_config" >&3
