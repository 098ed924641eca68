-- The events, and the checks with their results.

SELECT at, what, figures, CASE WHEN ok THEN 'ok' ELSE 'FAILED' END AS result
FROM report
ORDER BY n;
