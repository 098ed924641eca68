-- Settings refuse what they can't be, each with its reason.
SHOW snowflake_ids.layout;
SHOW snowflake_ids.worker_id;
SET snowflake_ids.layout = 'twitter';
SET snowflake_ids.worker_id = 5;
ALTER SYSTEM SET snowflake_ids.layout = '41/5/5/99';
ALTER SYSTEM SET snowflake_ids.layout = '41/5/5/12 unit=1h';
ALTER SYSTEM SET snowflake_ids.layout = '';
ALTER SYSTEM SET snowflake_ids.worker_id = 'seven';
ALTER SYSTEM SET snowflake_ids.worker_id = '-1';
ALTER SYSTEM SET snowflake_ids.worker_id = '';
ALTER SYSTEM SET snowflake_ids.worker_id_policy = 'lottery';
SET snowflake_ids.reserve = '1s';
ALTER SYSTEM SET snowflake_ids.datacenter_id = -2;
SET snowflake_ids.max_drift = '1 year';
SET snowflake_ids.clock_rollback = 'panic';
SET snowflake_ids.sequence_start = 'one';
SET snowflake_ids.cache = 0;
SET snowflake_ids.cache = 1000001;

-- The server refuses what is out of range, in words that differ from version to version.
\set VERBOSITY sqlstate
ALTER SYSTEM SET snowflake_ids.reserve = '99ms';
ALTER SYSTEM SET snowflake_ids.lease_duration = '59s';
ALTER SYSTEM SET snowflake_ids.max_clock_jump = '999ms';
ALTER SYSTEM SET snowflake_ids.max_clock_skew = '-1s';
SET snowflake_ids.max_drift = -1;
SET snowflake_ids.clock_wait_timeout = '-1s';
\set VERBOSITY verbose

-- What they may be.
SET snowflake_ids.max_drift = '2min';
SHOW snowflake_ids.max_drift;
SET snowflake_ids.clock_rollback = 'error';
SET snowflake_ids.clock_rollback = 'switch';
SET snowflake_ids.clock_wait_timeout = 0;
SET snowflake_ids.sequence_start = 'rotate';
SET snowflake_ids.cache = 1000000;
SELECT snowflake_nextval() > 0 AS generates;
