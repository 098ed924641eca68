-- 2,500 posts come first, so that the server takes from the beginning a worker id that fits into ids for browsers.

INSERT INTO posts (title)
SELECT 'Post ' || n
FROM generate_series(1, 2500) AS n;

-- A quarter of a million orders. Their ids come from the column's default.

INSERT INTO orders (customer_id, amount)
SELECT 1 + n % 10000, 1 + n % 500
FROM generate_series(1, 250000) AS n;

-- 25,000 invoices, numbered by the column's default, too.

INSERT INTO invoices (customer_id)
SELECT 1 + n % 10000
FROM generate_series(1, 25000) AS n;
