#!/usr/bin/env bash
# package-tle.sh FILE: writes to FILE a script that makes the plain SQL an extension of pg_tle. An upgrade replaces the extension's
# functions. A version that changes the extension's tables needs upgrade statements of its own.
set -euo pipefail
# shellcheck source=devtools/package-lib.sh
source "$(dirname "$0")/package-lib.sh"

# Prints the statements of snowflake_ids.sql that can run again: functions, rights and comments. A statement ends with a semicolon
# outside of $$.
functions() {
  awk '
    !on && /^CREATE FUNCTION / { sub(/^CREATE/, "CREATE OR REPLACE"); on = 1; quotes = 0 }
    !on && /^(GRANT|REVOKE|COMMENT ON FUNCTION) / { print; next }
    on { print; quotes += gsub(/\$\$/, "&"); if (/;$/ && quotes % 2 == 0) on = 0 }' sql/plain/snowflake_ids.sql
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat sql/plain/snowflake_ids.sql packaging/pg_tle/dump.sql >"$work/script"
functions >"$work/functions"
sed -e "s/@VERSION@/$version/" -e "/^@SCRIPT@$/{r $work/script" -e 'd}' -e "/^@FUNCTIONS@$/{r $work/functions" -e 'd}' \
  packaging/pg_tle/install.sql >"$1"
