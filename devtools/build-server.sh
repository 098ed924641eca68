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

skip() {
  echo "PostgreSQL $major: skipped, $*"
  exit 3
}

# The release whose sources have this major version.
release_of() {
  case $1 in
    13) echo Debian bullseye ;;
    14) echo Ubuntu jammy ;;
    15) echo Debian bookworm ;;
    16) echo Ubuntu noble ;;
    17) echo Debian trixie ;;
    18) echo Debian forky ;;
    *) fail "There is no PostgreSQL $1 to test: 13 to 18." ;;
  esac
}

# mirrors DISTRIBUTION: where this machine's packages come from, one a line, where it runs this distribution.
mirrors() {
  local named=${1^^}_MIRROR
  if [[ -n ${!named-} ]]; then
    printf '%s\n' "${!named}"
  else
    # shellcheck disable=SC2016
    apt-get indextargets "Origin: $1" 'Created-By: Packages' --format '$(REPO_URI)' | sort -u
  fi
}

# The suites of the release at a mirror: Debian has its security updates on one of their own.
suites() {
  case $1 in
    */debian-security*) echo "$release-security" ;;
    *) echo "$release $release-updates" ;;
  esac
}

keyring() {
  local named=${1^^}_KEYRING
  printf '%s\n' "${!named:-/usr/share/keyrings/${1,,}-archive-keyring.gpg}"
}

# Apt with lists and sources of this script's own, so that those of the machine stay as they are.
own_apt() {
  "$1" -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
    -o APT::Sandbox::User=root "${@:2}"
}

write_sources() {
  local mirror suite
  for mirror in $(mirrors "$distribution"); do
    for suite in $(suites "$mirror"); do
      echo "deb-src [signed-by=$(keyring "$distribution")] $mirror $suite main"
    done
  done >"$work/sources.list"
}

# Into the folder WORK, unpacked without the distribution's own changes. A suite that a release does not have fails the update,
# and the others serve.
get_source() {
  [[ -r $(keyring "$distribution") ]] ||
    skip "only $distribution $release has its sources, and this machine lacks $(keyring "$distribution") to check them with"
  write_sources
  [[ -s $work/sources.list ]] || skip "only $distribution $release has its sources; name a mirror in ${distribution^^}_MIRROR"
  mkdir -p "$work/lists/partial"
  own_apt apt-get update -q >"$work/apt.log" 2>&1 || true
  (cd "$work" && own_apt apt-get source -q --download-only --tar-only "postgresql-$major" >>"$work/apt.log" 2>&1) || {
    tail -n 5 "$work/apt.log"
    skip "the sources of $distribution $release cannot be had; above is why"
  }
  mkdir "$work/source"
  tar --extract --file "$(compgen -G "$work/postgresql-${major}_*.orig.tar.*" | grep -v '\.asc$')" \
    --directory "$work/source" --strip-components=1
}

# Below target/, unless the servers' user cannot go there; then where root alone can write.
versions_folder() {
  mkdir -p "$TARGET/versions"
  if as_server_user test -x "$TARGET/versions"; then echo "$TARGET/versions"; else echo /var/cache/snowflake_ids; fi
}

# Quick to build rather than to run: the library is what is tested. Joined by &&, as its caller asks for its status, where `set -e`
# has no effect. Without what a make above this one tells those below it: PostgreSQL makes its headers at the top level only.
configure_and_make() {
  unset MAKELEVEL MAKEFLAGS MFLAGS
  ./configure --prefix="$prefix" --enable-cassert --with-openssl --with-icu --with-gssapi --without-llvm \
    CFLAGS='-O1 -g0 -fno-omit-frame-pointer' &&
    make -s -j "$(nproc)" &&
    make -s install &&
    for module in contrib/{amcheck,dblink,hstore,pg_stat_statements,postgres_fdw,test_decoding} src/test/isolation; do
      make -s -j "$(nproc)" -C "$module" install || return
    done &&
    # Before 14 nothing installs these.
    install -D --target-directory "$(dirname "$("$prefix/bin/pg_config" --pgxs)")/../test/isolation" \
      src/test/isolation/{pg_isolation_regress,isolationtester}
}

major=$1
read -r distribution release < <(release_of "$major")
prefix=$(versions_folder)/$major
if [[ ! -e $prefix/complete ]]; then
  command -v apt-get >/dev/null || skip "there is no apt-get to get its sources with; name a server of your own in PG_CONFIGS"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  get_source
  (need_packages build-essential bison flex perl libicu-dev libkrb5-dev libreadline-dev libssl-dev zlib1g-dev) ||
    skip "what building it takes is missing; above is what"
  say "building PostgreSQL $major (once; two to six minutes)"
  rm -rf "$prefix"
  (cd "$work/source" && configure_and_make) >"$work/make.log" 2>&1 || {
    tail -n 20 "$work/make.log"
    fail "PostgreSQL $major could not be built; above is why."
  }
  chmod -R a+rX "$prefix"
  touch "$prefix/complete"
fi
echo "$prefix/bin/pg_config" >&3
