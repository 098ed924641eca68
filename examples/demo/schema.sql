-- Orders in four shards, each partitioned by month. Both partitionings use only the id: its hash chooses the shard, and its time
-- the month. In a cluster the shards would be on separate machines.

CREATE EXTENSION snowflake_ids;

CREATE TABLE orders (
    id          bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    customer_id bigint         NOT NULL,
    amount      numeric(10, 2) NOT NULL,
    created_at  timestamptz    NOT NULL DEFAULT clock_timestamp()
) PARTITION BY HASH (id);

DO $$
DECLARE
    shard text;
    month timestamptz;
BEGIN
    FOR i IN 0..3 LOOP
        shard := format('orders_%s', i);
        EXECUTE format('CREATE TABLE %I PARTITION OF orders FOR VALUES WITH (MODULUS 4, REMAINDER %s)
                        PARTITION BY RANGE (id)', shard, i);
        -- Last month, this month and the next.
        FOR n IN -1..1 LOOP
            month := date_trunc('month', now()) + n * interval '1 month';
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%s) TO (%s)',
                           shard || to_char(month, '_YYYY_MM'), shard,
                           snowflake_min_id(month), snowflake_min_id(month + interval '1 month'));
        END LOOP;
    END LOOP;
END
$$;

-- Invoices, numbered by a tag.

SELECT snowflake_ids.segment_create('invoices') \g /dev/null

CREATE TABLE invoices (
    id          bigint PRIMARY KEY DEFAULT segment_nextval('invoices'),
    customer_id bigint NOT NULL
);

-- Posts for the browser, with ids of 53 bits. A JavaScript number holds no more bits exactly.

SELECT snowflake_ids.generator_create('web', 'javascript') \g /dev/null

CREATE TABLE posts (
    id    bigint PRIMARY KEY DEFAULT snowflake_nextval('web'),
    title text NOT NULL
);
