/* Changing anything is for the extension's owner, who may pass it on; looking at the state is for everybody. */
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA snowflake_ids, snowflake_ids_internal FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_ids.status(), snowflake_ids_internal.segment_slots(),
    snowflake_ids_internal.timeline(), snowflake_ids_internal.registry_health(integer) TO PUBLIC;
GRANT USAGE ON SCHEMA snowflake_ids_internal TO PUBLIC;
COMMENT ON SCHEMA snowflake_ids IS 'administration of ids';
COMMENT ON SCHEMA snowflake_ids_internal IS 'what the functions in schema snowflake_ids are made of; not to be called';
