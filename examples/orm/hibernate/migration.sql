CREATE EXTENSION snowflake_ids;
-- Hibernate calls this sequence. The sequence gives snowflake ids from now on, in blocks of 50.
SELECT snowflake_ids.bind_sequence('customer_seq');
-- The column's default, and its sequence.
SELECT snowflake_ids.attach('orders', 'id', kind => 'segment', tag => 'orders');
-- The extension gives ids from here on, in this transaction.
INSERT INTO customer (id, name) VALUES (nextval('customer_seq'), 'migrated');
