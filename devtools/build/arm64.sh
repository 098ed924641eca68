#!/usr/bin/env bash
# arm64.sh COMMAND...: runs the command, such as make, so that it builds for arm64 and its servers are of arm64. On other processors,
# PG_CONFIG is that of a Debian for arm64 below target/, of the release ARM64_RELEASE (bookworm). It is unpacked once from packages,
# and qemu runs its programs. Rust's standard library for arm64 is rustup's, or is built once from its source: rustup's rust-src,
# the folder RUST_SRC, or Debian's package rust-src of the same version. DEBIAN_MIRROR and DEBIAN_KEYRING name the mirror and keyring
# if this machine does not run Debian. Ends with status 3 and a reason if something cannot be had here.
set -euo pipefail
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"

[[ $(uname -m) != aarch64 ]] || exec "$@"

# shellcheck disable=SC2034
subject=arm64 distribution=Debian release=${ARM64_RELEASE:-bookworm}
# shellcheck source=devtools/build/source.sh
source "$here/build/source.sh"

target=aarch64-unknown-linux-gnu
folder=$TARGET/arm64
root=$folder/$release
register=/proc/sys/fs/binfmt_misc

# Reads the release's package lists. The status of a system without packages makes apt find all that a package needs.
read_lists_of_arm64() {
  rm -rf "$work/debs"
  mkdir -p "$work/debs/partial"
  : >"$work/status"
  architecture=(-o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::status="$work/status"
    -o Dir::Cache::archives="$work/debs" -o APT::Install-Recommends=false)
  read_lists deb
}

# fetch ARGUMENT...: downloads packages, as apt-get's install or download does.
fetch() { (cd "$work/debs" && own_apt apt-get -q -y --download-only "$@" >>"$work/apt.log" 2>&1); }

# Unpacks the downloaded packages into FOLDER.
unpack() {
  local deb
  for deb in "$work"/debs/*.deb; do dpkg-deb --extract "$deb" "$1" || return; done
}

make_root() {
  local major
  say "unpacking Debian $release for arm64 (once; some 150 MB are downloaded)"
  read_lists_of_arm64
  rm -rf "$root"
  mkdir -p "$root/prefix"
  # The headers come without what they recommend: a compiler of arm64 would be of no use.
  { fetch install postgresql libc6-dev '^libgcc-[0-9]+-dev$' && major=$(cd "$work/debs" && echo postgresql-[0-9]*_*.deb | cut -d_ -f1) &&
    fetch download "postgresql-server-dev-${major#*-}" lib{pq,icu,ssl,krb5}-dev && unpack "$root"; } || {
    tail -n 5 "$work/apt.log"
    skip "packages of Debian $release for arm64 cannot be had; above is why"
  }
  # Packages have no /lib from trixie on. On a whole system, it leads to /usr/lib.
  [[ -e $root/lib ]] || ln -s usr/lib "$root/lib"
  mkdir "$root/debs"
  cp "$work"/debs/lib{c6,gcc-s1}_*.deb "$root/debs"
  # qemu looks here for what an arm64 program opens. Users, devices and temporary files are those of this machine.
  ln -s ../usr "$root/prefix/usr"
  ln -s ../lib "$root/prefix/lib"
  # What builds for arm64, with the headers and libraries of the root.
  printf '%s\n' '#!/bin/sh' "exec clang --target=aarch64-linux-gnu --sysroot='$root' -fuse-ld=lld \"\$@\"" >"$root/cc"
  chmod a+x "$root/cc"
  touch "$root/complete"
}

# Prints the folder of the standard library's source.
library() {
  local number at
  number=$(rustc --version | cut -d' ' -f2)
  for at in "${RUST_SRC-}" "$sysroot/lib/rustlib/src/rust" {,"$folder"}"/usr/src/rustc-$number"; do
    if [[ -n $at && -e $at/library/std ]]; then echo "$at/library" && return; fi
  done
  release=trixie-backports
  read_lists_of_arm64
  { fetch download "rust-src=$number*" && unpack "$folder"; } ||
    skip "there is no standard library for it (rustup target add $target), nor its source (rustup component add rust-src)" >&2
  echo "$folder/usr/src/rustc-$number/library"
}

# Builds the standard library, and makes a folder of it and of the compiler's own libraries.
make_rust() {
  local source hash
  source=$(library)
  hash=$(rustc --verbose --version | sed -n 's/^commit-hash: //p')
  say "building Rust's standard library for arm64 (once; two minutes)"
  rm -rf "$rust"
  mkdir -p "$rust/lib/rustlib/$target/lib" "$work/src"
  printf '[package]\nname = "nothing"\nversion = "0.0.0"\nedition = "2024"\n' >"$work/Cargo.toml"
  : >"$work/src/lib.rs"
  # A stable Rust builds it only with the first variable, and from another folder than rustup's only with the second.
  (cd "$work" && RUSTFLAGS="--remap-path-prefix=${source%/library}=/rustc/$hash --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
    RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT=$source CARGO_TARGET_DIR=$work/target CARGO_PROFILE_RELEASE_DEBUG=0 cargo build --quiet --release -Zbuild-std=std,panic_unwind,test --target "$target")
  cp "$work/target/$target/release/deps"/*.rlib "$rust/lib/rustlib/$target/lib"
  ln -s "$sysroot/lib/rustlib"/* "$rust/lib/rustlib"
  printf '%s\n' '#!/bin/sh' "exec '$sysroot/bin/rustc' --sysroot='$rust' \"\$@\"" >"$rust/rustc"
  chmod a+x "$rust/rustc"
  touch "$rust/complete"
}

# Lets the kernel start programs of arm64 by qemu, until this machine's next start.
register_qemu() {
  local rule=/usr/lib/binfmt.d/qemu-aarch64.conf
  [[ ! -e $register/qemu-aarch64 ]] || return 0
  [[ -e $rule ]] || skip "there is no qemu (apt-get install qemu-user-static)"
  can_become_root || skip "programs of arm64 can be registered by root only, and there is no sudo"
  [[ -e $register/register ]] || as_root mount -t binfmt_misc none "$register" ||
    skip "binfmt_misc cannot be mounted, by which the kernel starts programs of arm64"
  as_root tee "$register/register" <"$rule" >/dev/null
}

command -v apt-get >/dev/null || skip "there is no apt-get to get its packages with"
(need_packages clang lld qemu-user-static binutils-aarch64-linux-gnu) || skip "above is what it takes"
mkdir -p "$folder"
as_server_user test -x "$folder" || skip "the user of the servers cannot enter $TARGET; name another folder in CARGO_TARGET_DIR"
register_qemu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[[ -e $root/complete ]] || make_root
sysroot=$(rustc --print sysroot) rust=$folder/rust-$(rustc --version | cut -d' ' -f2)
if [[ ! -e $sysroot/lib/rustlib/$target/lib ]]; then
  [[ -e $rust/complete ]] || make_rust
  export RUSTC=$rust/rustc
fi

# A calling make hands on its own PG_CONFIG in MAKEFLAGS.
unset MAKEFLAGS MAKELEVEL
export HOST_PG_CONFIG=$PG_CONFIG
PG_CONFIG=$(compgen -G "$root/usr/lib/postgresql/*/bin/pg_config")
export PG_CONFIG SERVER_ROOT=$root QEMU_LD_PREFIX=$root/prefix CARGO_BUILD_TARGET=$target STRIP=aarch64-linux-gnu-strip LIBRARY_PACKAGES=$root/debs
export CC_aarch64_unknown_linux_gnu=$root/cc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$root/cc
export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu=--sysroot=$root
"$@"
