#!/usr/bin/env bash
# pgloader: the tables of shop.sql are already attached, and the rows come from a SQLite file.
set -euo pipefail

query() { psql --no-psqlrc --quiet --no-align --tuples-only --set=ON_ERROR_STOP=1 --command="$1"; }
check() {
  [[ $1 == "$2" ]] || { echo "FAILED: $3: $1"; exit 1; }
  echo "${4:-ok}: $3"
}

echo "== pgloader $1"
python3 - <<'PYTHON'
import sqlite3

with sqlite3.connect("shop.db") as db:
    db.execute("CREATE TABLE customer (id integer PRIMARY KEY, name text)")
    db.execute("CREATE TABLE invoice (id integer PRIMARY KEY, customer_id integer)")
    db.execute("INSERT INTO customer VALUES (100, 'loaded')")
    db.execute("INSERT INTO invoice VALUES (500, 100)")
PYTHON
pgloader shop.load >loaded
check "$(query "SELECT id FROM customer WHERE name = 'loaded'")" 100 'loaded rows keep their ids'
check "$(query 'INSERT INTO invoice (customer_id) VALUES (100) RETURNING id')" 2 \
  '"reset sequences" finds no nextval in the default of an attached column, so its tag continues below the rows' trap
query "SELECT snowflake_ids.attach('invoice', 'id', kind => 'segment', tag => 'invoices')" >attached
check "$(query 'INSERT INTO invoice (customer_id) VALUES (100) RETURNING id')" 501 'attach after loading: ids of the tag continue above the rows'
