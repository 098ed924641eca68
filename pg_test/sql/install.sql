-- Labels and privileges of what users do not call. docs/reference has those of what they call, the settings and the views.
CREATE EXTENSION snowflake_ids;

SELECT p.oid::regprocedure AS function,
       CASE provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END AS volatility,
       CASE proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END AS parallel,
       proisstrict AS strict, has_function_privilege('public', p.oid, 'EXECUTE') AS for_every_role
FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_ids')
  AND (p.pronamespace = 'snowflake_ids_internal'::regnamespace OR 'internal'::regtype = ANY (p.proargtypes))
  -- Those that every role may call, or that are not labelled as most are.
  AND ((p.provolatile, p.proparallel) <> ('v', 'u') OR has_function_privilege('public', p.oid, 'EXECUTE'))
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- Every role may generate and decode, and look at the status; no role needs more than that.
CREATE ROLE ids_user;
SET ROLE ids_user;
SELECT snowflake_nextval() > 0 AS generates, snowflake_worker_id(snowflake_lastval()) AS worker;
SELECT worker_id, layout FROM snowflake_ids.status;
CREATE TABLE snowflake_ids.mine (id bigint);
SET snowflake_ids.max_drift = 0;
SET snowflake_ids.cache = 10;
RESET snowflake_ids.cache;
RESET ROLE;

-- Generation can be taken away.
REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC;
SET ROLE ids_user;
SELECT snowflake_nextval();
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_nextval() TO PUBLIC;
DROP ROLE ids_user;

-- It goes as it came, and comes again.
DROP EXTENSION snowflake_ids;
SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake_ids';
-- No user can lay a schema of that name under it beforehand.
CREATE SCHEMA snowflake_ids;
CREATE EXTENSION snowflake_ids;
DROP SCHEMA snowflake_ids;
-- Its functions are found whatever the search_path is, and no schema that a user owns holds them.
CREATE SCHEMA keys;
CREATE EXTENSION snowflake_ids SCHEMA keys;
DROP SCHEMA keys;
CREATE EXTENSION snowflake_ids;
SET search_path = '';
SELECT snowflake_nextval() > 0 AS generates, segment_nextval('unknown');
RESET search_path;
