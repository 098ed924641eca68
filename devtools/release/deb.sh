#!/usr/bin/env bash
# deb.sh BUILT FOLDER: makes Debian packages of the extension built below BUILT, for PG_CONFIG's major version, and puts
# them into FOLDER. One has the extension, one the documents. PACKAGE_REVISION is the package's revision, after the version. The same
# commit gives the same bytes. Lintian checks the packages, if it is installed.
set -euo pipefail
# shellcheck source=devtools/release/lib.sh
source "$(dirname "$0")/lib.sh"

built=$1 folder=$2
name=postgresql-$major-snowflake-ids
full=$(package_version)
library=/usr/lib/postgresql/$major/lib share=/usr/share/postgresql/$major
doc=usr/share/doc/$name
# Otherwise dpkg-deb would compress in as many blocks as this machine has cores.
export DPKG_DEB_THREADS_MAX=1

architecture=$(dpkg-architecture --host-type "$machine-linux-gnu" --query DEB_HOST_ARCH 2>/dev/null)

# Prints the library's dependencies on system libraries, as dpkg-shlibdeps finds them. The packages of another processor's libraries are
# in the folder LIBRARY_PACKAGES.
shared_libraries() {
  local scratch=$work/shlibs deb
  mkdir -p "$scratch/debian"
  printf 'Source: snowflake-ids\n\nPackage: %s\nArchitecture: any\n' "$name" >"$scratch/debian/control"
  for deb in ${LIBRARY_PACKAGES:+"$LIBRARY_PACKAGES"/*.deb}; do
    dpkg-deb --raw-extract "$deb" "$scratch/debian/$(basename "$deb" | cut -d_ -f1)"
  done
  (cd "$scratch" && DEB_HOST_ARCH=$architecture dpkg-shlibdeps -O "$1" 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
}

# control ROOT PACKAGE ARCHITECTURE SECTION DEPENDS: writes a package's control file. The remaining fields, with the description,
# come from standard input.
control() {
  local root=$1
  install -d "$root/DEBIAN"
  printf '%s\n' "Package: $2" "Source: snowflake-ids" "Version: $full-$(package_revision)" "Architecture: $3" "Section: $4" \
    "Priority: optional" "Maintainer: $(maintainer)" "Installed-Size: $(du -k -s --apparent-size "$root" | cut -f1)" \
    ${5:+"Depends: $5"} >"$root/DEBIAN/control"
  cat >>"$root/DEBIAN/control"
}

# The files that each Debian package has in its folder of documents.
package_documents() {
  local root=$1 package=$2
  local to=$root/usr/share/doc/$package
  install -d "$to"
  awk -v current="$version" -v full="$full" -v revision="$(package_revision)" -v date="$(commit_time -R)" \
    -v maintainer="$(maintainer)" -f packaging/deb/changelog.awk CHANGELOG.md | gzip -9n >"$to/changelog.Debian.gz"
  awk '
    FILENAME == ARGV[1] { crates = crates "  " $0 "\n"; next }
    FILENAME == ARGV[2] { if (FNR > 4) license = license ($0 == "" ? " ." : " " $0) "\n"; next }
    /^@CRATES@$/ { printf "%s", crates; next }
    /^@LICENSE@$/ { printf "%s", license; next }
    { print }' <(linked_crates) LICENSE packaging/deb/copyright >"$to/copyright"
}

# build ROOT PACKAGE ARCHITECTURE
build() {
  local root=$1
  (cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  settle "$root"
  dpkg-deb --root-owner-group -Zxz --build "$root" "$folder/${2}_$full-$(package_revision)_$3.deb" >/dev/null
}

extension_package() {
  local root=$work/$name
  stage "$built" "$root$library" "$root$share/extension"
  package_documents "$root" "$name"
  gzip -9n <CHANGELOG.md >"$root/$doc/changelog.gz"
  license_texts | gzip -9n >"$root/$doc/THIRD-PARTY.gz"
  sed "s/@MAJOR@/$major/g" packaging/deb/README.Debian >"$root/$doc/README.Debian"
  control "$root" "$name" "$architecture" database \
    "postgresql-$major, $(shared_libraries "$root$library/snowflake_ids.so")" <<END
Suggests: $name-doc
Description: distributed 64-bit ids as column defaults for PostgreSQL $major
 snowflake_ids makes ids inside the server: snowflake ids, sorted by time and
 unique on many servers; segments, numbers that are dense per tag and reserved
 ahead by a background worker; series, numbers for each tenant or other key. An
 id takes one atomic step in shared memory; no service runs beside the server,
 and no insert waits for a round trip.
 .
 The library is loaded by shared_preload_libraries: see README.Debian.
END
  sed "s/@MAJOR@/$major/g" packaging/deb/prerm >"$root/DEBIAN/prerm"
  chmod 755 "$root/DEBIAN/prerm"
  build "$root" "$name" "$architecture"
}

documents_package() {
  local root=$work/$name-doc
  package_documents "$root" "$name-doc"
  stage_documents "$root/$doc/manual"
  control "$root" "$name-doc" all doc "" <<END
Suggests: $name
Description: documents of snowflake_ids, ids for PostgreSQL $major
 The guide, the reference of functions, settings and errors, what is guaranteed
 and how it is tested, examples, alerts for Prometheus and a dashboard for
 Grafana, and the plain SQL for servers that cannot load the library of
 postgresql-$major-snowflake-ids.
END
  build "$root" "$name-doc" all
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
install -d "$folder"
rm -f "$folder/$name"_*.deb "$folder/$name-doc"_*.deb
extension_package
documents_package
if command -v lintian >/dev/null; then
  # The suppressed tag is for packages that are uploaded to Debian itself.
  lintian --allow-root --suppress-tags initial-upload-closes-no-bugs --fail-on error,warning "$folder/$name"{,-doc}_*.deb
else
  echo "lintian: skipped, it is not installed (apt-get install lintian)"
fi
(cd "$folder" && sha256sum "$name"{,-doc}_*.deb)
