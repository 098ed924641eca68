-- The statements that a session repeats. psql prints a line of ids once the ids' rows are committed, so the check at the end must
-- find these rows. After a failure the session waits a little, as any client should.

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
