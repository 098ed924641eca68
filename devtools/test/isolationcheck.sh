#!/usr/bin/env bash
# Runs pg_isolation_regress over pg_test/specs, against the installed extension in a throwaway server. The output and the
# differences are left in target/isolation.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

pg_isolation_regress=$(dirname "$(pg pgxs)")/../test/isolation/pg_isolation_regress
[[ -x $pg_isolation_regress ]] ||
  fail "$pg_isolation_regress is missing: it comes with PostgreSQL's server headers."
[[ -e $(pg sharedir)/extension/snowflake_ids.control ]] || fail "The extension is not installed. Give: make install"

servers_in_memory
work=$(server_folder)
trap 'rm -rf "$work"' EXIT
cp -r pg_test/{specs,regress.conf} "$work"
# Refills are late on a busy machine.
echo "snowflake_ids.segment_wait_timeout = '1min'" >>"$work/regress.conf"
# Expected outputs are without rules, counts of rows, and empty lines inside a permutation.
cat >"$work/tester" <<'EOF'
#!/usr/bin/env bash
set -o pipefail
"$@" 2>&1 | sed -E '/^[-+]+$/d; /^\([1-9][0-9]* rows?\)$/d; /^ *$/d; s/^starting permutation/\n&/'
EOF
chmod a+x "$work/tester"
# pg_isolation_regress looks for expected outputs beside the specs, not below them.
mv "$work/specs/expected" "$work"
if is_root; then chown -R postgres: "$work"; fi

tests=()
for file in "$work"/specs/*.spec; do tests+=("$(basename "$file" .spec)"); done

status=0
as_server_user env HOME="$work" "$pg_isolation_regress" --bindir="$(pg bindir)" --dlpath="$(pg pkglibdir)" \
  --inputdir="$work" --outputdir="$work" --temp-instance="$work/server" --temp-config="$work/regress.conf" \
  --launcher="$work/tester" --dbname=isolation --load-extension=snowflake_ids "${tests[@]}" || status=$?

keep_results "$work" "$TARGET/isolation"
exit "$status"
