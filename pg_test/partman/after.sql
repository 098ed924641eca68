-- Checks the results of the SQL of docs/time.md.
INSERT INTO visits (note) VALUES ('now');
INSERT INTO visits SELECT snowflake_compose(now() + i * interval '1 day', 0, 1, 1), 'later' FROM generate_series(1, 6) AS i;
INSERT INTO sessions (note) VALUES ('now');
INSERT INTO orders (note) VALUES ('now');

DO $$
BEGIN
    ASSERT (SELECT count(*) = 0 FROM visits_default), 'a row went to the default partition';
    ASSERT (SELECT count(DISTINCT tableoid) = 7 FROM visits), 'a day has a partition';
    ASSERT (SELECT bool_and(begins <= at AND at < begins + interval '1 day') FROM (
        SELECT snowflake_timestamp(id) AS at, snowflake_timestamp(substring(tableoid::regclass::text FROM '\d+$')::bigint) AS begins
        FROM visits) AS v), 'partitions begin at midnight';
    ASSERT (SELECT count(*) = 101 AND min(note) = 'before' FROM orders), 'all rows have moved in';
    ASSERT (SELECT count(*) = 0 FROM orders_default), 'a row that moved in went to the default partition';
    ASSERT to_regclass('orders_before') IS NULL;
    ASSERT (SELECT tableoid::regclass::text = format('sessions_p%s', to_char(now(), 'YYYYMMDD')) FROM sessions), 'partitions are named after days';
END
$$;

-- Days that end 30 days before the highest id are dropped.
SELECT partman.create_partition_id('public.visits', array[snowflake_min_id(date_trunc('day', now() + interval '40 days'))]) \g /dev/null
INSERT INTO visits SELECT snowflake_compose(now() + interval '40 days', 0, 1, 1), 'much later';
CALL partman.run_maintenance_proc();
DO $$
BEGIN
    ASSERT (SELECT count(*) = 0 FROM visits WHERE note = 'now'), 'what is older than 30 days is gone';
    ASSERT (SELECT count(*) > 0 FROM visits), 'what is younger is there';
END
$$;
