-- About a second of demand over all tags, which differs from round to round.
SELECT count(snowflake_nextval()) FROM generate_series(1, 20000 * (1 + :round % 3));
SELECT count(segment_nextval('shop ' || 1 + n % 180)) FROM generate_series(1, 4000 * :round) AS n;
SELECT pg_sleep(1);
