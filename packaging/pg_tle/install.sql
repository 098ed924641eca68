-- snowflake_ids in plain SQL, version @VERSION@, as the extension snowflake_ids_plain of pg_tle. A member of pgtle_admin runs
-- this file in each database that has pg_tle:
--     psql -v ON_ERROR_STOP=1 -f FILE
--     psql -c 'CREATE EXTENSION snowflake_ids_plain'          -- or ALTER EXTENSION snowflake_ids_plain UPDATE
-- The file adds this version to earlier versions of the extension, with an upgrade from each of them.
DO $install$
DECLARE
    extension CONSTANT text := 'snowflake_ids_plain';
    new CONSTANT text := '@VERSION@';
    script CONSTANT text := $snowflake_ids$
@SCRIPT@
$snowflake_ids$;
    functions CONSTANT text := $snowflake_ids$
@FUNCTIONS@
$snowflake_ids$;
    earlier text[];
    old text;
BEGIN
    SELECT array_agg(v.version) INTO earlier FROM pgtle.available_extension_versions() AS v WHERE v.name = extension;
    IF new = ANY (earlier) THEN
        RAISE NOTICE '% % is there already', extension, new;
        RETURN;
    END IF;
    IF earlier IS NULL THEN
        PERFORM pgtle.install_extension(extension, new, 'distributed 64-bit ids in plain SQL', script);
        RETURN;
    END IF;
    PERFORM pgtle.install_extension_version_sql(extension, new, script);
    FOREACH old IN ARRAY earlier LOOP
        PERFORM pgtle.install_update_path(extension, old, new, functions);
    END LOOP;
    PERFORM pgtle.set_default_version(extension, new);
END
$install$;
