#!/usr/bin/env bash
# check_attention.sh [OPTION OF PSQL...]: a check for Nagios, Icinga and similar programs. Prints what needs attention. Ends with
# 0 for OK, 1 for WARNING, 2 for CRITICAL, and 3 if the server cannot be asked, or the role may not see all problems.
set -uo pipefail

sql="SELECT 'role ' || current_user || ' may not see all problems: GRANT pg_monitor TO it' WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE')
UNION ALL (SELECT concat(severity, ' ', subject, ': ', problem, '. ', action) FROM snowflake_ids.attention)"
rows=$(psql --no-psqlrc --no-align --tuples-only --quiet --command="$sql" "$@" 2>&1) || {
  echo "UNKNOWN - $rows"
  exit 3
}
case $rows in
  role*) echo "UNKNOWN - $rows" && exit 3 ;;
  alarm*) echo "CRITICAL - $rows" && exit 2 ;;
  warning*) echo "WARNING - $rows" && exit 1 ;;
  *) echo "OK - ${rows:-nothing needs attention}" ;;
esac
