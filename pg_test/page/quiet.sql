-- A server where all is well.
CREATE EXTENSION snowflake_ids;
SELECT snowflake_ids.segment_create('invoices');
SELECT snowflake_ids.segment_create('orders', step => 200);
SELECT snowflake_ids.series_create('invoice_of_customer');
SELECT snowflake_ids.generator_create('web', 'javascript');
SELECT snowflake_nextval(), snowflake_nextval('web'), segment_nextval('invoices'), segment_nextval('orders');
SELECT series_nextval('invoice_of_customer', key) FROM generate_series(1::bigint, 30) AS key;
SELECT count(snowflake_nextval()) FROM generate_series(1, 400);
