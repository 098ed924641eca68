#!/usr/bin/env bash
# tar.sh BUILT FOLDER: puts the extension built below BUILT into an archive for PG_CONFIG's major version and this
# processor. The archive has an install.sh that needs only pg_config. The same commit gives the same bytes.
set -euo pipefail
# shellcheck source=devtools/release/lib.sh
source "$(dirname "$0")/lib.sh"

built=$1 folder=$2
full=$(package_version)
name=snowflake_ids-$full-pg$major-$machine

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
stage "$built" "$root/lib" "$root/extension"
sed "s/@MAJOR@/$major/g; s/@VERSION@/$full/g; s/@MACHINE@/$machine/g" packaging/tar/install.sh >"$root/install.sh"
chmod 755 "$root/install.sh"
install -m 644 LICENSE CHANGELOG.md "$root"
license_texts >"$root/THIRD-PARTY"
settle "$root"
install -d "$folder"
rm -f "$folder"/snowflake_ids-*-pg"$major-$machine".tar.gz
tar --directory="$work" --sort=name --owner=0 --group=0 --numeric-owner --create "$name" | gzip -9n >"$folder/$name.tar.gz"
(cd "$folder" && sha256sum "$name.tar.gz")
