#!/usr/bin/env bash
# orm.sh [TOOL...]: runs all projects in examples/orm, or those named. Each project runs against a new throwaway server with the
# installed extension, so that the migration's transaction takes the first ids. The projects' dependencies come from PyPI, npm,
# crates and Debian, below target/orm; Debian's packages are installed on this machine. Each tool connects to a database as an
# ordinary role that owns the database. A tool without migrations finds the tables of shop.sql there. The output of each project is
# kept in target/orm. If all projects ran and no check failed, the outputs are also kept in examples/orm/RESULTS.md. The tool
# "django-suite" is Django's own tests.
set -Eeuo pipefail
# shellcheck source=devtools/servers.sh
source "$(dirname "$0")/../servers.sh"

with_migrations=(django sqlalchemy typeorm drizzle prisma activerecord sqlx hibernate)
with_shop=(python node php perl ruby go jdbc pgloader)
all=("${with_migrations[@]}" "${with_shop[@]}")
root=$PWD work=$TARGET/orm
export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false npm_config_loglevel=error

python_project() {
  python3 -m ensurepip --version >/dev/null 2>&1 || need_packages python3-venv
  [[ -x .venv/bin/pip ]] || python3 -m venv .venv
  .venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
}

# The projects. Each project runs in a copy below target/orm: install_TOOL installs its dependencies, run_TOOL runs the project.
install_django() { python_project; }
run_django() { .venv/bin/python run.py; }
install_sqlalchemy() { python_project; }
run_sqlalchemy() { .venv/bin/python run.py; }
install_typeorm() { npm install; }
run_typeorm() { npx tsx run.ts; }
install_drizzle() { npm install; }
run_drizzle() { npx tsx run.ts; }
# Prisma's client needs no program of Prisma's, but the client's generator would download the program that migrates.
install_prisma() { npm install && PRISMA_SCHEMA_ENGINE_BINARY=/bin/true npx prisma generate; }
run_prisma() { npx tsx run.ts; }
install_activerecord() { need_packages ruby ruby-activerecord ruby-pg; }
run_activerecord() { ruby run.rb; }
install_sqlx() { CARGO_TARGET_DIR=$work/sqlx-target cargo build --quiet; }
run_sqlx() { "$work/sqlx-target/debug/sqlx_example"; }
install_hibernate() {
  command -v javac >/dev/null || need_packages default-jdk-headless
  need_packages libhibernate3-java libjavassist-java libpostgresql-jdbc-java
  javac -cp "$(hibernate_jars)" -d classes ./*.java
}
run_hibernate() {
  java --add-opens java.base/java.lang=ALL-UNNAMED -cp "classes:$(hibernate_jars)" Run "$(version libhibernate3-java)"
}
hibernate_jars() {
  jars hibernate-core hibernate-commons-annotations geronimo-jpa_2.0_spec geronimo-jta-1.2-spec antlr \
    commons-collections3 dom4j slf4j-api slf4j-nop javassist postgresql
}
install_python() { python_project; }
run_python() { .venv/bin/python run.py; }
install_node() { npm install; }
run_node() { node run.js; }
install_php() { need_packages php-cli php-pgsql php-doctrine-orm php-symfony-cache php-illuminate-database; }
run_php() { php run.php; }
install_perl() { need_packages libdbd-pg-perl libdbix-class-perl librose-db-object-perl; }
run_perl() { perl run.pl; }
install_ruby() { need_packages ruby ruby-pg ruby-sequel; }
run_ruby() { ruby run.rb; }
install_go() {
  need_packages golang-go golang-github-jackc-pgx-v4-dev golang-github-lib-pq-dev golang-github-jmoiron-sqlx-dev
  GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$work/go-cache go build -o run run.go
}
run_go() { ./run "$(version golang-github-jackc-pgx-v4-dev)" "$(version golang-github-lib-pq-dev)" "$(version golang-github-jmoiron-sqlx-dev)"; }
install_jdbc() {
  command -v javac >/dev/null || need_packages default-jdk-headless
  need_packages libpostgresql-jdbc-java libspring-jdbc-java libcommons-logging-java
  javac -cp "$(jdbc_jars)" -d classes ./*.java
}
run_jdbc() { java -cp "classes:$(jdbc_jars)" Run "$(version libpostgresql-jdbc-java)" "$(version libspring-jdbc-java)"; }
jdbc_jars() { jars postgresql commons-logging spring3-{core,beans,transaction,jdbc}; }
install_pgloader() { need_packages pgloader; }
run_pgloader() { PATH=$(pg bindir):$PATH ./run.sh "$(version pgloader)"; }

# The same tools in an application that does not know the extension. unchanged_TOOL FILE makes the tables, inserts a thousand rows
# and writes their ids to FILE. The database has the value of new_columns that docs/orm.md names for the tool.
declare -A new_columns=([django]=snowflake [sqlalchemy]=snowflake [typeorm]=bound [drizzle]=bound [activerecord]=bound)
unchanged_django() { .venv/bin/python unchanged.py "$1"; }
unchanged_sqlalchemy() { .venv/bin/python unchanged.py "$1"; }
unchanged_typeorm() { npx tsx unchanged.ts "$1"; }
unchanged_drizzle() { npx tsx unchanged.ts "$1"; }
unchanged_activerecord() { ruby unchanged.rb "$1"; }

jars() { printf '/usr/share/java/%s.jar:' "$@"; }
# Prints the version of a Debian package, without Debian's additions to it.
version() { dpkg-query -W -f '${Version}' "$1" | sed -E 's/^[0-9]+://; s/[-+].*//'; }

# Copies the project from the checkout, beside dependencies that were installed for it before.
copy_project() {
  mkdir -p "$work/$1"
  find "$work/$1" -mindepth 1 -maxdepth 1 ! -name .venv ! -name node_modules -exec rm -rf {} +
  cp -r "$root/examples/orm/$1/." "$work/$1"
}

# start_server [SETTING...]
start_server() {
  local port password
  folder=$(server_folder)
  port=$(free_port)
  password=$(new_password)
  keep_secret "$folder/password" <<<"$password"
  server_create "$folder" "$port" "$folder/password" 'fsync = off' "$@"
  server_start "$folder"
  export PGHOST=127.0.0.1 PGPORT=$port PGUSER=demo PGPASSWORD=$password
  psql "CREATE ROLE app LOGIN PASSWORD '$password'"
}

stop_server() {
  if [[ -n $folder ]]; then
    server_stop "$folder"
    rm -rf "$folder"
    folder=
  fi
}

# psql COMMAND [DATABASE]
psql() { "$(pg bindir)/psql" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="${2-postgres}" --command="$1"; }

# as_app COMMAND...: runs the command in the folder and the database of a tool.
as_app() {
  (
    export PGUSER=app PGDATABASE=$tool DATABASE_URL="postgresql://app:$PGPASSWORD@$PGHOST:$PGPORT/$tool"
    cd "$work/$tool"
    "$@"
  )
}

# The database is owned by the role "app", which has no other rights.
run_project() {
  local tool=$1 held=0
  start_server
  psql "CREATE DATABASE $tool OWNER app"
  if [[ " ${with_shop[*]} " == *" $tool "* ]]; then
    as_app "$(pg bindir)/psql" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --file="$root/examples/orm/shop.sql" >/dev/null
  fi
  as_app "run_$tool" 2>&1 | tee "$work/$tool.log" || held=$?
  stop_server
  return "$held"
}

# Runs the unchanged application on two servers, whose ids must differ.
run_unchanged() {
  local tool=$1 server held=0
  rm -f "$work/$tool".ids.*
  for server in 1 2; do
    start_server "snowflake_ids.worker_id = $server"
    psql "CREATE DATABASE $tool OWNER app"
    psql "CREATE EXTENSION snowflake_ids" "$tool"
    psql "SELECT snowflake_ids.administration_grant('tags', 'app')" "$tool" >/dev/null
    psql "ALTER DATABASE $tool SET snowflake_ids.new_columns = '${new_columns[$tool]}'"
    as_app "unchanged_$tool" "$work/$tool.ids.$server" >"$work/$tool.unchanged.log" 2>&1 || held=$?
    stop_server
    [[ $held -eq 0 ]] || {
      cat "$work/$tool.unchanged.log"
      return 1
    }
  done
  [[ $(cat "$work/$tool".ids.* | wc -l) -eq 2000 && -z $(sort "$work/$tool".ids.* | uniq -d) ]] || {
    echo "FAILED: of the ids in $work/$tool.ids.*, 2,000 had to be there, and each once"
    return 1
  }
  {
    cat "$work/$tool.unchanged.log"
    echo "ok: two servers gave 2,000 ids, and none twice"
  } | tee -a "$work/$tool.log"
}

# Writes a row for each tool that the projects print: its version, and the numbers of claims and of traps.
write_results() {
  local tool
  {
    printf '# Results\n\nThe last run of "make test-orm", on %s. ' "$(pg version | sed -E 's/ \(.*//')"
    printf 'All claims of all projects held. The sentences stand in [the projects](README.md);\n'
    printf 'why a trap is one stands in [docs/orm.md](../../docs/orm.md).\n\n| tool | claims | of them traps |\n| --- | --- | --- |\n'
    for tool in "${all[@]}"; do cat "$work/$tool.log"; done | awk '
      function row() { if (name) printf "| %s | %d | %d |\n", name, claims, traps }
      sub(/^== /, "") { row(); name = $0; claims = traps = 0 }
      /^(ok|trap): / { claims++ }
      /^trap: / { traps++ }
      END { row() }'
  } >examples/orm/RESULTS.md
}

if [[ ${1-} == django-suite ]]; then exec "$here/test/django-suite.sh" "${@:2}"; fi
tools=("$@")
[[ $# -gt 0 ]] || tools=("${all[@]}")
failed=() folder=
trap stop_server EXIT
for tool in "${tools[@]}"; do
  say "$tool"
  copy_project "$tool"
  (cd "$work/$tool" && "install_$tool") >"$work/$tool.install.log" 2>&1 || {
    tail -n 30 "$work/$tool.install.log"
    failed+=("$tool")
    continue
  }
  run_project "$tool" || { failed+=("$tool") && continue; }
  if [[ -n ${new_columns[$tool]-} ]]; then run_unchanged "$tool" || failed+=("$tool, unchanged"); fi
done
[[ ${#failed[@]} -eq 0 ]] || fail "These failed: ${failed[*]}. What they printed is in $work."
if [[ $# -eq 0 ]]; then write_results; fi
say "${#tools[@]} passed, 0 failed"
