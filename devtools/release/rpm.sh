#!/usr/bin/env bash
# rpm.sh BUILT FOLDER: makes RPM packages of the extension built below BUILT, for PG_CONFIG's major version, and puts them
# into FOLDER. One has the extension, one the documents. Their folders are those of the PostgreSQL project's own RPMs. The library
# needs the version of the C library that it was built with, or a newer one; the packages' dependencies name that version. Skipped
# without rpmbuild. Rpmlint checks the packages, if it is installed.
set -euo pipefail
# shellcheck source=devtools/release/lib.sh
source "$(dirname "$0")/lib.sh"

built=$1 folder=$2
name=snowflake_ids_$major

if ! command -v rpmbuild >/dev/null; then
  echo "RPM: skipped, there is no rpmbuild (apt-get install rpm)"
  exit 0
fi

# Prints the changelog's versions, with a pointer in place of the items.
changelog() {
  local heading number day
  while read -r _ number heading; do
    day=${heading//[()]/}
    [[ $number != "$version" ]] || day=@$SOURCE_DATE_EPOCH
    [[ $number != "$version" ]] || number=$(package_version)
    printf '* %s %s - %s-1\n- CHANGELOG.md in the documents has the changes\n\n' \
      "$(LC_ALL=C date --utc --date="$day" '+%a %b %d %Y')" "$(maintainer)" "$number"
  done < <(grep '^## ' CHANGELOG.md)
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
staged=$work/staged
stage "$built" "$staged/usr/pgsql-$major/lib" "$staged/usr/pgsql-$major/share/extension"
chmod 755 "$staged/usr/pgsql-$major/lib/snowflake_ids.so"
stage_documents "$staged/usr/share/doc/$name"
install -D -m 644 LICENSE "$staged/usr/share/licenses/$name/LICENSE"
{ linked_crates && license_texts; } >"$staged/usr/share/licenses/$name/THIRD-PARTY"
settle "$staged"
{ cat packaging/rpm/snowflake_ids.spec && changelog; } >"$work/snowflake_ids.spec"

install -d "$folder"
rm -f "$folder/$name"-*.rpm
rpmbuild -bb --quiet --target "$machine" --define "_topdir $work/rpm" --define "_rpmdir $work/out" --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
  --define "major $major" --define "pgversion $(package_version)" --define "pgrelease $(package_revision)" \
  --define "staged $staged" --define "maintainer $(maintainer)" "$work/snowflake_ids.spec"
cp "$work"/out/*.rpm "$folder"
if command -v rpmlint >/dev/null; then
  rpmlint --config packaging/rpm/rpmlint.toml "$folder/$name"-*.rpm
else
  echo "rpmlint: skipped, it is not installed (apt-get install rpmlint)"
fi
(cd "$folder" && sha256sum "$name"-*.rpm)
