#!/usr/bin/env bash
# check.sh CONNECTION: checks the statements of docs/pgdog.md behind a real PgDog. CONNECTION are libpq's options for PgDog, as a
# role that may create tables: 'host=... port=6432 dbname=...'. PgDog's configuration has
#
#   [[sharded_tables]]
#   database = "..."
#   name = "snowflake_ids_check"
#   column = "id"
#   data_type = "bigint"
#
# and each shard has the extension, the shard's number in snowflake_ids.shard, and a worker id from a registry. The registry has a
# tag called snowflake_ids_check. No server is stopped. The table and the generator of that name are dropped at the end.
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../../devtools/lib.sh"

connection=${1:?'check.sh CONNECTION, such as host=pgdog port=6432 dbname=app'}
failures=0

sql() {
  PGOPTIONS='' "$(pg bindir)/psql" -XqAt -v ON_ERROR_STOP=1 -d "$connection" "$@"
}

# Runs SQL on one shard.
on() { sql -c "/* pgdog_shard: $1 */ $2"; }

# Is the output of a command the expected one?
is() {
  local what=$1 expected=$2 seen
  shift 2
  seen=$("$@" 2>&1) || true
  if [[ $seen == "$expected" ]]; then
    printf 'ok      %s\n' "$what"
  else
    printf 'FAILED  %s: %s, not %s\n' "$what" "$seen" "$expected"
    failures=$((failures + 1))
  fi
}

# stored WAY: prints the number of rows of this way on all shards together, as each shard counts them.
stored() {
  local shard sum=0
  for ((shard = 0; shard < shards; shard++)); do
    sum=$((sum + $(on "$shard" "SELECT count(*) FROM snowflake_ids_check WHERE way = '$1'")))
  done
  echo "$sum"
}

# count COMMAND, count_distinct COMMAND: print the number of lines that the command prints, without empty ones.
count() { "$1" | grep --count .; }
count_distinct() { "$1" | sort -u | grep --count .; }

clean() {
  sql -c 'DROP TABLE IF EXISTS snowflake_ids_check, snowflake_ids_check_hash' >/dev/null 2>&1 || true
  for ((shard = 0; shard < ${shards:-0}; shard++)); do
    on "$shard" "SELECT snowflake_ids.generator_drop('snowflake_ids_check')" >/dev/null 2>&1 || true
  done
}
trap clean EXIT

own=$(on 0 "SELECT current_setting('snowflake_ids.shard')")
shards=${own#*/}
[[ $own == 0/* ]] || fail "Shard 0 has snowflake_ids.shard = '$own': see docs/pgdog.md."
printf '%s shards\n' "$shards"
clean
for ((shard = 0; shard < shards; shard++)); do
  is "shard $shard knows its number" "$shard/$shards" on "$shard" "SELECT current_setting('snowflake_ids.shard')"
  on "$shard" "SELECT snowflake_ids.generator_create('snowflake_ids_check')" >/dev/null
done
sql -c "CREATE TABLE snowflake_ids_check (id bigint PRIMARY KEY DEFAULT snowflake_nextval('snowflake_ids_check'), way text)"
sql -c 'CREATE TABLE snowflake_ids_check_hash (id bigint) PARTITION BY HASH (id)'

say 'rows one by one'
found=0
for _ in {1..200}; do
  id=$(sql -c "INSERT INTO snowflake_ids_check (way) VALUES ('one') RETURNING id")
  found=$((found + $(sql -c "SELECT count(*) FROM snowflake_ids_check WHERE id = $id")))
done
is 'each is stored once' 200 stored one
is 'each is found by its id' 200 echo "$found"

say 'many rows at once'
sql -c "INSERT INTO snowflake_ids_check (way) VALUES ('rows'), ('rows'), ('rows'), ('rows')" >/dev/null
is "an INSERT of four rows stores four (else: [rewrite] enabled = true, split_inserts = \"rewrite\")" 4 stored rows
taken() {
  local shard
  for ((shard = 0; shard < shards; shard++)); do
    on "$shard" "SELECT id || ',$1' FROM snowflake_nextvals(50, 'snowflake_ids_check') AS id"
  done
}
taken copy | sql -c 'COPY snowflake_ids_check (id, way) FROM STDIN (FORMAT csv)' >/dev/null
is 'COPY with ids that were taken first stores each row once' $((50 * shards)) stored copy

say 'all rows'
ids() {
  local shard
  for ((shard = 0; shard < shards; shard++)); do on "$shard" 'SELECT id FROM snowflake_ids_check'; done
}
is 'all rows have ids' $((204 + 50 * shards)) count ids
is 'no id twice' $((204 + 50 * shards)) count_distinct ids
for ((shard = 0; shard < shards; shard++)); do
  is "shard $shard has no row of another" 0 on "$shard" "SELECT count(*) FROM snowflake_ids_check
    WHERE NOT satisfies_hash_partition('snowflake_ids_check_hash'::regclass, $shards, $shard, id)"
done

say 'a tag'
numbers() {
  local shard
  for ((shard = 0; shard < shards; shard++)); do
    on "$shard" "SELECT segment_nextval('snowflake_ids_check') FROM generate_series(1, 500)"
  done
}
is 'no number twice' $((500 * shards)) count_distinct numbers
workers() {
  local shard
  for ((shard = 0; shard < shards; shard++)); do on "$shard" 'SELECT worker_id FROM snowflake_ids.status()'; done
}
is 'each shard has a worker id of its own' "$shards" count_distinct workers

say "$failures failed"
((failures == 0))
