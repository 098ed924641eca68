# What the scripts that make packages share. Packages follow from the last commit: it gives the time that all in them bears.
# shellcheck shell=bash
# shellcheck source=devtools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

umask 022
version=$(sed -nE '0,/^version = /s/^version = "(.*)"/\1/p' Cargo.toml)
major=$(pg version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# The time of the commit, as date(1) writes it in FORMAT.
commit_time() { LC_ALL=C date --utc --date="@$SOURCE_DATE_EPOCH" "$@"; }

# A version is released once its heading in the changelog has a date: ## 0.1.0 (2026-11-23)
is_released() { grep -qE "^## ${version//./\\.} \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$" CHANGELOG.md; }

# Before that, packages sort below the release and by their commits: 0.1.0~20261123020053.
package_version() {
  if is_released; then echo "$version"; else echo "$version~$(commit_time +%Y%m%d%H%M%S)"; fi
}
package_revision() { echo "${PACKAGE_REVISION:-1}"; }

# Whoever builds packages for others says who answers for them, as Debian's tools ask it.
maintainer() { echo "${DEBFULLNAME:-the snowflake_ids authors} <${DEBEMAIL:-$(git log -1 --format=%ae)}>"; }

# stage BUILT LIBRARY SCRIPTS: puts the extension that was built below BUILT into these two folders, wherever PG_CONFIG's
# own lie. The install script is the committed one, which was found to be what was generated: pgrx does not promise an
# order.
stage() {
  local built=$1 library=$2 scripts=$3 staged
  "$here/install-script.sh" --check "$built"
  staged=$(mktemp -d)
  DESTDIR=$staged "$here/install.sh" "$built" >/dev/null
  install -D -m 644 "$staged$(pg pkglibdir)/snowflake_ids.so" "$library/snowflake_ids.so"
  strip --strip-unneeded "$library/snowflake_ids.so"
  install -d "$scripts"
  install -m 644 "$staged$(pg sharedir)"/extension/snowflake_ids* "$scripts"
  install -m 644 "sql/install/snowflake_ids--$version.sql" "$scripts"
  rm -rf "$staged"
}

# stage_documents FOLDER: README, what it links to but for sources, and files for Prometheus and Grafana. Their links to each
# other hold there.
stage_documents() {
  local folder=$1 file
  git ls-files -- README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md LICENSE docs 'bench/*.md' sql/plain examples monitoring | while IFS= read -r file; do
    install -D -m 644 "$file" "$folder/$file"
  done
}

# The crates that are linked into the library, with their licenses: a line each.
linked_crates() {
  cargo tree --quiet --locked --package snowflake_ids --no-default-features --features "pg$major" \
    --edges normal,no-proc-macro --prefix none --no-dedupe --format '{p}: {l}' |
    sed -E 's/ \(\*\)//; /^snowflake_ids/d; s/ v([0-9])/ \1/' | LC_ALL=C sort -u
}

# Their license texts, each once, below the names of the crates that it goes with; last those that bring none.
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

# Everything below ROOT gets the time of the commit.
settle() { find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +; }
