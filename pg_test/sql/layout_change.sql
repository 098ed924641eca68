-- From one layout to another: when, and by whom.
SELECT snowflake_ids.generator_create('web', '41/5/5/12 epoch=2020-01-01', modulus => 1024, remainder => 7);
CREATE TABLE ids (at serial, id bigint);
INSERT INTO ids (id) SELECT snowflake_nextval('web') FROM generate_series(1, 100);

-- Ids of an earlier epoch are above all others at once, and old ones stay below them for years.
SELECT old_layout, new_layout, ready, above_from BETWEEN now() AND clock_timestamp() + interval '1 minute' AS now,
       old_until > now() + interval '4 years' AS old_until, years BETWEEN 50 AND 60 AS years, ends
FROM snowflake_ids.layout_check('41/5/5/12 epoch=2015-01-01', 'web');

-- The server's own.
SELECT old_layout, new_layout, ready, old_until FROM snowflake_ids.layout_check('41/5/5/12');
SELECT old_layout, new_layout, ready, above_from FROM snowflake_ids.layout_check('41/5/5/12 epoch=2025-01-01');
SELECT new_layout, ready FROM snowflake_ids.layout_check('discord');

-- Changed in a transaction, which it serves, and by which it is rolled back.
BEGIN;
SELECT snowflake_ids.layout_change('41/5/5/12 epoch=2015-01-01', 'web');
SELECT layout FROM snowflake_ids.generator WHERE name = 'web';
INSERT INTO ids (id) SELECT snowflake_nextval('web') FROM generate_series(1, 100);
SELECT bool_and(grows) AS grow FROM (SELECT id > lag(id, 1, 0::bigint) OVER (ORDER BY at) AS grows FROM ids) s;
SELECT snowflake_timestamp(id, 'web') > now() - interval '1 minute' AS now FROM ids ORDER BY at DESC LIMIT 1;
SELECT snowflake_timestamp(id, '41/5/5/12 epoch=2020-01-01') > now() - interval '1 minute' AS now FROM ids ORDER BY at LIMIT 1;
ROLLBACK;
SELECT layout FROM snowflake_ids.generator WHERE name = 'web';

-- Back again is refused: what was given lies above.
SELECT snowflake_ids.layout_change('discord', 'web');
INSERT INTO ids (id) SELECT snowflake_nextval('web');
SELECT ready, above_from, old_until FROM snowflake_ids.layout_check('41/5/5/12 epoch=2020-01-01', 'web');
SELECT snowflake_ids.layout_change('41/5/5/12 epoch=2020-01-01', 'web');
-- One bit more below the ticks overtakes some day.
SELECT ready, above_from BETWEEN '2032-12-01' AND '2033-02-01' AS later, old_until >= above_from AS then_too, years > 30 AS years
FROM snowflake_ids.layout_check('40/5/5/13 epoch=2024-01-01', 'web');
DO $$ BEGIN
    PERFORM snowflake_ids.layout_change('40/5/5/13 epoch=2024-01-01', 'web');
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    RAISE NOTICE '%', SQLERRM;
END $$;

-- What cannot be.
SELECT snowflake_ids.layout_change('javascript', 'web');
SELECT snowflake_ids.layout_change('41/5/7/10 epoch=2010-01-01', 'nobody');
SELECT * FROM snowflake_ids.layout_check('41/5/5/12', 'nobody');
SELECT * FROM snowflake_ids.layout_check('41/41/41/41');
-- The shard has no room in fewer bits of sequence, however high the ids are.
SELECT snowflake_ids.layout_change('41/5/8/9 epoch=2010-01-01', 'web');
SELECT * FROM snowflake_ids.layout_check(repeat('4', 100000));

-- Everyone may look, few may change.
CREATE ROLE passer_by;
SET ROLE passer_by;
SELECT ready FROM snowflake_ids.layout_check('41/5/5/12 epoch=2010-01-01', 'web');
SELECT snowflake_ids.layout_change('41/5/5/12 epoch=2010-01-01', 'web');
RESET ROLE;
SELECT snowflake_ids.administration_grant('generators', 'passer_by');
SET ROLE passer_by;
SELECT snowflake_ids.layout_change('41/5/5/12 epoch=2010-01-01', 'web');
RESET ROLE;
SELECT snowflake_ids.administration_revoke('generators', 'passer_by');
SELECT layout FROM snowflake_ids.generator WHERE name = 'web';

DROP ROLE passer_by;
DROP TABLE ids;
DELETE FROM snowflake_ids.generator;
