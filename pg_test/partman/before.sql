-- The state before the SQL of docs/time.md: a table with rows of five days.
CREATE EXTENSION snowflake_ids;
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
INSERT INTO orders SELECT snowflake_compose(now() - i * interval '1 hour', 0, 1, i), 'before' FROM generate_series(1, 100) AS i;
