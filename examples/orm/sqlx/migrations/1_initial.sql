-- The tables before the extension.
CREATE TABLE customer (id bigserial PRIMARY KEY, name text NOT NULL);
CREATE TABLE invoice (id bigserial PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customer);
INSERT INTO customer (name) VALUES ('old 0'), ('old 1'), ('old 2');
INSERT INTO invoice (customer_id) VALUES (1);
