-- The tables before the extension, with @default(autoincrement()) in the schema.
CREATE TABLE "customer" ("id" BIGSERIAL PRIMARY KEY, "name" TEXT NOT NULL);
CREATE TABLE "invoice" ("id" BIGSERIAL PRIMARY KEY, "customer_id" BIGINT NOT NULL REFERENCES "customer" ("id"));
INSERT INTO "customer" ("name") VALUES ('old 0'), ('old 1'), ('old 2');
INSERT INTO "invoice" ("customer_id") VALUES (1);
