CREATE EXTENSION snowflake_ids;
SELECT snowflake_ids.attach('customer', 'id');
SELECT snowflake_ids.attach('invoice', 'id', kind => 'segment', tag => 'invoices');
-- The extension gives ids from here on, in this transaction.
INSERT INTO "customer" ("name") VALUES ('migrated');
CREATE TABLE "order" (
    "id"          BIGINT PRIMARY KEY DEFAULT snowflake_nextval(),
    "customer_id" BIGINT NOT NULL REFERENCES "customer" ("id"),
    "note"        TEXT NOT NULL
);
