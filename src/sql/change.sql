/* Changes a layout. All ids of the new layout must be above the present ids. A named generator changes at once. The server's
   own layout changes at the next start. */
CREATE FUNCTION snowflake_ids.layout_change(new text, generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    PERFORM pg_catalog.snowflake_extension_keep();
    IF generator IS NULL THEN
        PERFORM snowflake_ids_internal.layout_change_own(new);
        RETURN;
    END IF;
    -- Nobody else changes the row between the look at it and the change.
    PERFORM FROM snowflake_ids.generator AS g WHERE g.name = generator COLLATE "C" FOR NO KEY UPDATE;
    PERFORM snowflake_ids_internal.generator_unknown(generator) WHERE NOT FOUND;
    PERFORM snowflake_ids_internal.layout_change_check(new, generator);
    UPDATE snowflake_ids.generator AS g SET layout = new WHERE g.name = generator COLLATE "C";
END
$$;
COMMENT ON FUNCTION snowflake_ids.layout_change IS
    'changes the layout of a named generator, or of the server at its next start, if all ids of the new layout are above the present ids';
