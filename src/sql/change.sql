/* Gives a named generator another layout: at once, where all ids of the new one are above those of the old one. */
CREATE FUNCTION snowflake_ids.layout_change(new text, generator text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
BEGIN
    -- Nobody else changes the row between the look at it and the change.
    PERFORM FROM snowflake_ids.generator AS g WHERE g.name = generator COLLATE "C" FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM snowflake_ids_internal.generator_unknown(generator);
    END IF;
    PERFORM snowflake_ids_internal.layout_change_check(new, generator);
    UPDATE snowflake_ids.generator AS g SET layout = new WHERE g.name = generator COLLATE "C";
END
$$;
COMMENT ON FUNCTION snowflake_ids.layout_change IS
    'gives a named generator another layout, if all ids of the new one are above those of the old one';
