-- Distributed tables with both kinds of keys. Run this on the coordinator. Another run drops the tables and creates them again.

\set ON_ERROR_STOP on

DROP TABLE IF EXISTS orders, invoices;

CREATE TABLE orders (
    id     bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    amount numeric(10, 2) NOT NULL
);
SELECT create_distributed_table('orders', 'id');

-- The key of a table that is distributed by another column than id has to contain that column. Citus then does not check that the
-- ids alone are unique, but no id comes twice.
SELECT snowflake_ids.segment_create('invoices') WHERE NOT EXISTS (SELECT FROM snowflake_ids.segment WHERE tag = 'invoices');
CREATE TABLE invoices (
    tenant_id bigint NOT NULL,
    id        bigint DEFAULT segment_nextval('invoices'),
    customer  text   NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
SELECT create_distributed_table('invoices', 'tenant_id');

-- The following statements run on any node.
INSERT INTO orders (amount) VALUES (9.50), (12.00), (3.20) RETURNING id;
INSERT INTO invoices (tenant_id, customer) VALUES (1, 'Ada'), (2, 'Grace') RETURNING id;
COPY orders (amount) FROM STDIN;
4.10
7.70
\.
INSERT INTO orders (amount) SELECT n FROM generate_series(1, 1000) AS n;
INSERT INTO orders (amount) SELECT amount + 1 FROM orders;

SELECT count(*), count(DISTINCT id) FROM orders;
