#!/usr/bin/env bash
# check.sh CONNECTION: checks on a real cluster what the tests check on the stand-in for Citus. CONNECTION are libpq's options for
# the coordinator's database, as a superuser who may log in on all nodes: 'host=... port=... dbname=...'. All nodes preload the
# libraries of Citus and of this extension, and the nodes are added. No server is stopped. Only the extension, its registry, and
# the tags called snowflake_ids_check... stay.
#
#   ROWS   the number of rows written to see that shards are even (2300000: enough for 2 %)
set -euo pipefail
# shellcheck source=devtools/lib.sh
source "$(dirname "$0")/../../devtools/lib.sh"

connection=${1:?'check.sh CONNECTION, such as host=coordinator port=5432 dbname=app'}
rows=${ROWS:-2300000}
failures=0

# Runs SQL on a node, by default on the coordinator, and prints its result.
on() {
  local node=$1
  shift
  PGOPTIONS='-c client_min_messages=warning -c search_path=snowflake_ids_check,public,pg_catalog' \
    "$(pg bindir)/psql" -XqAt -v ON_ERROR_STOP=1 -d "$connection $node" "$@"
}

sql() { on '' -c "$1"; }

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

# Does a statement on a node fail with these words?
refused() {
  local what=$1 node=$2 words=$3 statement=$4 seen
  if seen=$(on "$node" -c "$statement" 2>&1) || [[ $seen != *"$words"* ]]; then
    printf 'FAILED  %s: %s\n' "$what" "$seen"
    failures=$((failures + 1))
  else
    printf 'ok      %s\n' "$what"
  fi
}

clean() { sql 'DROP SCHEMA IF EXISTS snowflake_ids_check CASCADE' >/dev/null 2>&1 || true; }
trap clean EXIT

say "$(sql "SELECT format('PostgreSQL %s, Citus %s', current_setting('server_version'),
  coalesce((SELECT extversion FROM pg_extension WHERE extname = 'citus'), 'missing'))")"
sql 'CREATE EXTENSION IF NOT EXISTS snowflake_ids'
sql 'CALL snowflake_ids.use_citus()'
mapfile -t nodes < <(sql "SELECT format('host=%s port=%s', nodename, nodeport) FROM pg_dist_node
  WHERE isactive AND noderole = 'primary' ORDER BY groupid")
mapfile -t workers < <(sql "SELECT format('host=%s port=%s', nodename, nodeport) FROM pg_dist_node
  WHERE isactive AND noderole = 'primary' AND groupid <> 0 ORDER BY groupid")
count=${#nodes[@]}
printf '%s nodes, %s of them workers\n' "$count" "${#workers[@]}"

say 'the registry'
# A server that gave no ids since its start has no worker id yet, and is well.
is 'nothing is wrong with any node' "$count|0|t" sql \
  'SELECT count(*), count(problem), count(worker_id) = count(DISTINCT worker_id) FROM snowflake_ids.citus_status()'
is 'a worker says the same' "$count|0|t" on "${workers[0]}" -c \
  'SELECT count(*), count(problem), count(worker_id) = count(DISTINCT worker_id) FROM snowflake_ids.citus_status()'
clean
sql "CREATE SCHEMA snowflake_ids_check; SELECT snowflake_ids.segment_create('snowflake_ids_check')
  WHERE NOT EXISTS (SELECT FROM snowflake_ids.segment WHERE tag = 'snowflake_ids_check')" >/dev/null
one() { on "${workers[0]}" -c "SELECT segment_nextval('snowflake_ids_check')"; }
before=$(one)
sql 'CALL snowflake_ids.use_citus()'
is 'a second call costs no number' $((before + 1)) one
is 'ids of all nodes, none twice' "$((count * 20000))|$((count * 20000))" sql "
  SELECT count(*), count(DISTINCT id) FROM run_command_on_all_nodes(
    \$\$SELECT string_agg(id::text, ' ') FROM snowflake_nextvals(20000) AS id\$\$) AS r,
    regexp_split_to_table(r.result, ' ') AS id"
is 'numbers of a tag through all nodes, none twice' "$((count * 2000))|$((count * 2000))" sql "
  SELECT count(*), count(DISTINCT id) FROM run_command_on_all_nodes(
    \$\$SELECT string_agg(segment_nextval('snowflake_ids_check')::text, ' ') FROM generate_series(1, 2000)\$\$) AS r,
    regexp_split_to_table(r.result, ' ') AS id"
refused 'tags are not created on workers' "${workers[0]}" 'kept by registry' \
  "SELECT snowflake_ids.segment_create('snowflake_ids_check_worker')"

say 'inserts of every kind through every node, 8 sessions'
sql "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    number bigint NOT NULL DEFAULT segment_nextval('snowflake_ids_check'), way text);
  SELECT create_distributed_table('orders', 'id', shard_count => 32);
  CREATE TABLE tenants (tenant bigint, id bigint DEFAULT segment_nextval('snowflake_ids_check'), way text, PRIMARY KEY (tenant, id));
  SELECT create_distributed_table('tenants', 'tenant');
  CREATE TABLE countries (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), way text);
  SELECT create_reference_table('countries')" >/dev/null
insert() {
  on "$1" >/dev/null <<'SQL'
INSERT INTO orders (way) VALUES ('values');
INSERT INTO orders (way) VALUES ('rows'), ('rows'), ('rows');
INSERT INTO orders (way) SELECT 'series' FROM generate_series(1, 1000);
INSERT INTO orders (way) SELECT 'select' FROM countries;
INSERT INTO tenants (tenant, way) SELECT n % 7, 'series' FROM generate_series(1, 500) AS n;
INSERT INTO countries (way) VALUES ('values');
COPY orders (way) FROM STDIN;
copy
copy
\.
SQL
}
for _ in {1..8}; do
  for node in "${nodes[@]}"; do insert "$node"; done &
done
wait
inserts=$((count * 8))
is 'no row is lost in orders' $((inserts * 1006)) sql "SELECT count(*) FROM orders WHERE way <> 'select'"
is 'no id twice in orders' 't|t' sql 'SELECT count(*) = count(DISTINCT id), count(*) = count(DISTINCT number) FROM orders'
is 'no id twice in tenants' "$((inserts * 500))|$((inserts * 500))" sql 'SELECT count(*), count(DISTINCT id) FROM tenants'
is 'none in both' t sql 'SELECT count(*) = count(DISTINCT n) FROM (SELECT number AS n FROM orders UNION ALL SELECT id FROM tenants) AS b'
is 'no id twice in a reference table' "$inserts|$inserts" sql 'SELECT count(*), count(DISTINCT id) FROM countries'

say 'keys without the distribution column, 8 sessions, shards that move'
sql "SET citus.allow_unsafe_constraints = on;
  CREATE TABLE tickets (tenant bigint, id bigint PRIMARY KEY DEFAULT snowflake_nextval(), way text);
  SELECT create_distributed_table('tickets', 'tenant', colocate_with => 'tenants');
  CREATE TABLE bills (tenant bigint, id bigserial PRIMARY KEY);
  SELECT create_distributed_table('bills', 'tenant', colocate_with => 'tenants')" >/dev/null
insert_tickets() {
  on "$1" >/dev/null <<'SQL'
INSERT INTO tickets (tenant, way) SELECT n, 'series' FROM generate_series(1, 500) AS n;
INSERT INTO tickets (tenant, way) SELECT tenant, 'select' FROM tenants LIMIT 500;
INSERT INTO tickets (tenant, way) SELECT tenant, 'shards' FROM countries, (VALUES (1), (2)) AS t (tenant);
INSERT INTO tickets (tenant, way) VALUES (1, 'conflict') ON CONFLICT (id) DO NOTHING;
COPY tickets (tenant, way) FROM STDIN;
1	copy
2	copy
\.
SQL
}
for _ in {1..8}; do
  for node in "${nodes[@]}"; do insert_tickets "$node" || true; done &
done
for _ in {1..4}; do
  sql "SELECT citus_move_shard_placement(s.shardid, s.nodename, s.nodeport, n.nodename, n.nodeport, 'block_writes')
    FROM (SELECT * FROM citus_shards WHERE table_name = 'tickets'::regclass ORDER BY random() LIMIT 1) AS s
    JOIN pg_dist_node AS n ON n.groupid <> 0 AND n.isactive AND n.noderole = 'primary' AND n.nodeport <> s.nodeport LIMIT 1" >/dev/null || true
done
wait
is 'no id twice in tickets' "t|t" sql "SELECT count(*) = count(DISTINCT id), count(*) >= $count * 500 FROM tickets"
is 'nothing is wrong with their key, but with that of bills' 'f|t' sql "SELECT problem LIKE '%tickets_pkey%', problem LIKE
  '%bills_pkey%the default of column \"id\" is nextval(%' FROM snowflake_ids.citus_status() WHERE group_id = 0"
is 'attach of its column' '' sql "SELECT snowflake_ids.attach('bills', 'id')"
is 'nothing is wrong with either then' 0 sql 'SELECT count(problem) FROM snowflake_ids.citus_status()'
sql "INSERT INTO tickets SELECT n, 1 FROM generate_series(1, 200) AS n ON CONFLICT (id) DO NOTHING"
is 'Citus does not see an id twice that was written by hand' t sql 'SELECT count(*) > 1 FROM tickets WHERE id = 1'

say 'attach and detach'
sql "CREATE TABLE invoices (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, way text);
  SELECT create_distributed_table('invoices', 'id')" >/dev/null
for node in "${nodes[@]}"; do on "$node" -c "INSERT INTO invoices (way) SELECT 'before' FROM generate_series(1, 100)"; done
refused 'a worker does not attach' "${workers[0]}" 'worker' "SELECT snowflake_ids.attach('invoices', 'id', 'snowflake')"
for kind in snowflake segment; do
  is "attach as $kind" '' sql "SELECT snowflake_ids.attach('invoices', 'id', '$kind')"
  for node in "${nodes[@]}"; do
    on "$node" -c "INSERT INTO invoices (way) SELECT '$kind' FROM generate_series(1, 500)" &&
      on "$node" -c "INSERT INTO invoices (way) VALUES ('$kind'), ('$kind')" || failures=$((failures + 1))
  done
  is "no id twice as $kind, on any node" "$((count * 502))|t" sql "
    SELECT count(*) FILTER (WHERE way = '$kind'), count(*) = count(DISTINCT id) FROM invoices"
  is "the same default on all nodes as $kind" '1|t' sql "SELECT count(DISTINCT result), bool_and(result LIKE '$kind%') FROM run_command_on_all_nodes(
    \$\$SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef AS d WHERE d.adrelid = 'snowflake_ids_check.invoices'::regclass\$\$)"
done
is 'detach' '' sql "SELECT snowflake_ids.detach('invoices', 'id')"
for node in "${nodes[@]}"; do
  on "$node" -c "INSERT INTO invoices (way) SELECT 'after' FROM generate_series(1, 100)" || failures=$((failures + 1))
done
is 'no id twice after detach' "$((count * 100))|t" sql "
  SELECT count(*) FILTER (WHERE way = 'after'), count(*) = count(DISTINCT id) FROM invoices"

sql "CREATE TABLE stock (tenant bigint, id bigint, way text, PRIMARY KEY (tenant, id));
  SELECT create_distributed_table('stock', 'tenant');
  INSERT INTO stock SELECT 1, n, 'before' FROM generate_series(1, 100) AS n" >/dev/null
is 'attach of a table with rows' '' sql "SELECT snowflake_ids.attach('stock', 'id', 'segment')"
sql "INSERT INTO stock (tenant, way) SELECT 2, 'after' FROM generate_series(1, 100)"
is 'no id of these rows again' '200|200' sql 'SELECT count(*), count(DISTINCT id) FROM stock'
sql "CREATE TABLE parcels (tenant bigint, id bigserial, PRIMARY KEY (tenant, id)); SELECT create_distributed_table('parcels', 'tenant')" >/dev/null
for call in attach_all detach_all; do
  # A column that had numbers of a tag above the next id is left, with a warning.
  sql "CALL snowflake_ids.$call('snowflake_ids_check')" >/dev/null 2>&1
  is "$call on all nodes" "$count" sql "SELECT count(*) FROM run_command_on_all_nodes(\$\$SELECT pg_get_expr(d.adbin, d.adrelid)
    FROM pg_attrdef AS d WHERE d.adrelid = 'snowflake_ids_check.parcels'::regclass\$\$)
    WHERE starts_with(result, 'snowflake') = ('$call' = 'attach_all')"
done

say 'gapless numbers on shards, 8 sessions, shards that move'
sql "SELECT snowflake_ids.series_drop(name) FROM snowflake_ids.series WHERE name = 'snowflake_ids_check';
  CREATE TABLE numbered (tenant integer, number bigint, PRIMARY KEY (tenant, number));
  SELECT create_distributed_table('numbered', 'tenant');
  SELECT snowflake_ids.series_create('snowflake_ids_check', owner => current_user);
  SELECT series_nextval('snowflake_ids_check', 0)" >/dev/null
sql "SELECT snowflake_ids.series_distribute('snowflake_ids_check', 'numbered')" >/dev/null
number() {
  local tenant=$((RANDOM % 20))
  on "$1" -c "BEGIN; INSERT INTO numbered VALUES ($tenant, series_nextval('snowflake_ids_check', $tenant)),
    ($tenant, series_nextval('snowflake_ids_check', $tenant)); END"
}
for _ in {1..8}; do
  for _ in {1..20}; do for node in "${nodes[@]}"; do number "$node" 2>/dev/null || true; done; done &
done
for _ in {1..4}; do
  sql "SELECT citus_move_shard_placement(s.shardid, s.nodename, s.nodeport, n.nodename, n.nodeport, 'block_writes')
    FROM (SELECT * FROM citus_shards WHERE table_name = 'numbered'::regclass ORDER BY random() LIMIT 1) AS s
    JOIN pg_dist_node AS n ON n.groupid <> 0 AND n.isactive AND n.noderole = 'primary' AND n.nodeport <> s.nodeport LIMIT 1" >/dev/null || true
done
wait
is 'each tenant has 1 to n, one from 2' '20|0' sql "SELECT count(*), count(*) FILTER (WHERE n <> last - first + 1 OR first <> CASE tenant WHEN 0 THEN 2 ELSE 1 END)
  FROM (SELECT tenant, count(*) AS n, min(number) AS first, max(number) AS last FROM numbered GROUP BY 1) AS t"
sql "SELECT snowflake_ids.series_drop('snowflake_ids_check')" >/dev/null

say "shards of $rows rows"
per_node=$((rows / count))
for node in "${nodes[@]}"; do
  on "$node" -c "INSERT INTO orders (way) SELECT 'even' FROM generate_series(1, $per_node)" &
done
wait
shards=$(sql "SELECT string_agg(result, ' ') FROM run_command_on_shards('orders', 'SELECT count(*) FROM %s')")
uneven=$(sql "SELECT round(max(abs(n::numeric / m - 1)) * 100, 2)
  FROM (SELECT n, avg(n::numeric) OVER () AS m FROM regexp_split_to_table('$shards', ' ') AS n) AS s")
printf 'the fullest or emptiest of %s shards is off by %s %%\n' "$(wc -w <<<"$shards")" "$uneven"
is 'shards are even within 2 %' t sql "SELECT $uneven < 2"
is 'no id twice among all rows' t sql 'SELECT count(*) = count(DISTINCT id) FROM orders'

say "$failures failed"
((failures == 0))
