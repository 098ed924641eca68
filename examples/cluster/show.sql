-- What happened, and what held.

SELECT at, what, figures, CASE WHEN ok THEN 'ok' ELSE 'FAILED' END AS result
FROM report
ORDER BY n;
