#!/usr/bin/env bash
# reproducible.sh FOLDER: clones the last commit to another place, builds everything again there, and compares the packages with
# the packages in FOLDER, which were made from the same commit.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

folder=$1
[[ -z $(git status --porcelain) ]] || fail "The work tree has changes that are not committed. A clone would lack them."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet . "$work/checkout"
export CARGO_TARGET_DIR=$work/a-target
"${MAKE:-make}" --no-print-directory -C "$work/checkout" TARGET="$work/a-target" package-deb package-rpm package-tar

different=()
while IFS= read -r package; do
  cmp "$folder/$package" "$work/a-target/${folder##*/}/$package" || different+=("$package")
done < <(cd "$work/a-target/${folder##*/}" && ls)
[[ ${#different[@]} -eq 0 ]] || fail "Built twice, these are not the same: ${different[*]}"
echo "Built twice, at two places, the packages are the same bytes."
