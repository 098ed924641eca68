-- What servers before 15 do otherwise. There no sequence is unlogged; here such a one gives no ids of ours.
CREATE UNLOGGED SEQUENCE unlogged;
SELECT snowflake_ids.bind_sequence('unlogged');
DROP SEQUENCE unlogged;
-- A setting that is misspelt is refused.
SET snowflake_ids.wroker_id = 1;
