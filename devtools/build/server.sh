#!/usr/bin/env bash
# server.sh MAJOR: builds PostgreSQL of this major version with assertions, once, below target/versions. The sources are the
# source package of the Debian or Ubuntu release that has the version. Prints the path of the server's pg_config. Ends with status
# 3 and a reason if no source can be had here. apt gets and checks the sources by package lists of this script's own. DEBIAN_MIRROR and
# DEBIAN_KEYRING, or UBUNTU_MIRROR and UBUNTU_KEYRING, name the mirror and keyring of a distribution that this machine does not
# run.
set -euo pipefail
# The server's makefiles would take PROFILE for compiler options.
unset PROFILE
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"

# Results go to the caller, messages to the terminal.
exec 3>&1 1>&2

# shellcheck source=devtools/build/source.sh
source "$here/build/source.sh"

# Prints a folder below target/. If the servers' user cannot enter that folder, prints a folder where only root can write.
versions_folder() {
  mkdir -p "$TARGET/versions"
  if as_server_user test -x "$TARGET/versions"; then echo "$TARGET/versions"; else echo /var/cache/snowflake_ids; fi
}

# The modules that the tests use beside the server itself.
modules=$(echo contrib/{amcheck,auto_explain,dblink,hstore,pg_stat_statements,postgres_fdw,test_decoding} src/test/isolation)

# The server compiles fast and runs slowly, because the tests are about the library. The commands are joined by &&: the caller tests
# the status of this function, so `set -e` has no effect here. The variables that a calling make sets are unset, because PostgreSQL's
# make builds the headers only if it is not called by another make.
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
