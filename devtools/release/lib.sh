# Functions that the scripts that make packages share. Packages depend on the last commit only: all their files have its time.
# shellcheck shell=bash
# shellcheck source=devtools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

umask 022
major=$(pg version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# Prints the time of the commit in FORMAT, as date(1) writes it.
commit_time() { LC_ALL=C date --utc --date="@$SOURCE_DATE_EPOCH" "$@"; }

# A version is released once its heading in the changelog has a date: ## 1.0.0 (2026-11-23)
is_released() { grep -qE "^## ${version//./\\.} \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$" CHANGELOG.md; }

# Packages of an unreleased version sort below the release and by commit: 1.0.0~20261123020053.
package_version() {
  if is_released; then echo "$version"; else echo "$version~$(commit_time +%Y%m%d%H%M%S)"; fi
}
package_revision() { echo "${PACKAGE_REVISION:-1}"; }

# The maintainer, who answers for packages. Builders name themselves by the variables of Debian's tools.
maintainer() { echo "${DEBFULLNAME:-the snowflake_ids authors} <${DEBEMAIL:-$(git log -1 --format=%ae)}>"; }

# stage BUILT LIBRARY SCRIPTS: copies the extension built below BUILT to LIBRARY and SCRIPTS, wherever PG_CONFIG's folders are.
stage() {
  local built=$1 library=$2 scripts=$3 staged
  "$here/build/install-script.sh" --check "$built"
  staged=$(mktemp -d)
  DESTDIR=$staged "$here/build/install.sh" "$built" >/dev/null
  install -D -m 644 "$staged$(pg pkglibdir)/snowflake_ids.so" "$library/snowflake_ids.so"
  "${STRIP:-strip}" --strip-unneeded "$library/snowflake_ids.so"
  install -d "$scripts"
  install -m 644 "$staged$(pg sharedir)"/extension/snowflake_ids* "$scripts"
  rm -rf "$staged"
}

# stage_documents FOLDER: copies README, the files it links to (without sources), and files for Prometheus and Grafana. Links
# between them work in FOLDER.
stage_documents() {
  local folder=$1 file
  git ls-files -- README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md LICENSE docs 'bench/*.md' sql/plain examples monitoring | while IFS= read -r file; do
    install -D -m 644 "$file" "$folder/$file"
  done
}

# Prints the crates that are linked into the library, one a line, with their licenses.
linked_crates() {
  cargo tree --quiet --locked --package snowflake_ids --no-default-features --features "pg$major" \
    --edges normal,no-proc-macro --prefix none --no-dedupe --format '{p}: {l}' |
    sed -E 's/ \(\*\)//; /^snowflake_ids/d; s/ v([0-9])/ \1/' | LC_ALL=C sort -u
}

# Prints each license text once, below the names of the crates that use it. Crates without a text come last.
license_texts() {
  local crate number license folder file hash found
  local -A text=() crates=()
  local order=() without=()
  while read -r crate number license; do
    found=
    for folder in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$crate-${number%:}"; do
      for file in "$folder"/{LICENSE,LICENCE,License,license,COPYING,COPYRIGHT,UNLICENSE,NOTICE}*; do
        [[ -f $file ]] || continue
        found=yes
        hash=$(sha256sum <"$file")
        [[ -n ${text[$hash]-} ]] || order+=("$hash")
        text[$hash]=$file
        crates[$hash]+="$crate ${number%:}, "
      done
    done
    [[ -n $found ]] || without+=("$crate $number $license")
  done < <(linked_crates)
  for hash in "${order[@]}"; do
    printf '\n==== %s\n\n' "${crates[$hash]%, }"
    cat "${text[$hash]}"
  done
  printf '\n==== These name their license and bring no text of it\n\n'
  printf '%s\n' "${without[@]}"
}

# Gives everything below ROOT the time of the commit.
settle() { find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +; }
