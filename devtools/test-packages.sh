#!/usr/bin/env bash
# test-packages.sh FOLDER: installs the Debian packages in FOLDER with apt into a fresh root that has no Rust, and runs
# pg_test/packages/inside.sh there. The root is made by mmdebstrap or debootstrap, of the packages that this machine's
# apt is set up for, lies in memory where there is enough of it, and is removed again. Skipped where it cannot be made.
set -euo pipefail
# shellcheck source=devtools/demo-lib.sh
source "$(dirname "$0")/demo-lib.sh"

folder=$1
major=$(pg version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
name=postgresql-$major-snowflake-ids

skip() {
  echo "packages: skipped, $*"
  exit 0
}

# The sources that packages of this system and of PostgreSQL come from, in apt's form of one line each.
sources() {
  local origin
  for origin in Debian Ubuntu apt.postgresql.org; do
    # shellcheck disable=SC2016
    apt-get indextargets "Origin: $origin" 'Created-By: Packages' --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)'
  done | sort -u
}

# Those that apt goes through, so that the root goes through them as well.
proxies() { apt-config dump | grep -E '^Acquire::(http|https)::Proxy' || true; }

# make_root ROOT: with apt in it, and not much else.
make_root() {
  local root=$1 options=()
  if command -v mmdebstrap >/dev/null; then
    mapfile -t options < <(proxies | sed 's/^/--aptopt=/')
    as_root mmdebstrap --quiet --mode=root --variant=apt --include=ca-certificates --dpkgopt=force-unsafe-io \
      "${options[@]}" "$codename" "$root" "$work/sources.list"
  else
    as_root debootstrap --variant=minbase --include=ca-certificates "$codename" "$root" "$(awk 'NR == 1 { print $3 }' "$work/sources.list")"
    proxies | as_root tee "$root/etc/apt/apt.conf.d/99proxy" >/dev/null
    echo force-unsafe-io | as_root tee "$root/etc/dpkg/dpkg.cfg.d/unsafe-io" >/dev/null
    as_root rm -f "$root"/etc/apt/sources.list.d/*
    as_root cp "$work/sources.list" "$root/etc/apt/sources.list"
  fi
  [[ ! -e $root/usr/bin/cargo && ! -e $root/usr/bin/rustc ]] || fail "There is Rust in the fresh root."
}

# next_revision DEB...: the same packages with a later version, as if a release followed.
next_revision() {
  local package
  for package in "$@"; do
    dpkg-deb --raw-extract "$package" "$work/unpacked"
    sed -i 's/^Version: .*/&+next/' "$work/unpacked/DEBIAN/control"
    dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/unpacked" "$work/next" >/dev/null
    rm -rf "$work/unpacked"
  done
}

# The first example of README, and what it shows.
first_example() { awk '/^```sql$/ { on = 1; next } /^```/ && on { exit } on' README.md; }

command -v apt-get >/dev/null || skip "this is not Debian or Ubuntu"
can_become_root || skip "a root can be made by root only, and there is no sudo"
[[ -n $(apt-cache show "postgresql-$major" 2>/dev/null) ]] ||
  skip "apt knows no postgresql-$major here (apt-get update, or another PG_CONFIG)"
command -v mmdebstrap >/dev/null || command -v debootstrap >/dev/null || need_packages mmdebstrap
as_root unshare --mount --pid --ipc --fork true 2>/dev/null || skip "this machine lets nobody have namespaces of their own"
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")

servers_in_memory
work=$(mktemp -d)
# What runs in it ended with its process namespace.
trap 'as_root rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' INT TERM
sources >"$work/sources.list"

say "making a fresh root of $codename"
started=$SECONDS
make_root "$work/chroot" >"$work/log" 2>&1 || {
  tail -n 20 "$work/log" >&2
  skip "a root cannot be made; above is why"
}
echo "made in $((SECONDS - started)) seconds, $(as_root du -sm "$work/chroot" | cut -f1) MB"

mkdir "$work/next"
next_revision "$folder/$name"{,-doc}_*.deb
as_root install -d "$work/chroot/packages/next"
as_root cp "$folder/$name"{,-doc}_*.deb "$work/chroot/packages"
as_root cp "$work/next"/*.deb "$work/chroot/packages/next"
first_example | as_root tee "$work/chroot/packages/example.sql" >/dev/null
as_root cp pg_test/packages/inside.sh "$work/chroot/packages"
[[ ! -e /etc/resolv.conf ]] || as_root cp --dereference /etc/resolv.conf "$work/chroot/etc/resolv.conf"

say "installing into it"
# Servers in there end with this process.
as_root unshare --mount --pid --ipc --fork --kill-child --mount-proc="$work/chroot/proc" \
  chroot "$work/chroot" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  bash /packages/inside.sh "$major"
