#!/usr/bin/env bash
# trees.sh FOLDER: makes the repositories FOLDER/apt and FOLDER/yum of the packages in FOLDER, for a host that serves
# FOLDER at RELEASE_URL. Without RELEASE_URL, this machine's apt and dnf can use FOLDER itself. RELEASE_KEY names the gpg key that
# signs them and FOLDER/SHA256SUMS. A client needs only the file snowflake_ids.sources or snowflake_ids.repo in them. Skipped
# without RELEASE_KEY.
set -euo pipefail
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"

folder=$1
if [[ -z ${RELEASE_KEY-} ]]; then
  echo "repositories: skipped, RELEASE_KEY names no key"
  exit 0
fi
url=${RELEASE_URL:-file://$(realpath "$folder")}
title='snowflake_ids, ids for PostgreSQL'

sign() { gpg --batch --yes --quiet --local-user "$RELEASE_KEY" --armor "$@"; }

# Prints the public key as a field of Debian's control files: each line begins with a blank, and an empty line is a dot.
key_as_field() { sed -E 's/^$/./; s/^/ /' "$folder/key.asc"; }

apt_tree() {
  local tree=$folder/apt suite=dists/stable architecture
  rm -rf "$tree"
  install -d "$tree/pool"
  cp "$folder"/*.deb "$tree/pool"
  for architecture in $(find "$tree/pool" -name '*.deb' -printf '%f\n' | sed -E 's/.*_(.*)\.deb/\1/' | grep -vx all | sort -u); do
    install -d "$tree/$suite/main/binary-$architecture"
    (cd "$tree" && apt-ftparchive --arch "$architecture" packages pool >"$suite/main/binary-$architecture/Packages")
    gzip -9nk "$tree/$suite/main/binary-$architecture/Packages"
  done
  (cd "$tree" && apt-ftparchive -o "APT::FTPArchive::Release::Origin=snowflake_ids" -o "APT::FTPArchive::Release::Label=$title" \
    -o APT::FTPArchive::Release::Suite=stable -o APT::FTPArchive::Release::Codename=stable \
    -o APT::FTPArchive::Release::Components=main \
    -o "APT::FTPArchive::Release::Architectures=$(cd "$suite/main" && printf '%s ' binary-* | sed 's/binary-//g; s/ $//')" \
    release "$suite") >"$tree/Release"
  mv "$tree/Release" "$tree/$suite/Release"
  sign --output "$tree/$suite/InRelease" --clearsign "$tree/$suite/Release"
  printf '%s\n' 'Types: deb' "URIs: $url/apt" 'Suites: stable' 'Components: main' 'Signed-By:' >"$tree/snowflake_ids.sources"
  key_as_field >>"$tree/snowflake_ids.sources"
  echo "$tree"
}

yum_tree() {
  local tree=$folder/yum
  rm -rf "$tree"
  install -d "$tree"
  cp "$folder"/*.rpm "$tree"
  rpmsign --define "_gpg_name $RELEASE_KEY" --define "__gpg $(command -v gpg)" --addsign "$tree"/*.rpm >/dev/null
  createrepo_c --quiet --no-database "$tree"
  sign --output "$tree/repodata/repomd.xml.asc" --detach-sign "$tree/repodata/repomd.xml"
  printf '%s\n' '[snowflake_ids]' "name=$title" "baseurl=$url/yum" "gpgkey=$url/key.asc" gpgcheck=1 repo_gpgcheck=1 enabled=1 \
    >"$tree/snowflake_ids.repo"
  echo "$tree"
}

need_packages gpg gpg-agent
sign --output "$folder/key.asc" --export "$RELEASE_KEY"
[[ -s $folder/key.asc ]] || fail "gpg has no key for RELEASE_KEY=$RELEASE_KEY"
[[ ! -e $folder/SHA256SUMS ]] || sign --output "$folder/SHA256SUMS.asc" --detach-sign "$folder/SHA256SUMS"
if compgen -G "$folder/*.deb" >/dev/null; then
  need_packages apt-utils
  apt_tree
fi
if compgen -G "$folder/*.rpm" >/dev/null; then
  need_packages createrepo-c rpm
  yum_tree
fi
