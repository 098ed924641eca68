#!/usr/bin/env bash
# inside.sh MAJOR: what devtools/test-packages.sh runs in the fresh root. In /packages are the packages, those of the next
# revision in /packages/next, and README's first example.
set -euo pipefail

major=$1
name=postgresql-$major-snowflake-ids

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  tail -n 20 "/var/log/postgresql/postgresql-$major-main.log" /packages/log 2>/dev/null >&2
  exit 1
}
passed=0
ok() {
  echo "ok: $1"
  passed=$((passed + 1))
}
quietly() { "$@" >>/packages/log 2>&1 || fail "$*"; }
now() { date +%s%N; }
seconds_since() { printf '%d.%d' $((($(now) - $1) / 1000000000)) $((($(now) - $1) / 100000000 % 10)); }

server() { pg_ctlcluster "$major" main "$1" --mode=fast >>/packages/log 2>&1; }
query() { runuser -u postgres -- psql --no-psqlrc --quiet --no-align --tuples-only --set=ON_ERROR_STOP=1 "$@"; }
preload() { quietly pg_conftool "$major" main set shared_preload_libraries "$1"; }

# Without trailing blanks: README has none.
expected() { sed -nE 's/^-- ?( .*|-.*)$/\1/p' /packages/example.sql | sed 's/ *$//'; }
printed() {
  runuser -u postgres -- psql --no-psqlrc --quiet --pset=footer=off --set=ON_ERROR_STOP=1 </packages/example.sql |
    sed 's/ *$//'
}

# Services are not started here: servers are, by pg_ctlcluster.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod +x /usr/sbin/policy-rc.d

quietly apt-get update -q

# From here to the first id is timed: PostgreSQL is fetched and installed on the way, without what is only recommended.
start=$(now)
quietly apt-get install -q -y --no-install-recommends /packages/"$name"_*.deb
[[ -e /usr/lib/postgresql/$major/lib/snowflake_ids.so ]] || fail "the library is not there"
ok "apt install, with PostgreSQL $major: $(seconds_since "$start") s"
quietly pg_conftool "$major" main set listen_addresses ''
preload snowflake_ids
installed=$(now)
server start || fail "the server does not start"
output=$(printed) || fail "README's first example"
[[ $output == *"$(expected)"* && -n $(expected) ]] || fail "README's first example prints: $output"
ok "README's first example prints what README shows"
echo "seconds from apt install to the first id: $(seconds_since "$start"); from the start of the server: $(seconds_since "$installed")"

[[ $(dpkg-query -W -f '${Depends}' "$name") == *libc6* ]] || fail "the package does not say which libraries it needs"
if ldd "/usr/lib/postgresql/$major/lib/snowflake_ids.so" | grep 'not found'; then fail "libraries are missing"; fi
quietly apt-get install -q -y --no-install-recommends /packages/"$name"-doc_*.deb
for file in README.md docs/sql.md bench/results/latest.md monitoring/alerts.yaml sql/plain/snowflake_ids.sql; do
  [[ -e /usr/share/doc/$name/manual/$file ]] || fail "the documents lack $file"
done
ok "the documents' package"

# Sessions go on inserting while the next revision is installed, with the library that the server has loaded.
query --command="CREATE TABLE upgraded (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n bigint DEFAULT segment_nextval('orders'))"
touch /packages/load
load() {
  local count=0
  while [[ -e /packages/load ]]; do
    query --command='INSERT INTO upgraded DEFAULT VALUES' || return 1
    count=$((count + 1))
  done
  echo "$count" >"/packages/load.$1"
}
load 1 & first=$!
load 2 & second=$!
before=$(stat -c %i "/usr/lib/postgresql/$major/lib/snowflake_ids.so")
quietly apt-get install -q -y --no-install-recommends /packages/next/"$name"{,-doc}_*.deb
[[ $(stat -c %i "/usr/lib/postgresql/$major/lib/snowflake_ids.so") != "$before" ]] || fail "the library was overwritten in place"
rm /packages/load
wait "$first" || fail "an insert failed while the upgrade ran"
wait "$second" || fail "an insert failed while the upgrade ran"
inserted=$(($(</packages/load.1) + $(</packages/load.2)))
((inserted > 0)) || fail "no insert ran while the upgrade did"
server restart || fail "the server does not start with the new library"
query --command='ALTER EXTENSION snowflake_ids UPDATE' --command='INSERT INTO upgraded DEFAULT VALUES' 2>>/packages/log ||
  fail "inserts after the upgrade"
[[ $(query --command='SELECT count(*), count(DISTINCT n) FROM upgraded') == "$((inserted + 1))|$((inserted + 1))" ]] ||
  fail "ids of the upgrade: $(query --command='SELECT count(*), count(DISTINCT n) FROM upgraded')"
ok "an upgrade under $inserted inserts: none failed, no id twice"

said=$(apt-get remove -q -y "$name" 2>&1) || fail "it cannot be removed: $said"
[[ $said == *"cluster $major/main loads the library"* ]] || fail "a removal says nothing of the cluster that loads it: $said"
quietly apt-get install -q -y --no-install-recommends /packages/next/"$name"_*.deb
ok "a removal names the cluster that would not start again"

# What stands in preload and is not there keeps a server from starting; README.Debian says to take it out first.
last=$(query --command='SELECT max(id) FROM upgraded')
dpkg -L "$name" "$name-doc" | sort -u >/packages/files
preload ''
server restart || fail "the server does not start without the library"
quietly apt-get purge -q -y "$name" "$name-doc"
while IFS= read -r file; do
  if [[ -f $file || $file == *snowflake* && -e $file ]]; then fail "$file is left after the purge"; fi
done </packages/files
server restart || fail "the server does not start after the purge"
[[ $(query --command='SELECT max(id) FROM upgraded') == "$last" ]] || fail "rows after the purge"
ok "a purge leaves none of the packages' files, and the server and its rows are there"

quietly apt-get install -q -y --no-install-recommends /packages/next/"$name"_*.deb
preload snowflake_ids
server restart || fail "the server does not start with the library that is back"
query --command='INSERT INTO upgraded DEFAULT VALUES'
[[ $(query --command="SELECT max(id) > $last, count(*) = count(DISTINCT n) FROM upgraded") == 't|t' ]] || fail "ids do not go on"
ok "installed again, ids go on above the former ones"
server stop || fail "the server does not stop"

echo "$passed passed, 0 failed"
