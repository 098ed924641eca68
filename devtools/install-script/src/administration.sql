
/* Roles that administer a part of the extension get the part's new objects. The function beside a part's name is one that all
   its administrators may call. */
DO $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT o.privileges, split_part(o.object, ' ', 1) AS kind, n.name, a.grantee::regrole AS role
        FROM (VALUES ('tags', 'snowflake_ids.segment_create'), ('generators', 'snowflake_ids.generator_create'),
                ('series', 'snowflake_ids.series_create'), ('registry', 'snowflake_ids.use_registry'),
                ('state', 'snowflake_ids.state_reset')) AS part (name, called)
            CROSS JOIN snowflake_ids_internal.administration_objects(part.name) AS o
            CROSS JOIN regexp_split_to_table(substr(o.object, strpos(o.object, ' ') + 1), ',\s*') AS n (name)
            JOIN pg_proc AS p ON p.oid = part.called::regproc
            CROSS JOIN aclexplode(p.proacl) AS a
        WHERE a.grantee NOT IN (0, p.proowner) AND n.name = ANY (ARRAY[@NEW@]::text[])
    LOOP
        EXECUTE format('GRANT %s ON %s %s TO %s', given.privileges, given.kind, given.name, given.role);
    END LOOP;
END
$$;
