-- The tables before the extension.
CREATE TABLE "customer" ("id" bigserial PRIMARY KEY, "name" text NOT NULL);
--> statement-breakpoint
CREATE TABLE "invoice" ("id" bigserial PRIMARY KEY, "customer_id" bigint NOT NULL,
  CONSTRAINT "invoice_customer_id_customer_id_fk" FOREIGN KEY ("customer_id") REFERENCES "customer" ("id"));
--> statement-breakpoint
INSERT INTO "customer" ("name") VALUES ('old 0'), ('old 1'), ('old 2');
--> statement-breakpoint
INSERT INTO "invoice" ("customer_id") VALUES (1);
