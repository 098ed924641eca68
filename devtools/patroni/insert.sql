-- What a session does over and over. psql prints the line once the row is committed, and known as such to the session.

INSERT INTO rows DEFAULT VALUES RETURNING id, number, key, current_setting('port');
SELECT pg_sleep(0.02) \g /dev/null
