#!/usr/bin/env bash
# Runs pg_regress over pg_test/sql and pg_test/expected, against the installed extension in a throwaway server. The output and the
# differences are left in target/regress.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../lib.sh"

pg_regress=$(dirname "$(pg pgxs)")/../test/regress/pg_regress
[[ -x $pg_regress ]] || fail "$pg_regress is missing: it comes with PostgreSQL's server headers."
[[ -e $(pg sharedir)/extension/snowflake_ids.control ]] || fail "The extension is not installed. Give: make install"

servers_in_memory
work=$(server_folder)
trap 'rm -rf "$work"' EXIT
cp -r pg_test/{sql,expected,regress.conf} "$work"
# Expected outputs are rows alone: the names of columns stand in the statement, one line above. Each error has its SQLSTATE.
cat >"$work/psql" <<'EOF'
#!/usr/bin/env bash
set -o pipefail
"$@" --no-align --tuples-only --set=VERBOSITY=verbose --set=SHOW_CONTEXT=never 2>&1 |
  sed -E '/^(LOCATION|(SCHEMA|TABLE|COLUMN|DATATYPE|CONSTRAINT) NAME):  /d; s/^(INFO|NOTICE|WARNING):  [0-9A-Z]{5}: /\1:  /'
EOF
chmod a+x "$work/psql"
if is_root; then chown -R postgres: "$work"; fi

# install.sql creates the extension for the other tests.
tests=(install)
for file in "$work"/sql/*.sql; do
  name=$(basename "$file" .sql)
  [[ $name == install ]] || tests+=("$name")
done

status=0
as_server_user env HOME="$work" "$pg_regress" --bindir="$(pg bindir)" --dlpath="$(pg pkglibdir)" \
  --inputdir="$work" --outputdir="$work" --temp-instance="$work/server" --encoding=UTF8 --no-locale \
  --temp-config="$work/regress.conf" \
  --launcher="$work/psql" --dbname=regression "${tests[@]}" || status=$?

keep_results "$work" "$TARGET/regress"
exit "$status"
