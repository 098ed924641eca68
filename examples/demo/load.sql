-- A quarter of a million orders. The ids come from the column's default.

INSERT INTO orders (customer_id, amount)
SELECT 1 + n % 10000, 1 + n % 500
FROM generate_series(1, 250000) AS n;
