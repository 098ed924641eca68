#!/usr/bin/env bash
# image.sh BUILT FOLDER: arranges the extension built below BUILT in FOLDER as CloudNativePG mounts it. lib is for
# dynamic_library_path. share is for extension_control_path, which PostgreSQL has from version 18 on.
set -euo pipefail
# shellcheck source=devtools/release/lib.sh
source "$(dirname "$0")/lib.sh"

built=$1 folder=$2
((major >= 18)) || fail "PostgreSQL $major has no extension_control_path, which version 18 brought: give PG_CONFIG= of 18 or newer."
rm -rf "$folder"
stage "$built" "$folder/lib" "$folder/share/extension"
install -D -m 644 LICENSE "$folder/licenses/LICENSE"
license_texts >"$folder/licenses/LICENSE.crates"
settle "$folder"
