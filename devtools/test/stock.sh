#!/usr/bin/env bash
# stock.sh [WAY...]: runs PostgreSQL's own suites (regress, plpgsql, isolation) on a throwaway server in each way, or in those named,
# and compares the results with those of a server without the library. Each difference has to be in pg_test/stock, with its reason;
# SNOWFLAKE_IDS_WRITE=1 writes the differences there. The suites come from the folder SOURCES, or from the distribution's source
# package, of the newest minor version that can be had. They and all results stay below target/stock.
set -euo pipefail
# PostgreSQL's makefiles would take PROFILE for compiler options, also from make's own command line.
unset PROFILE MAKEFLAGS
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"
# shellcheck disable=SC2034
subject='the suites of PostgreSQL'
# shellcheck source=devtools/build/source.sh
source "$here/build/source.sh"

kept=$TARGET/stock differences=$here/test/differences.py
all=(library extension sequence bound snowflake segment)
declare -A database=([regress]=regression [plpgsql]=pl_regression [isolation]=isolation_regression)

# The control of a way, which runs the same files.
control_of() {
  case $1 in
    control*) echo "$1" ;;
    bound | snowflake | segment) echo control-bigint ;;
    *) echo control ;;
  esac
}

# Copies the suites below the folder WORK, and compiles the C functions that they call. In a second copy, serial and identity columns
# are bigint, so that they take ids of new_columns.
prepare_suites() {
  local sources=${SOURCES-}
  if [[ -z $sources ]]; then
    # shellcheck disable=SC2034
    read -r distribution release < <(release_of "$PG_MAJOR")
    get_source "postgresql-$PG_MAJOR"
    sources=$work/source
  fi
  echo "The suites are those of PostgreSQL $(sed -n "s/^PACKAGE_VERSION='\(.*\)'/\1/p" "$sources/configure")."
  mkdir -p "$work"/library "$work"/control/{regress,plpgsql,isolation}
  cp "$sources"/src/test/regress/regress.c "$sources"/contrib/spi/{refint,autoinc}.c "$work/library"
  # shellcheck disable=SC2016
  printf '%s\n' 'MODULES = regress refint autoinc' "PGXS := $(pg pgxs)" 'include $(PGXS)' >"$work/library/Makefile"
  make -s -C "$work/library" with_llvm=no >"$work/library.log" 2>&1 || {
    cat "$work/library.log"
    fail 'The C functions of the suites could not be compiled; above is why.'
  }
  cp -r "$sources"/src/test/regress/. "$work/control/regress"
  cp -r "$sources"/src/pl/plpgsql/src/. "$work/control/plpgsql"
  cp -r "$sources"/src/test/isolation/. "$work/control/isolation"
  (
    cd "$work/control"
    mv regress/parallel_schedule regress/schedule
    mv isolation/isolation_schedule isolation/schedule
    basename -s .sql plpgsql/sql/*.sql | sed 's/^/test: /' >plpgsql/schedule
  )
  cp -r "$work/control" "$work/control-bigint"
  find "$work/control-bigint" \( -name '*.sql' -o -name '*.spec' -o -name '*.source' \) -exec sed -i -E '
    s/\b(serial|serial4)\b/bigserial/Ig
    s/\b(int|int4|integer)(( +not null| +null| +primary key)* +generated +(always|by default) +as +identity)/bigint\2/Ig' {} +
}

on_server() { as_server_user "$(pg bindir)/psql" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --host="$server" --username=postgres "$@"; }

# make_database WAY NAME: makes a database with the settings that pg_regress gives its own.
make_database() {
  local way=$1 name=$2 setting
  on_server --command="CREATE DATABASE $name TEMPLATE template0" postgres
  for setting in lc_{messages,monetary,numeric,time}=\'C\' bytea_output=\'hex\' timezone_abbreviations=\'Default\'; do
    on_server --command="ALTER DATABASE $name SET $setting" postgres
  done
  [[ $way != control* && $way != library ]] || return 0
  on_server --command='CREATE EXTENSION snowflake_ids' "$name"
  case $way in
    extension) ;;
    sequence)
      on_server --command="CREATE SCHEMA unrelated; CREATE SEQUENCE unrelated.numbers" "$name"
      on_server --command="SELECT snowflake_ids.bind_sequence('unrelated.numbers')" "$name" >/dev/null
      ;;
    *) on_server --command="ALTER DATABASE $name SET snowflake_ids.new_columns = '$way'" postgres ;;
  esac
}

# run_suites WAY: runs the suites on a new server, and keeps the results. Their comparison with PostgreSQL's expected results is of no
# interest here.
run_suites() (
  local way=$1 suite settings=() program=regress/pg_regress
  server=$(server_folder)
  trap 'server_stop "$server"; rm -rf "$server"' EXIT
  as_server_user "$(pg bindir)/initdb" --pgdata="$server/data" --username=postgres --auth=trust --encoding=UTF8 --no-locale --no-sync \
    >"$server/initdb.log"
  [[ $way == control* ]] || settings=("shared_preload_libraries = 'snowflake_ids'" 'snowflake_ids.worker_id = 1')
  printf '%s\n' "${settings[@]}" "listen_addresses = ''" "unix_socket_directories = '$server'" 'fsync = off' \
    'max_prepared_transactions = 2' >>"$server/data/postgresql.conf"
  server_start "$server"
  rm -rf "${kept:?}/$way"
  mkdir -p "$kept/$way"
  for suite in regress plpgsql isolation; do
    make_database "$way" "${database[$suite]}"
    cp -r "$work/$(control_of "$way")/$suite" "$server"
    if is_root; then chown -R postgres: "$server/$suite"; fi
    [[ $suite != isolation ]] || program=isolation/pg_isolation_regress
    as_server_user "$(dirname "$(pg pgxs)")/../test/$program" --use-existing --host="$server" --user=postgres \
      --dbname="${database[$suite]}" --bindir="$(pg bindir)" --dlpath="$work/library" --max-concurrent-tests=20 \
      --inputdir="$server/$suite" --outputdir="$server/$suite" --schedule="$server/$suite/schedule" >"$kept/$way/$suite.log" 2>&1 || true
    grep -Eq 'tests (passed|failed)' "$kept/$way/$suite.log" || {
      tail -n 20 "$kept/$way/$suite.log" "$server/log"
      fail "The suite $suite did not run to its end; above is why."
    }
    cp -r "$server/$suite/results" "$kept/$way/$suite"
  done
  cp "$server/log" "$kept/$way/server.log"
)

ways=("$@")
[[ $# -gt 0 ]] || ways=("${all[@]}")
mkdir -p "$kept"
servers_in_memory
work=$(server_folder)
trap 'rm -rf "$work"' EXIT
prepare_suites
: >"$kept/found"
declare -A ran=()
for way in "${ways[@]}"; do
  control=$(control_of "$way")
  for each in "$control" "$way"; do
    [[ -z ${ran[$each]-} ]] || continue
    say "$each"
    run_suites "$each"
    ran[$each]=1
  done
  "$differences" files "$way" "$kept/$control" "$kept/$way" | tee -a "$kept/found"
done
"$differences" check "pg_test/stock/$PG_MAJOR.txt" "${ways[@]}" <"$kept/found"
