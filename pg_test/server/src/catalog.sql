/* All that the catalog says of the extension's objects: a row for each thing that is said of one. Nothing in it is an OID, or
   says where in a table a column lies, so that two databases can be compared. */
WITH extension AS (
    SELECT * FROM pg_extension WHERE extname = 'snowflake_ids'
), member AS (
    SELECT d.classid, d.objid FROM extension AS e JOIN pg_depend AS d
        ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
), relation AS (
    SELECT c.* FROM pg_class AS c JOIN member AS m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid
), type AS (
    SELECT t.* FROM pg_type AS t JOIN member AS m ON m.classid = 'pg_type'::regclass AND m.objid = t.oid
), part AS (
    SELECT classid, objid FROM member
    UNION SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index AS i JOIN relation AS r ON r.oid = i.indrelid
    UNION SELECT 'pg_trigger'::regclass, t.oid FROM pg_trigger AS t JOIN relation AS r ON r.oid = t.tgrelid WHERE NOT tgisinternal
    UNION SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint AS c JOIN relation AS r ON r.oid = c.conrelid
    UNION SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint AS c JOIN type AS t ON t.oid = c.contypid
    UNION SELECT 'pg_rewrite'::regclass, w.oid FROM pg_rewrite AS w JOIN relation AS r ON r.oid = w.ev_class
    UNION SELECT 'pg_policy'::regclass, p.oid FROM pg_policy AS p JOIN relation AS r ON r.oid = p.polrelid
    UNION SELECT 'pg_statistic_ext'::regclass, s.oid FROM pg_statistic_ext AS s JOIN relation AS r ON r.oid = s.stxrelid
), named AS (
    SELECT p.*, i.type || ' ' || i.identity AS name FROM part AS p, pg_identify_object(p.classid, p.objid, 0) AS i
), told AS (
    SELECT 'extension snowflake_ids' AS name, 'version' AS what, extversion AS told FROM extension
    UNION ALL SELECT 'extension snowflake_ids', 'schema', extnamespace::regnamespace::text FROM extension
    UNION ALL SELECT 'extension snowflake_ids', 'relocatable', extrelocatable::text FROM extension
    UNION ALL SELECT 'extension snowflake_ids', 'owner', extowner::regrole::text FROM extension
    UNION ALL SELECT 'extension snowflake_ids', 'comment', obj_description(oid, 'pg_extension') FROM extension
    UNION ALL SELECT 'extension snowflake_ids', 'requires', pg_describe_object(d.refclassid, d.refobjid, 0)
    FROM extension AS e JOIN pg_depend AS d ON d.classid = 'pg_extension'::regclass AND d.objid = e.oid
    UNION ALL SELECT 'extension snowflake_ids', 'dumps the rows of ' || dumped.relation::regclass, dumped.condition
    FROM extension, unnest(extconfig, extcondition) AS dumped (relation, condition)

    UNION ALL SELECT name, 'member', 'of the extension' FROM named NATURAL JOIN member
    UNION ALL SELECT n.name, 'comment', d.description FROM named AS n JOIN pg_description AS d
        ON d.classoid = n.classid AND d.objoid = n.objid AND d.objsubid = 0
    UNION ALL SELECT n.name, 'comment on column ' || a.attname, d.description FROM named AS n JOIN pg_description AS d
        ON d.classoid = n.classid AND d.objoid = n.objid AND d.objsubid <> 0
        JOIN pg_attribute AS a ON a.attrelid = n.objid AND a.attnum = d.objsubid
    UNION ALL SELECT n.name, 'initial privileges, type ' || i.privtype::text,
           i.objsubid || ' ' || (SELECT string_agg(acl::text, ' ' ORDER BY acl::text COLLATE "C") FROM unnest(i.initprivs) AS acl)
    FROM named AS n JOIN pg_init_privs AS i ON i.classoid = n.classid AND i.objoid = n.objid
    UNION ALL SELECT n.name, 'security label of ' || s.provider, s.label FROM named AS n JOIN pg_seclabel AS s
        ON s.classoid = n.classid AND s.objoid = n.objid

    UNION ALL SELECT n.name, 'definition', pg_get_functiondef(p.oid) FROM named AS n JOIN pg_proc AS p ON n.objid = p.oid
    WHERE n.classid = 'pg_proc'::regclass
    UNION ALL SELECT n.name, 'owner', p.proowner::regrole::text FROM named AS n JOIN pg_proc AS p ON n.objid = p.oid
    WHERE n.classid = 'pg_proc'::regclass
    UNION ALL SELECT n.name, 'privileges', acl::text FROM named AS n JOIN pg_proc AS p ON n.objid = p.oid,
        unnest(coalesce(p.proacl, acldefault('f', p.proowner))) AS acl WHERE n.classid = 'pg_proc'::regclass

    UNION ALL SELECT n.name, 'owner', s.nspowner::regrole::text FROM named AS n JOIN pg_namespace AS s ON n.objid = s.oid
    WHERE n.classid = 'pg_namespace'::regclass
    UNION ALL SELECT n.name, 'privileges', acl::text FROM named AS n JOIN pg_namespace AS s ON n.objid = s.oid,
        unnest(coalesce(s.nspacl, acldefault('n', s.nspowner))) AS acl WHERE n.classid = 'pg_namespace'::regclass

    UNION ALL SELECT n.name, 'kind', concat_ws(' ', c.relkind, c.relpersistence, c.relreplident, c.relrowsecurity,
        c.relforcerowsecurity, c.relispartition, c.reloptions) FROM named AS n JOIN pg_class AS c ON n.objid = c.oid
    WHERE n.classid = 'pg_class'::regclass
    UNION ALL SELECT n.name, 'owner', c.relowner::regrole::text FROM named AS n JOIN pg_class AS c ON n.objid = c.oid
    WHERE n.classid = 'pg_class'::regclass
    UNION ALL SELECT n.name, 'privileges', acl::text FROM named AS n JOIN pg_class AS c ON n.objid = c.oid,
        unnest(coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner))) AS acl
    WHERE n.classid = 'pg_class'::regclass AND c.relkind <> 'i'
    UNION ALL SELECT n.name, 'column ' || row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum),
        concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'not null' END,
            'collation ' || a.attcollation::regcollation, 'default ' || pg_get_expr(d.adbin, d.adrelid), a.attidentity,
            a.attgenerated, a.attstorage, a.attacl,
            -- Late minor versions of the server keep a number of their own in this column.
            (SELECT array_agg(o) FROM unnest(a.attoptions) AS o WHERE o NOT LIKE 'pg\_attver=%'))
    FROM named AS n JOIN relation AS r ON n.objid = r.oid JOIN pg_attribute AS a ON a.attrelid = r.oid
        LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE n.classid = 'pg_class'::regclass AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL SELECT n.name, 'view', pg_get_viewdef(r.oid) FROM named AS n JOIN relation AS r ON n.objid = r.oid
    WHERE n.classid = 'pg_class'::regclass AND r.relkind IN ('v', 'm')
    UNION ALL SELECT n.name, 'index', pg_get_indexdef(i.indexrelid) || ' ' || concat_ws(' ', i.indisprimary, i.indisunique,
        i.indisclustered, i.indisreplident, i.indisvalid)
    FROM named AS n JOIN pg_index AS i ON n.objid = i.indexrelid WHERE n.classid = 'pg_class'::regclass
    UNION ALL SELECT n.name, 'sequence', concat_ws(' ', format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmax, s.seqmin,
        s.seqcache, s.seqcycle) FROM named AS n JOIN pg_sequence AS s ON n.objid = s.seqrelid WHERE n.classid = 'pg_class'::regclass

    UNION ALL SELECT n.name, 'trigger', pg_get_triggerdef(t.oid) || ' enabled ' || t.tgenabled::text
    FROM named AS n JOIN pg_trigger AS t ON n.objid = t.oid WHERE n.classid = 'pg_trigger'::regclass
    UNION ALL SELECT n.name, 'constraint', pg_get_constraintdef(c.oid) || CASE WHEN c.convalidated THEN '' ELSE ' not valid' END
    FROM named AS n JOIN pg_constraint AS c ON n.objid = c.oid WHERE n.classid = 'pg_constraint'::regclass
    UNION ALL SELECT n.name, 'rule', pg_get_ruledef(w.oid) || ' enabled ' || w.ev_enabled::text
    FROM named AS n JOIN pg_rewrite AS w ON n.objid = w.oid WHERE n.classid = 'pg_rewrite'::regclass
    UNION ALL SELECT n.name, 'policy', concat_ws(' ', p.polcmd, p.polpermissive, p.polroles::regrole[], pg_get_expr(p.polqual, p.polrelid),
        pg_get_expr(p.polwithcheck, p.polrelid)) FROM named AS n JOIN pg_policy AS p ON n.objid = p.oid
    WHERE n.classid = 'pg_policy'::regclass
    UNION ALL SELECT n.name, 'statistics', pg_get_statisticsobjdef(n.objid) FROM named AS n
    WHERE n.classid = 'pg_statistic_ext'::regclass

    UNION ALL SELECT n.name, 'type', concat_ws(' ', t.typtype, t.typlen, t.typbyval, t.typcategory, t.typispreferred, t.typdelim,
        t.typinput, t.typoutput, t.typreceive, t.typsend, t.typmodin, t.typmodout, t.typanalyze, t.typalign, t.typstorage,
        format_type(t.typbasetype, t.typtypmod), CASE WHEN t.typnotnull THEN 'not null' END, t.typdefault,
        t.typowner::regrole, (SELECT array_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum AS e WHERE e.enumtypid = t.oid))
    FROM named AS n JOIN type AS t ON n.objid = t.oid WHERE n.classid = 'pg_type'::regclass
    UNION ALL SELECT n.name, 'privileges', acl::text FROM named AS n JOIN type AS t ON n.objid = t.oid,
        unnest(coalesce(t.typacl, acldefault('T', t.typowner))) AS acl WHERE n.classid = 'pg_type'::regclass
    UNION ALL SELECT n.name, 'cast', concat_ws(' ', c.castfunc::regprocedure, c.castcontext, c.castmethod)
    FROM named AS n JOIN pg_cast AS c ON n.objid = c.oid WHERE n.classid = 'pg_cast'::regclass
    UNION ALL SELECT n.name, 'operator', concat_ws(' ', o.oprcode, o.oprrest, o.oprjoin, o.oprcom::regoperator,
        o.oprnegate::regoperator, o.oprcanmerge, o.oprcanhash, o.oprowner::regrole)
    FROM named AS n JOIN pg_operator AS o ON n.objid = o.oid WHERE n.classid = 'pg_operator'::regclass
    UNION ALL SELECT n.name, 'event trigger', concat_ws(' ', e.evtevent, e.evtfoid::regprocedure, e.evtenabled, e.evttags,
        e.evtowner::regrole) FROM named AS n JOIN pg_event_trigger AS e ON n.objid = e.oid
    WHERE n.classid = 'pg_event_trigger'::regclass
    -- Objects of a kind that this comparison does not know.
    UNION ALL SELECT n.name, 'unknown', 'this comparison does not know ' || n.classid::regclass FROM named AS n
    WHERE n.classid <> ALL ('{pg_proc,pg_namespace,pg_class,pg_trigger,pg_constraint,pg_rewrite,pg_policy,pg_statistic_ext,pg_type,pg_cast,
        pg_operator,pg_event_trigger}'::regclass[])
)
SELECT name, what, told FROM told WHERE told IS NOT NULL
