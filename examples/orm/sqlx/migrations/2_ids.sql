CREATE EXTENSION snowflake_ids;
SELECT snowflake_ids.attach('customer', 'id');
SELECT snowflake_ids.attach('invoice', 'id', kind => 'segment', tag => 'invoices');
-- The extension gives ids from here on, in this transaction.
INSERT INTO customer (name) VALUES ('migrated');
CREATE TABLE orders (
    id          bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    customer_id bigint NOT NULL REFERENCES customer,
    note        text NOT NULL
);
