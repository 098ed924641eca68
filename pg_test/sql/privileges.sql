-- Rights on single tags, and administration in parts.
CREATE ROLE alice;
CREATE ROLE bob;
CREATE ROLE team;
CREATE ROLE clerk;
CREATE ROLE carol IN ROLE team;
\set VERBOSITY verbose
SELECT snowflake_ids.segment_create(t) FROM unnest(ARRAY['open', 'invoices', 'shared']) AS t \g /dev/null

-- Open to every role until something is granted.
SET ROLE bob;
SELECT segment_nextval('open'), segment_nextval('invoices');
SELECT snowflake_ids.segment_set('open', 100);
SELECT snowflake_ids.segment_raise('open', 100);
SELECT snowflake_ids.segment_alter('open', step => 1);
SELECT snowflake_ids.segment_drop('open');
SELECT snowflake_ids.segment_grant('open', 'bob', 'ALL');
SELECT snowflake_ids.segment_create('own');
RESET ROLE;

-- USAGE takes ids; a role that got some before does not any more.
SELECT snowflake_ids.segment_grant('invoices', 'alice', 'USAGE');
SET ROLE bob;
SELECT segment_nextval('invoices');
-- From here on the same refusals without their details and hints.
\set VERBOSITY terse
SELECT segment_nextvals('invoices', 2);
SELECT segment_nextval_text('invoices');
SELECT segment_currval('invoices');
SELECT segment_nextval('open');
SELECT tag FROM snowflake_ids.segment_status ORDER BY tag;
SET ROLE alice;
SELECT segment_nextval('invoices'), segment_currval('invoices');
SELECT snowflake_ids.segment_set('invoices', 100);
SELECT tag FROM snowflake_ids.segment_status ORDER BY tag;
RESET ROLE;

-- SELECT looks, UPDATE moves and takes.
SELECT snowflake_ids.segment_grant('invoices', 'bob', 'select');
SET ROLE bob;
SELECT segment_currval('invoices');
SELECT segment_nextval('invoices');
SELECT tag FROM snowflake_ids.segment_status WHERE tag = 'invoices';
RESET ROLE;
SELECT snowflake_ids.segment_grant('invoices', 'bob', 'UPDATE');
SET ROLE bob;
SELECT snowflake_ids.segment_set('invoices', 5000);
SELECT segment_nextval('invoices');
SELECT snowflake_ids.segment_raise('invoices', 6000);
SELECT segment_nextval('invoices');
SELECT snowflake_ids.segment_alter('invoices', step => 1);
RESET ROLE;
SELECT tag, grantee, privileges FROM snowflake_ids.segment_privilege ORDER BY 1, 2;

-- Taken away again; what a plan or a session remembers does not help.
PREPARE take AS SELECT segment_nextval('invoices');
SET ROLE bob;
EXECUTE take;
RESET ROLE;
SELECT snowflake_ids.segment_revoke('invoices', 'bob', 'ALL');
SET ROLE bob;
EXECUTE take;
RESET ROLE;
SELECT snowflake_ids.segment_revoke('invoices', 'alice', 'USAGE');
SET ROLE alice;
SELECT segment_nextval('invoices');
RESET ROLE;
-- Administrators stay, and PUBLIC can be let in.
EXECUTE take;
SELECT snowflake_ids.segment_grant('invoices', 'public', 'USAGE');
SET ROLE alice;
SELECT segment_nextval('invoices') > 0 AS takes;
RESET ROLE;
DEALLOCATE take;

-- By membership, which counts as it is now.
SELECT snowflake_ids.segment_grant('shared', 'team', 'USAGE');
SET ROLE carol;
SELECT segment_nextval('shared');
RESET ROLE;
REVOKE team FROM carol;
SET ROLE carol;
SELECT segment_nextval('shared');
RESET ROLE;
GRANT team TO carol;
SET ROLE carol;
SELECT segment_nextval('shared');
RESET ROLE;
-- A function of another's rights takes with those.
CREATE FUNCTION take_shared() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ SELECT segment_nextval('shared') $$;
SET ROLE bob;
SELECT take_shared();
SELECT segment_nextval('shared');
RESET ROLE;
DROP FUNCTION take_shared;
-- Only from the commit on, and not after a rollback.
BEGIN;
SELECT snowflake_ids.segment_grant('shared', 'bob', 'USAGE');
SET LOCAL ROLE bob;
SELECT segment_nextval('shared');
ROLLBACK;
SET ROLE bob;
SELECT segment_nextval('shared');
RESET ROLE;

-- An owner does with a tag what it wants.
SELECT snowflake_ids.segment_create('of alice', owner => 'alice');
SET ROLE bob;
SELECT segment_nextval('of alice');
SET ROLE alice;
SELECT segment_nextval('of alice');
SELECT snowflake_ids.segment_alter('of alice', step => 5);
SELECT snowflake_ids.segment_grant('of alice', 'bob', 'usage, select');
SET ROLE bob;
SELECT segment_nextval('of alice');
SELECT snowflake_ids.segment_grant('of alice', 'bob', 'UPDATE');
SET ROLE alice;
SELECT snowflake_ids.segment_alter('of alice', owner => 'bob');
SELECT snowflake_ids.segment_drop('of alice');
SET ROLE bob;
SELECT snowflake_ids.segment_drop('of alice');
RESET ROLE;
-- They go with the tag.
SELECT count(*) FROM snowflake_ids.segment_privilege WHERE tag = 'of alice';
SELECT snowflake_ids.segment_create('of alice');
SET ROLE carol;
SELECT segment_nextval('of alice');
RESET ROLE;
SELECT snowflake_ids.segment_grant('of alice', 'alice', 'USAGE');
UPDATE snowflake_ids.segment SET tag = 'renamed' WHERE tag = 'of alice';
SET ROLE carol;
SELECT segment_nextval('renamed');
RESET ROLE;

SET ROLE bob;
SELECT snowflake_ids.has_segment_privilege('renamed', 'USAGE') AS usage,
    snowflake_ids.has_segment_privilege('open', 'USAGE') AS open,
    snowflake_ids.has_segment_privilege('open', 'UPDATE') AS move;
RESET ROLE;

-- What is left of a role that was dropped goes with the next grant.
CREATE ROLE shortlived;
SELECT snowflake_ids.segment_grant('renamed', 'shortlived', 'USAGE');
DROP ROLE shortlived;
SELECT snowflake_ids.segment_grant('renamed', 'bob', 'SELECT');
SELECT grantee, privileges FROM snowflake_ids.segment_privilege WHERE tag = 'renamed' ORDER BY 1;
-- A new owner of the database manages its tags, and a former one does not any more.
SELECT segment_nextval('renamed') > 0 AS takes;
ALTER DATABASE regression OWNER TO carol;
SET ROLE carol;
SELECT segment_nextval('renamed') > 0 AS takes;
RESET ROLE;
\set former :USER
ALTER DATABASE regression OWNER TO :former;
SET ROLE carol;
SELECT segment_nextval('renamed');
RESET ROLE;

\set VERBOSITY verbose
-- Wrong arguments.
SELECT snowflake_ids.segment_grant('nowhere', 'bob', 'USAGE');
SELECT snowflake_ids.segment_grant('open', 'nobody', 'USAGE');
SELECT snowflake_ids.segment_grant('open', 'bob', 'EXECUTE');
SELECT snowflake_ids.segment_grant('open', 'bob', 'OWNER');
SELECT snowflake_ids.segment_grant(NULL, 'bob', 'USAGE');
SELECT snowflake_ids.segment_grant('open', NULL, 'USAGE');
SELECT snowflake_ids.segment_grant('open', 'bob', NULL);
SELECT snowflake_ids.segment_alter('open', owner => 'public');
SELECT snowflake_ids.segment_revoke('open', 'bob', 'USAGE');
SET ROLE bob;
SELECT segment_nextval('open') > 0 AS still_open;
RESET ROLE;

-- Administration in parts.
SELECT snowflake_ids.administration_grant('tags', 'clerk');
-- Parts bring what it takes where it was taken from PUBLIC.
REVOKE USAGE ON SCHEMA snowflake_ids, snowflake_ids_internal FROM PUBLIC;
CREATE SCHEMA clerks AUTHORIZATION clerk;
CREATE TABLE clerks.others (id bigint);
SET ROLE clerk;
SELECT snowflake_ids.segment_create('of the clerk', owner => 'bob');
SELECT snowflake_ids.segment_drop('of the clerk');
SELECT segment_nextval('shared') > 0 AS takes;
CREATE TABLE clerks.mine (id bigserial PRIMARY KEY);
INSERT INTO clerks.mine SELECT FROM generate_series(1, 7);
SELECT snowflake_ids.attach('clerks.mine', 'id', 'segment');
INSERT INTO clerks.mine DEFAULT VALUES RETURNING id;
SELECT snowflake_ids.detach('clerks.mine', 'id');
SELECT snowflake_ids.attach('clerks.mine', 'id');
SELECT snowflake_ids.attach('clerks.others', 'id');
SELECT snowflake_ids.state_reset('2088-01-01');
SELECT snowflake_ids.clock_accept();
SELECT snowflake_ids.use_registry('elsewhere');
SELECT snowflake_ids.worker_release(1);
SELECT snowflake_ids.administration_grant('state', 'clerk');
SELECT count(*) FROM snowflake_ids.worker_lease;
RESET ROLE;
SELECT snowflake_ids.administration_revoke('tags', 'clerk');
GRANT USAGE ON SCHEMA snowflake_ids, snowflake_ids_internal TO PUBLIC;
SELECT snowflake_ids.administration_grant('state', 'clerk');
SET ROLE clerk;
SELECT snowflake_ids.clock_accept();
SELECT snowflake_ids.segment_create('of the clerk');
SELECT segment_nextval('shared');
RESET ROLE;
SELECT snowflake_ids.administration_revoke('state', 'clerk');
SELECT snowflake_ids.administration_grant('registry', 'clerk');
SET ROLE clerk;
SELECT snowflake_ids.use_registry('elsewhere');
SELECT snowflake_ids.worker_release(31);
SELECT snowflake_ids.clock_accept();
RESET ROLE;
SELECT snowflake_ids.administration_revoke('registry', 'clerk');
SELECT snowflake_ids.administration_grant('everything', 'clerk');
SELECT snowflake_ids.administration_grant('tags', 'public');
SELECT snowflake_ids.administration_grant(NULL, 'clerk');
-- REASSIGN OWNED leaves tags as they are. The error names the call that gives the tag to the new owner.
SELECT snowflake_ids.segment_create('left', owner => 'alice');
REASSIGN OWNED BY alice TO carol;
SET ROLE carol;
SELECT snowflake_ids.segment_alter('left', step => 1);
RESET ROLE;
SELECT snowflake_ids.segment_alter('left', owner => 'carol');
SET ROLE carol;
SELECT snowflake_ids.segment_alter('left', step => 1);
RESET ROLE;

-- Nothing is left of what roles were granted.
SELECT count(*) FROM pg_proc AS p
WHERE has_function_privilege('bob', p.oid, 'EXECUTE') AND NOT has_function_privilege('public', p.oid, 'EXECUTE');

DELETE FROM snowflake_ids.segment;
SELECT count(*) FROM snowflake_ids.segment_restricted;
DROP SCHEMA clerks CASCADE;
DROP ROLE alice, bob, carol, team, clerk;
