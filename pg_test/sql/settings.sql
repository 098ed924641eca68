-- Settings refuse what they can't be, each with its reason.
SHOW snowflake_ids.layout;
SHOW snowflake_ids.worker_id;
SET snowflake_ids.layout = 'twitter';
\echo :LAST_ERROR_SQLSTATE
SET snowflake_ids.worker_id = 5;
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_ids.layout = '41/5/5/99';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_ids.layout = '41/5/5';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_ids.layout = '41/5/5/12 unit=1h';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_ids.layout = '41/5/5/12 epoch=soon';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_ids.layout = '';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_ids.worker_id = 'seven';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_ids.worker_id = '-1';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_ids.worker_id = '';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_ids.worker_id_policy = 'lottery';
\echo :LAST_ERROR_SQLSTATE
SET snowflake_ids.reserve = '1s';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake_ids.datacenter_id = -2;
\echo :LAST_ERROR_SQLSTATE
SET snowflake_ids.max_drift = '1 year';
\echo :LAST_ERROR_SQLSTATE
SET snowflake_ids.clock_rollback = 'panic';
\echo :LAST_ERROR_SQLSTATE
SET snowflake_ids.sequence_start = 'one';
\echo :LAST_ERROR_SQLSTATE
SET snowflake_ids.cache = 0;
\echo :LAST_ERROR_SQLSTATE
SET snowflake_ids.cache = 1000001;
\echo :LAST_ERROR_SQLSTATE

-- The server refuses what is out of range, in words that differ from version to version.
\set VERBOSITY sqlstate
ALTER SYSTEM SET snowflake_ids.reserve = '99ms';
ALTER SYSTEM SET snowflake_ids.lease_duration = '59s';
ALTER SYSTEM SET snowflake_ids.max_clock_jump = '999ms';
ALTER SYSTEM SET snowflake_ids.max_clock_skew = '-1s';
SET snowflake_ids.max_drift = -1;
SET snowflake_ids.clock_wait_timeout = '-1s';
\set VERBOSITY default
SELECT name, unit, min_val, max_val FROM pg_settings
WHERE name LIKE 'snowflake\_ids.%' AND vartype = 'integer' ORDER BY name COLLATE "C";

-- What they may be.
SET snowflake_ids.max_drift = '2min';
SHOW snowflake_ids.max_drift;
SET snowflake_ids.clock_rollback = 'error';
SET snowflake_ids.clock_rollback = 'switch';
SET snowflake_ids.clock_wait_timeout = 0;
SET snowflake_ids.sequence_start = 'rotate';
SET snowflake_ids.cache = 1000000;
SELECT snowflake_nextval() > 0 AS generates;
