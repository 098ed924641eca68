/* From the made-up former version to the made-up next one. */
ALTER TABLE snowflake_ids.trial ADD COLUMN note text NOT NULL DEFAULT 'none';

DROP FUNCTION snowflake_ids.trial_dropped(), snowflake_ids.trial_symbol();
DROP FUNCTION snowflake_ids.trial_renamed(integer);
DROP FUNCTION snowflake_ids.trial_default(integer);
DROP VIEW snowflake_ids.trial_retyped;

-- code

UPDATE snowflake_ids.trial SET note = snowflake_ids.trial_body(number);
