-- The table that the sessions fill. Nothing in it is unique, so that an id that comes twice is stored twice and counted. The key
-- tells two rows with one id from one row that is seen twice, as acknowledged and as stored.

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake_ids;
CREATE TABLE rows (
    id bigint NOT NULL DEFAULT snowflake_nextval(),
    number bigint NOT NULL DEFAULT segment_nextval('rows'),
    key uuid NOT NULL DEFAULT gen_random_uuid()
);
