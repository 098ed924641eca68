-- 2,500 posts, first: so the server has a worker id from the beginning that the ids for browsers have room for.

INSERT INTO posts (title)
SELECT 'Post ' || n
FROM generate_series(1, 2500) AS n;

-- And a quarter of a million orders. Their ids come from the column's default.

INSERT INTO orders (customer_id, amount)
SELECT 1 + n % 10000, 1 + n % 500
FROM generate_series(1, 250000) AS n;

-- And 25,000 invoices, numbered likewise.

INSERT INTO invoices (customer_id)
SELECT 1 + n % 10000
FROM generate_series(1, 25000) AS n;
