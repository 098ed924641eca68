#!/usr/bin/env bash
# inside.sh MAJOR OLDER SQL: devtools/test/packages.sh runs this script in the fresh root. /packages/files is what the host of a
# release serves: repositories, and an archive. The apt repository also has an older package of version OLDER, whose extension has
# the version SQL. /packages/later has the same files, and the next revision of the packages. README's first example is in /packages.
set -euo pipefail

major=$1 older=$2 older_sql=$3
files=/packages/files
name=postgresql-$major-snowflake-ids

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  tail -n 20 "/var/log/postgresql/postgresql-$major-main.log" /packages/log >&2 2>/dev/null
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

# Trailing blanks are removed: README has none.
expected() { sed -nE 's/^-- ?( .*|-.*)$/\1/p' /packages/example.sql | sed 's/ *$//'; }
printed() {
  runuser -u postgres -- psql --no-psqlrc --quiet --pset=footer=off --set=ON_ERROR_STOP=1 </packages/example.sql |
    sed 's/ *$//'
}

# The host serves the next release from now on.
next_release() {
  rm -rf $files
  mv /packages/later $files
  quietly apt-get update -q
}

# Services are not started here. pg_ctlcluster starts servers.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod +x /usr/sbin/policy-rc.d

cp $files/apt/snowflake_ids.sources /etc/apt/sources.list.d
quietly apt-get update -q

# The time from here to the first id is measured. PostgreSQL is fetched and installed meanwhile, without packages that are only
# recommended.
start=$(now)
quietly apt-get install -q -y --no-install-recommends "$name"
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
quietly apt-get install -q -y --no-install-recommends "$name-doc"
for file in README.md docs/sql.md bench/results/latest.md monitoring/alerts.yaml sql/plain/snowflake_ids.sql; do
  [[ -e /usr/share/doc/$name/manual/$file ]] || fail "the documents lack $file"
done
ok "the documents' package"

# Sessions insert while the next revision is installed. These sessions use the library that the server has loaded.
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
next_release
quietly apt-get install -q -y --only-upgrade "$name" "$name-doc"
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
quietly apt-get install -q -y --no-install-recommends "$name"
ok "a removal names the cluster that would not start again"

# A server does not start if shared_preload_libraries names a missing library. README.Debian says to remove the name first.
last=$(query --command='SELECT max(id) FROM upgraded')
dpkg -L "$name" "$name-doc" | sort -u >/packages/listed
preload ''
server restart || fail "the server does not start without the library"
quietly apt-get purge -q -y "$name" "$name-doc"
while IFS= read -r file; do
  if [[ -f $file || $file == *snowflake* && -e $file ]]; then fail "$file is left after the purge"; fi
done </packages/listed
server restart || fail "the server does not start after the purge"
[[ $(query --command='SELECT max(id) FROM upgraded') == "$last" ]] || fail "rows after the purge"
ok "a purge leaves none of the packages' files, and the server and its rows are there"

quietly apt-get install -q -y --no-install-recommends "$name"
preload snowflake_ids
server restart || fail "the server does not start with the library that is back"
query --command='INSERT INTO upgraded DEFAULT VALUES'
[[ $(query --command="SELECT max(id) > $last, count(*) = count(DISTINCT n) FROM upgraded") == 't|t' ]] || fail "ids do not go on"
ok "installed again, ids go on above the former ones"

# Installs the package OLDER with a database of its own, and upgrades again.
quietly apt-get install -q -y --allow-downgrades "$name=$older-1"
server restart || fail "the server does not start with $older's package"
query --command='CREATE DATABASE grown'
query --dbname=grown --command='CREATE EXTENSION snowflake_ids' \
  --command='CREATE TABLE kept (id bigint PRIMARY KEY DEFAULT snowflake_nextval())' --command='INSERT INTO kept DEFAULT VALUES'
[[ $(query --dbname=grown --command="SELECT extversion FROM pg_extension WHERE extname = 'snowflake_ids'") == "$older_sql" ]] ||
  fail "the package of $older has another version of the extension"
quietly apt-get upgrade -q -y
server restart || fail "the server does not start after the upgrade from $older"
query --dbname=grown --command='ALTER EXTENSION snowflake_ids UPDATE' --command='INSERT INTO kept DEFAULT VALUES' 2>>/packages/log ||
  fail "inserts after the upgrade from $older"
[[ $(query --dbname=grown --command="SELECT count(*), (SELECT extversion = default_version FROM pg_extension JOIN pg_available_extensions ON name = extname
    WHERE extname = 'snowflake_ids') FROM kept") == '2|t' ]] ||
  fail "the upgrade from $older"
ok "apt upgrade from $older, and ALTER EXTENSION UPDATE"

# The archive replaces the package in the same server.
preload ''
server restart || fail "the server does not start without the library"
cp "/usr/lib/postgresql/$major/lib/snowflake_ids.so" /packages/packaged.so
quietly apt-get purge -q -y "$name"
mkdir /packages/archive
tar --extract --file "$(compgen -G "$files/snowflake_ids-*-pg$major-*.tar.gz")" --directory /packages/archive --strip-components=1
install_sh() { /packages/archive/install.sh "$@" 2>&1; }
printf '#!/bin/sh\necho PostgreSQL 12.1\n' >/packages/other_pg_config
chmod +x /packages/other_pg_config
if said=$(install_sh /packages/other_pg_config); then fail "another major version is taken"; fi
[[ $said == *"belongs to PostgreSQL 12"*"for PostgreSQL $major"* ]] || fail "of another major version it says: $said"
if said=$(runuser -u postgres -- /packages/archive/install.sh 2>&1); then fail "postgres may write"; fi
[[ $said == *"cannot write to /usr/"* ]] || fail "to who may not write it says: $said"
said=$(PG_CONFIG=/packages/other_pg_config install_sh "/usr/lib/postgresql/$major/bin/pg_config") || fail "the archive: $said"
[[ $said == *shared_preload_libraries*Restart*'CREATE EXTENSION'* ]] || fail "the next steps are: $said"
preload snowflake_ids
server restart || fail "the server does not start with the archive's library"
query --command='CREATE DATABASE unpacked'
query --dbname=unpacked --command='CREATE EXTENSION snowflake_ids'
[[ $(query --dbname=unpacked --command='SELECT snowflake_nextval() > 0') == t ]] || fail "the first id of the archive"
preload ''
server restart || fail "the server does not start without the library"
quietly install_sh --uninstall
left=$(find /usr/lib/postgresql /usr/share/postgresql -name '*snowflake*')
[[ -z $left ]] || fail "install.sh --uninstall leaves $left"
ok "the archive: a wrong version and missing rights are told; installed, first id, removed"
server stop || fail "the server does not stop"

# A client of RPM repositories, on a system without RPM packages.
quietly apt-get install -q -y --no-install-recommends dnf rpm
mkdir -p /etc/yum.repos.d
cp $files/yum/snowflake_ids.repo /etc/yum.repos.d
library=/usr/pgsql-$major/lib/snowflake_ids.so
quietly dnf install -y "snowflake_ids_$major-$older"
[[ $(<"$library") == "$older" ]] || fail "dnf installed another version than $older"
quietly dnf upgrade -y
cmp "$library" /packages/packaged.so || fail "the RPM package has another library than Debian's"
[[ -e /usr/pgsql-$major/share/extension/snowflake_ids.control ]] || fail "the RPM package lacks the control file"
quietly dnf remove -y "snowflake_ids_$major"
[[ ! -e $library ]] || fail "dnf remove leaves $library"
ok "dnf install $older, upgrade, remove, with signatures checked"
echo garbled >>$files/yum/repodata/repomd.xml
if dnf clean all >>/packages/log 2>&1 && dnf install -y "snowflake_ids_$major" >>/packages/log 2>&1; then
  fail "dnf takes a repository that was altered"
fi
echo garbled >>$files/apt/dists/stable/InRelease
sed -i 's/^Label: .*/Label: another/' $files/apt/dists/stable/InRelease
if apt-get update --error-on=any >>/packages/log 2>&1; then fail "apt takes a repository that was altered"; fi
ok "apt and dnf refuse altered repositories"

echo "$passed passed, 0 failed"
