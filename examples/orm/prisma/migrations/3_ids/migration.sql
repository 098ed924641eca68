SELECT snowflake_ids.attach('customer', 'id');
SELECT snowflake_ids.attach('invoice', 'id', kind => 'segment', tag => 'invoices');
CREATE TABLE "order" (
    "id"          BIGINT PRIMARY KEY DEFAULT snowflake_nextval(),
    "customer_id" BIGINT NOT NULL REFERENCES "customer" ("id"),
    "note"        TEXT NOT NULL
);
