-- The statements that a session repeats. A line of ids is printed once their rows are committed, so these rows have to be there
-- in the end. After a failure the session waits a little, as any client should.

WITH new AS (
    INSERT INTO orders (customer_id, amount)
    SELECT 1 + n % 10000, 1 + n % 500 FROM generate_series(1, :rows) AS n
    RETURNING id
) SELECT 'orders', array_agg(id) FROM new;
\if :ERROR
    \! sleep 0.2
\endif

WITH new AS (
    INSERT INTO invoices (customer_id)
    SELECT 1 + n % 10000 FROM generate_series(1, :rows) AS n
    RETURNING id
) SELECT 'invoices', array_agg(id) FROM new;
\if :ERROR
    \! sleep 0.2
\endif
