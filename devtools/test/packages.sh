#!/usr/bin/env bash
# packages.sh FOLDER BUILT: makes signed repositories of the packages in FOLDER, with a key of its own, and RPM packages of
# what was built below BUILT. A fresh root without Rust gets these and the archive, and runs pg_test/packages/inside.sh.
# mmdebstrap makes the root from the package sources of this machine's apt. The root is in memory if there is
# enough memory, and is removed again. The test is skipped if the root cannot be made.
set -euo pipefail
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"

folder=$1 built=$2
major=$(pg version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
name=postgresql-$major-snowflake-ids
architecture=$(dpkg-architecture --host-type "$machine-linux-gnu" --query DEB_HOST_ARCH 2>/dev/null)

skip() {
  echo "packages: skipped, $*"
  exit 0
}

# Prints the sources of packages of this system and of PostgreSQL, in apt's form of one line each.
sources() {
  local origin
  for origin in Debian Ubuntu apt.postgresql.org; do
    # shellcheck disable=SC2016
    apt-get indextargets "Origin: $origin" 'Created-By: Packages' --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)'
  done | sort -u
}

# Prints apt's proxies, which the root has to use as well.
proxies() { apt-config dump | grep -E '^Acquire::(http|https)::Proxy' || true; }

# make_root ROOT: makes a root with apt and little else.
make_root() {
  local root=$1 options=()
  mapfile -t options < <(proxies | sed 's/^/--aptopt=/')
  as_root mmdebstrap --quiet --mode=root --architectures="$architecture" --variant=apt --include=ca-certificates --dpkgopt=force-unsafe-io \
    "${options[@]}" "$codename" "$root" "$work/sources.list" || return
  [[ ! -e $root/usr/bin/cargo && ! -e $root/usr/bin/rustc ]] || fail "There is Rust in the fresh root."
}

# with_version EXPRESSION DEB...: makes the same packages with another version, as sed's EXPRESSION changes it.
with_version() {
  local expression=$1 package unpacked=$work/unpacked scripts
  for package in "${@:2}"; do
    dpkg-deb --raw-extract "$package" "$unpacked"
    sed -i "/^Version: /$expression" "$unpacked/DEBIAN/control"
    scripts=$unpacked/usr/share/postgresql/$major/extension
    if grep -qx "Version: $before-1" "$unpacked/DEBIAN/control" && [[ -d $scripts && -n $older_sql ]]; then
      # The package has this library, but the SQL of the release before.
      sed -i "s/^default_version = .*/default_version = '$before'/" "$scripts/snowflake_ids.control"
      rm "$scripts"/snowflake_ids--*.sql
      cp "sql/install/snowflake_ids--$before.sql" "$scripts"
    fi
    dpkg-deb --root-owner-group -Zgzip -z1 --build "$unpacked" "$work/files" >/dev/null
    rm -rf "$unpacked"
  done
}

# Makes a key for this run alone.
make_key() {
  export GNUPGHOME=$work/gnupg RELEASE_KEY=test-packages RELEASE_URL=file:///packages/files
  mkdir --mode=700 "$GNUPGHOME"
  gpg --batch --quiet --passphrase '' --quick-generate-key "$RELEASE_KEY" rsa3072 sign never 2>/dev/null
}

clean_up() {
  [[ ! -d $work/gnupg ]] || GNUPGHOME=$work/gnupg gpgconf --kill gpg-agent
  as_root rm -rf --one-file-system "$work"
}

# Makes an RPM package of the release before, with one file. Makes another one that provides all that ours needs, because Debian's
# libraries are in no database of RPM packages.
make_rpms() {
  local needed=$1
  cat >"$work/standins.spec" <<END
%define debug_package %{nil}
Name: snowflake_ids_$major
Version: $before
Release: 1
Summary: the release before
License: PostgreSQL
BuildArch: $machine
%description
The release before.
%package -n postgresql$major-server
Summary: the server
$(sed -E '/^(rpmlib|postgresql)/d; s/^/Provides: /' <<<"$needed")
%description -n postgresql$major-server
The server.
%install
install -d %{buildroot}/usr/pgsql-$major/lib
echo $before >%{buildroot}/usr/pgsql-$major/lib/snowflake_ids.so
%files
/usr/pgsql-$major/lib/snowflake_ids.so
%files -n postgresql$major-server
END
  rpmbuild -bb --quiet --target "$machine" --define "_topdir $work/rpm" --define "_rpmdir $work/rpms" --define '_rpmfilename %%{NAME}-%%{VERSION}.rpm' \
    "$work/standins.spec"
}

# Prints README's first example with its output.
first_example() { awk '/^```sql$/ { on = 1; next } /^```/ && on { exit } on' README.md; }

command -v apt-get >/dev/null || skip "this is not Debian or Ubuntu"
can_become_root || skip "a root can be made by root only, and there is no sudo"
[[ -n $(apt-cache show "postgresql-$major" 2>/dev/null) ]] ||
  skip "apt knows no postgresql-$major here (apt-get update, or another PG_CONFIG)"
as_root unshare --mount --pid --ipc --fork true 2>/dev/null || skip "this machine lets nobody have namespaces of their own"
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")

servers_in_memory
work=$(mktemp -d)
# Processes in the root end with its process namespace.
trap clean_up EXIT
trap 'exit 1' INT TERM
sources >"$work/sources.list"

need_packages mmdebstrap
say "making a fresh root of $codename"
started=$SECONDS
make_root "$work/chroot" >"$work/log" 2>&1 || {
  tail -n 20 "$work/log" >&2
  skip "a root cannot be made; above is why"
}
echo "made in $((SECONDS - started)) seconds, $(as_root du -sm "$work/chroot" | cut -f1) MB"

say "repositories"
need_packages apt-utils createrepo-c gpg gpg-agent rpm
# Git has the install script of the last release. Before the first one, the older package has this SQL, too.
older_sql=$(git ls-files 'sql/install/snowflake_ids--*.sql' | sed -E 's/.*--(.*)\.sql/\1/' | { grep -vxF "$version" || true; } |
  sort --version-sort | tail -n 1)
before=${older_sql:-0.9}
make_key
"$here/release/rpm.sh" "$built" "$folder"
mkdir "$work/files"
cp "$folder/$name"{,-doc}_*.deb "$folder"/snowflake_ids-*-pg"$major"-*.tar.gz "$work/files"
with_version "s/:.*/: $before-1/" "$folder/$name"_*.deb
make_rpms "$(rpm --query --package --requires "$folder"/snowflake_ids_"$major"-[0-9]*.rpm)"
cp "$work/rpms"/*.rpm "$work/files"
"$here/release/trees.sh" "$work/files"
as_root install -d "$work/chroot/packages"
as_root cp -r "$work/files" "$work/chroot/packages"
# The next release, served at the same place.
with_version 's/$/+next/' "$folder/$name"{,-doc}_*.deb
cp "$folder"/snowflake_ids_"$major"-*.rpm "$work/files"
"$here/release/trees.sh" "$work/files"
as_root cp -r "$work/files" "$work/chroot/packages/later"
first_example | as_root tee "$work/chroot/packages/example.sql" >/dev/null
as_root cp pg_test/packages/inside.sh "$work/chroot/packages"
[[ ! -e /etc/resolv.conf ]] || as_root cp --dereference /etc/resolv.conf "$work/chroot/etc/resolv.conf"

say "installing into it"
# Servers in the root end with this process.
as_root unshare --mount --pid --ipc --fork --kill-child --mount-proc="$work/chroot/proc" \
  chroot "$work/chroot" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  bash /packages/inside.sh "$major" "$before" "${older_sql:-$version}"
