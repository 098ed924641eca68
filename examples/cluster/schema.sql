-- Tables in 12 buckets by the hash of the id. Every node has all buckets: its own as tables, the others as foreign tables. So a
-- row may be inserted on any node, and is stored on the shard that has the bucket of the row's id.

-- The role with which other nodes use this node's buckets.
CREATE ROLE peer LOGIN PASSWORD :'peer_password';
ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT ON TABLES TO peer;

-- The node that a session is connected to makes the ids of both tables. made_on is that node's name.

CREATE TABLE orders (
    id          bigint         NOT NULL DEFAULT snowflake_nextval(),
    customer_id bigint         NOT NULL,
    amount      numeric(10, 2) NOT NULL,
    made_on     text           NOT NULL DEFAULT current_setting('cluster_name')
) PARTITION BY HASH (id);

CREATE TABLE invoices (
    id          bigint NOT NULL DEFAULT segment_nextval('invoices'),
    customer_id bigint NOT NULL,
    made_on     text   NOT NULL DEFAULT current_setting('cluster_name')
) PARTITION BY HASH (id);

-- Makes a shard known to this node. Does nothing on that shard itself.
CREATE PROCEDURE meet(shard name, port text, password text) LANGUAGE plpgsql AS $$
BEGIN
    IF shard = current_setting('cluster_name') THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw
                    OPTIONS (host ''127.0.0.1'', port %L, dbname ''postgres'', fetch_size ''10000'', batch_size ''1000'')',
        shard, port);
    EXECUTE format('CREATE USER MAPPING FOR PUBLIC SERVER %I OPTIONS (user ''peer'', password %L)', shard, password);
END
$$;

-- Adds a bucket that is stored on a shard.
CREATE PROCEDURE place(parent name, bucket int, shard name) LANGUAGE plpgsql AS $$
DECLARE
    partition name := format('%s_%s', parent, bucket);
    bounds text := format('PARTITION OF %I FOR VALUES WITH (MODULUS 12, REMAINDER %s)', parent, bucket);
BEGIN
    IF shard = current_setting('cluster_name') THEN
        EXECUTE format('CREATE TABLE %I %s', partition, bounds);
        EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (id)', partition);
    ELSE
        EXECUTE format('CREATE FOREIGN TABLE %I %s SERVER %I', partition, bounds, shard);
    END IF;
END
$$;

-- Moves a bucket to another shard while rows are inserted. Call it first on the node that stores the bucket: that call moves the
-- rows. Then call it on the other nodes. Until then these nodes send rows to the old shard, which sends the rows on. The procedure
-- does not make inserts wait for long: if it gets no lock within 300 ms, it fails with 55P03, and has to be called again. The rows
-- are committed on the new shard first, and then removed here. After a crash in between, empty the bucket on the new shard first.
CREATE PROCEDURE move(parent name, bucket int, shard name) LANGUAGE plpgsql SET lock_timeout = '300ms' AS $$
DECLARE
    partition name := format('%s_%s', parent, bucket);
    moved name := partition || '_moved';
    lives_here bool := (SELECT relkind = 'r' FROM pg_class WHERE oid = partition::regclass);
BEGIN
    EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, partition);
    EXECUTE format('ALTER TABLE %I RENAME TO %I', partition, moved);
    CALL place(parent, bucket, shard);
    IF lives_here THEN
        EXECUTE format('INSERT INTO %I SELECT * FROM %I', partition, moved);
        EXECUTE format('DROP TABLE %I', moved);
    ELSE
        EXECUTE format('DROP FOREIGN TABLE %I', moved);
    END IF;
END
$$;
