-- Ids as a browser gets them, one line for each table: as numbers in JSON, and as text, which shows their true values.

SELECT json_build_object('table', 'orders', 'ids', json_agg(id), 'texts', json_agg(id::text))
FROM (SELECT id FROM orders ORDER BY id DESC LIMIT 10000) AS o;

SELECT json_build_object('table', 'posts', 'ids', json_agg(id), 'texts', json_agg(id::text))
FROM (SELECT id FROM posts ORDER BY id DESC LIMIT 10000) AS p;
