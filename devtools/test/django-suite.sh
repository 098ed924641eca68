#!/usr/bin/env bash
# django-suite.sh [APP...]: runs Django's own tests of keys, from its source distribution on PyPI, on a throwaway server for the kinds
# of new_columns, and compares their outcomes with those on a server without the library. Each difference has to be in
# pg_test/django/differences.txt, with its reason; SNOWFLAKE_IDS_WRITE=1 writes the differences there. Django stays below target/orm.
set -euo pipefail
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"

apps=(basic bulk_create contenttypes_tests custom_pk fixtures fixtures_regress generic_relations generic_relations_regress get_or_create
  inspectdb introspection m2m_regress many_to_many many_to_one model_inheritance model_inheritance_regress one_to_one
  order_with_respect_to update)
ways=(snowflake segment)
work=$TARGET/orm/django-suite differences=$here/test/differences.py

install_django() {
  python3 -m ensurepip --version >/dev/null 2>&1 || need_packages python3-venv
  mkdir -p "$work"
  [[ -x $work/.venv/bin/pip ]] || python3 -m venv "$work/.venv"
  local pip=("$work/.venv/bin/pip" --quiet --disable-pip-version-check)
  "${pip[@]}" install --requirement examples/orm/django/requirements.txt
  rm -rf "$work"/{sources,tests}
  "${pip[@]}" download --no-deps --no-binary Django --dest "$work/sources" "$(grep ^Django examples/orm/django/requirements.txt)"
  mkdir "$work/tests"
  tar --extract --file "$work"/sources/*.tar.gz --directory "$work/tests" --strip-components=1 --wildcards '*/tests'
}

# run_tests WAY: runs the tests on a new server, as a role that may create databases. New databases have the extension.
run_tests() (
  local way=$1 password settings=('fsync = off')
  folder=$(server_folder)
  trap 'server_stop "$folder"; rm -rf "$folder"' EXIT
  password=$(new_password)
  PGPORT=$(free_port)
  export PGHOST=127.0.0.1 PGPORT PGUSER=demo PGPASSWORD=$password
  keep_secret "$folder/password" <<<"$password"
  [[ $way != control ]] || settings+=("shared_preload_libraries = ''")
  server_create "$folder" "$PGPORT" "$folder/password" "${settings[@]}"
  server_start "$folder"
  {
    echo "CREATE ROLE app LOGIN CREATEDB PASSWORD '$password';"
    [[ $way == control ]] || echo "CREATE EXTENSION snowflake_ids; ALTER ROLE app SET snowflake_ids.new_columns = '$way';"
  } | "$(pg bindir)/psql" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname=template1
  cd "$work/tests/tests"
  rm -f "$work/$way"
  PGUSER=app OUTCOMES=$work/$way PYTHONPATH=$root/pg_test/django PYTHONDONTWRITEBYTECODE=1 "$work/.venv/bin/python" runtests.py \
    --settings=settings --parallel=1 --noinput "${apps[@]}" >"$work/$way.log" 2>&1 || true
  [[ -e $work/$way ]] || {
    tail -n 30 "$work/$way.log"
    fail "Django's tests did not run to their end; above is why."
  }
)

root=$PWD
[[ $# -eq 0 ]] || apps=("$@")
servers_in_memory
say "Django's own tests"
install_django
: >"$work/found"
for way in control "${ways[@]}"; do
  say "$way"
  run_tests "$way"
  [[ $way == control ]] || "$differences" lines "$way" "$work/control" "$work/$way" >>"$work/found"
done
"$differences" check pg_test/django/differences.txt "${ways[@]}" <"$work/found"
