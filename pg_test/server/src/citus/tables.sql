/* Distributed tables: a table of the same name on each node, with the rows that were inserted on that node. The node that runs an
   INSERT evaluates the defaults. Citus keeps the rows in shards on other nodes, and each node shows all rows. With this stand-in,
   the tests collect the rows from the nodes. */

CREATE FUNCTION pg_catalog.column_to_column_name(table_name regclass, column_var_text text) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.attname::text FROM pg_attribute AS a
    WHERE a.attrelid = table_name AND a.attnum = substring(column_var_text FROM ':varattno (\d+)')::smallint
$$;

CREATE FUNCTION citus_stand_in.columns_of(relation regclass)
RETURNS TABLE (name name, type text, required boolean, value text, identity "char")
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity
    FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
$$;

CREATE FUNCTION citus_stand_in.note(relation regclass) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM citus_stand_in.columns AS c WHERE c.of_table = note.relation;
    INSERT INTO citus_stand_in.columns SELECT note.relation, c.name, c.value, c.identity FROM citus_stand_in.columns_of(note.relation) AS c
$$;

/* The numbers of a sequence on a worker: those of its group. */
CREATE FUNCTION citus_stand_in.range(type text, group_id integer) RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE type WHEN 'bigint' THEN format('MINVALUE %s MAXVALUE %s START WITH %1$s',
        (group_id::bigint << 48) + 1, (group_id::bigint + 1) << 48) ELSE '' END
$$;

/* What makes a worker have a table. */
CREATE FUNCTION citus_stand_in.table_commands(relation regclass, group_id integer) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    qualified text := (SELECT format('%I.%I', c.relnamespace::regnamespace::name, c.relname) FROM pg_class AS c WHERE c.oid = relation);
    commands text[];
BEGIN
    commands := ARRAY(SELECT format('CREATE SEQUENCE IF NOT EXISTS %s %s', s.name, citus_stand_in.range('bigint', group_id))
        FROM citus_stand_in.columns_of(relation) AS c,
            LATERAL (SELECT substring(c.value FROM '^nextval\(''(.*)''::regclass\)$') AS name) AS s WHERE s.name IS NOT NULL);
    commands := commands || (SELECT format('CREATE TABLE IF NOT EXISTS %s (%s)', qualified,
        string_agg(format('%I %s%s%s', c.name, c.type, CASE WHEN c.required THEN ' NOT NULL' END,
            CASE WHEN c.identity <> '' THEN format(' GENERATED %s AS IDENTITY (%s)',
                CASE c.identity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, citus_stand_in.range(c.type, group_id))
            ELSE ' DEFAULT ' || c.value END), ', ')) FROM citus_stand_in.columns_of(relation) AS c);
    commands := commands || ARRAY(SELECT format('ALTER SEQUENCE IF EXISTS %s OWNED BY %s.%I', s.name, qualified, c.name)
        FROM citus_stand_in.columns_of(relation) AS c,
            LATERAL (SELECT pg_get_serial_sequence(relation::text, c.name::text) AS name) AS s
        WHERE s.name IS NOT NULL AND c.identity = '');
    commands := commands || ARRAY(SELECT format('ALTER TABLE %s ADD %s', qualified, pg_get_constraintdef(k.oid))
        FROM pg_constraint AS k WHERE k.conrelid = relation AND k.contype IN ('p', 'u', 'c'));
    RETURN array_to_string(commands || (SELECT format(
        'INSERT INTO pg_catalog.pg_dist_partition VALUES (%L, %L, %L, %s, %L); SELECT citus_stand_in.note(%1$L)',
        qualified, p.partmethod, p.partkey, p.colocationid, p.repmodel) FROM pg_dist_partition AS p WHERE p.logicalrelid = relation), E';\n');
END
$$;

CREATE FUNCTION citus_stand_in.distribute(relation regclass, method "char", distribution_column text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM citus_stand_in.check_coordinator();
    INSERT INTO pg_dist_partition (logicalrelid, partmethod, partkey)
    SELECT relation, method, (SELECT format('{VAR :varno 1 :varattno %s :vartype %s :location -1}', a.attnum, a.atttypid)
        FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attname = distribution_column);
    PERFORM citus_stand_in.note(relation);
    PERFORM citus_stand_in.tell(n.name, n.port, citus_stand_in.table_commands(relation, n.group_id))
    FROM citus_stand_in.nodes() AS n WHERE n.group_id <> 0;
END
$$;

CREATE FUNCTION pg_catalog.create_distributed_table(table_name regclass, distribution_column text,
    colocate_with text DEFAULT 'default') RETURNS void
LANGUAGE sql AS $$ SELECT citus_stand_in.distribute(table_name, 'h', distribution_column) $$;

CREATE FUNCTION pg_catalog.create_reference_table(table_name regclass) RETURNS void
LANGUAGE sql AS $$ SELECT citus_stand_in.distribute(table_name, 'n', NULL) $$;

CREATE FUNCTION pg_catalog.citus_add_local_table_to_metadata(table_name regclass, cascade_via_foreign_keys boolean DEFAULT false) RETURNS void
LANGUAGE sql AS $$ SELECT citus_stand_in.distribute(table_name, 'n', NULL) $$;

/* A distributed table was altered here. Its change is refused, or reaches the workers: this far, defaults do. */
CREATE FUNCTION citus_stand_in.altered(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    change record;
BEGIN
    IF citus_stand_in.propagates() THEN
        PERFORM citus_stand_in.check_coordinator();
        FOR change IN
            SELECT n.name, n.value, n.identity <> o.identity AS of_identity,
                n.name = column_to_column_name(relation, p.partkey) AS of_key
            FROM citus_stand_in.columns_of(relation) AS n JOIN citus_stand_in.columns AS o ON o.of_table = altered.relation AND o.name = n.name
            JOIN pg_dist_partition AS p ON p.logicalrelid = altered.relation
            WHERE n.value IS DISTINCT FROM o.value OR n.identity <> o.identity
        LOOP
            IF change.of_identity THEN
                RAISE EXCEPTION 'alter table command is currently unsupported' USING ERRCODE = 'feature_not_supported';
            ELSIF change.of_key THEN
                RAISE EXCEPTION 'cannot execute ALTER TABLE command involving partition column' USING ERRCODE = 'feature_not_supported';
            END IF;
            PERFORM citus_stand_in.tell_workers(format('ALTER TABLE %s ALTER COLUMN %I %s', relation, change.name,
                coalesce('SET DEFAULT ' || change.value, 'DROP DEFAULT')));
        END LOOP;
    END IF;
    PERFORM citus_stand_in.note(relation);
END
$$;

CREATE EVENT TRIGGER citus_before_command ON ddl_command_start
    WHEN TAG IN ('CREATE EXTENSION', 'ALTER EXTENSION', 'DROP EXTENSION', 'CREATE SERVER', 'ALTER SERVER', 'DROP SERVER')
    EXECUTE FUNCTION citus_stand_in.before_command();
CREATE EVENT TRIGGER citus_after_command ON ddl_command_end
    WHEN TAG IN ('CREATE EXTENSION', 'CREATE SERVER', 'ALTER SERVER', 'ALTER TABLE')
    EXECUTE FUNCTION citus_stand_in.after_command();
CREATE EVENT TRIGGER citus_after_drop ON sql_drop
    WHEN TAG IN ('DROP EXTENSION', 'DROP SERVER', 'DROP TABLE')
    EXECUTE FUNCTION citus_stand_in.after_drop();
RESET check_function_bodies;
RESET allow_system_table_mods;
RESET citus.enable_ddl_propagation;
