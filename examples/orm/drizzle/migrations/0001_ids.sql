CREATE EXTENSION snowflake_ids;
--> statement-breakpoint
SELECT snowflake_ids.attach('customer', 'id');
--> statement-breakpoint
SELECT snowflake_ids.attach('invoice', 'id', kind => 'segment', tag => 'invoices');
--> statement-breakpoint
-- The extension gives ids from here on, in this transaction.
INSERT INTO "customer" ("name") VALUES ('migrated');
--> statement-breakpoint
-- This is what `drizzle-kit generate` writes.
CREATE TABLE "order" ("id" bigint PRIMARY KEY DEFAULT snowflake_nextval() NOT NULL, "customer_id" bigint NOT NULL, "note" text NOT NULL);
--> statement-breakpoint
ALTER TABLE "order" ADD CONSTRAINT "order_customer_id_customer_id_fk" FOREIGN KEY ("customer_id") REFERENCES "customer" ("id");
