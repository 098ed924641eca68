-- The statements that a session repeats. psql prints the line once the row is committed and the session knows that.

INSERT INTO rows DEFAULT VALUES RETURNING id, number, key, current_setting('port');
SELECT pg_sleep(0.02) \g /dev/null
