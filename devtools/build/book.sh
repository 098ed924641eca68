#!/usr/bin/env bash
# book.sh: makes a book of the documents, with a search, below target/book. The book keeps the checkout's tree, so that links
# between documents and to sources work. Each link and each anchor is looked up in the pages. docs/SUMMARY.md lists the pages in
# order.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

book=$TARGET/book
"$here/build/cargo-tool.sh" mdbook 0.5.4 search

rm -rf "$book"
mkdir -p "$book/src"
git ls-files --cached --others --exclude-standard -- '*.md' LICENSE docs src core/src core/tests sql/plain examples bench \
  pg_test devtools monitoring |
  while IFS= read -r file; do
    if [[ -e $file ]]; then install -D -m 644 "$file" "$book/src/$file"; fi
  done
mv "$book/src/docs"/book.{toml,css} "$book"

# mdBook wants the summary at the top of the sources. mdBook makes a folder's README the folder's index page, but does not change links
# to the README. Each README is therefore renamed here, with the links to it.
sed -E 's#\]\(\.\./#](#; t; s#\]\(([^)]+\.md)\)#](docs/\1)#' "$book/src/docs/SUMMARY.md" >"$book/src/SUMMARY.md"
rm "$book/src/docs/SUMMARY.md"
find "$book/src" -name README.md | while IFS= read -r file; do mv "$file" "${file%README.md}index.md"; done
find "$book/src" -name '*.md' -exec sed -i -E 's#(\]\([^)]*)README\.md#\1index.md#g' {} +

mdbook build "$book" 2>&1 | tee "$book/log"
if grep -qE 'WARN|ERROR' "$book/log"; then fail "mdBook warns; above is of what."; fi
[[ -n $(find "$book/html" -name 'searchindex*.js') ]] || fail "The book has no search."
if command -v python3 >/dev/null; then
  python3 "$here/build/links.py" "$book/html"
else
  echo "links: skipped, there is no python3 to look for them"
fi

# page_of ARGUMENT...: prints the page as Chromium shows it after its scripts have run. The page's console goes to stderr.
page_of() {
  chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --user-data-dir="$book/browser" --enable-logging=stderr \
    --virtual-time-budget=60000 --dump-dom "$@"
}

# In a browser, the search has to find the pages that contain a word, without an error.
if command -v chromium >/dev/null; then
  page_of "file://$book/html/index.html?search=series_nextval" >"$book/found.html" 2>"$book/console"
  if grep -F 'CONSOLE' "$book/console"; then fail "The book says this on the browser's console."; fi
  for page in docs/series docs/reference/functions; do
    grep -qE "<a href=\"[^\"]*$page.html\?highlight=series_nextval" "$book/found.html" ||
      fail "The search of the book does not find series_nextval on $page."
  done
  echo "search: finds series_nextval where it is"
else
  echo "search: skipped, there is no chromium to try it in"
fi
echo "The book is $book/html/index.html"
