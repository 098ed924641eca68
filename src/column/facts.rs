//! Reads facts of columns and sequences from the catalogs: each fact once, for all columns of a schema. The facts travel as
//! JSON. The caller sets the `search_path` to `pg_catalog`, so that names are printed with their schemas.

use crate::pg::report::{report, spi};
use crate::pg::statement::Statement;
use crate::pg::text::TextOut;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::SpiError;
use serde::de::DeserializeOwned;
use snowflake_ids_core::column::bound::Unbinding;
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::facts::{Column, Facts, Reference, Sequence, TagLimit, UserTable};
use snowflake_ids_core::column::new_column::NewColumn;
use snowflake_ids_core::column::notice::Notice;
use snowflake_ids_core::column::tag::KnownTag;
use std::collections::{BTreeMap, BTreeSet};

/// The functions of this extension that are column defaults.
macro_rules! own_functions {
    () => {
        "SELECT own.oid FROM pg_proc AS own WHERE own.pronamespace = 'pg_catalog'::regnamespace
            AND own.proname IN ('snowflake_nextval', 'snowflake_id', 'segment_nextval', 'segment_id')"
    };
}

/// The base type `b.base`, in the words of the core.
macro_rules! base {
    () => {
        "CASE b.base WHEN 'bigint'::regtype THEN 'bigint' WHEN 'integer'::regtype THEN 'integer'
            WHEN 'smallint'::regtype THEN 'smallint' WHEN 'uuid'::regtype THEN 'uuid' ELSE 'other' END AS base"
    };
}

/// The base type of a type, as `b.base`.
macro_rules! of_type {
    ($of:literal) => {
        concat!(
            " CROSS JOIN LATERAL (SELECT snowflake_ids_internal.base_type(",
            $of,
            ") AS base OFFSET 0) AS b"
        )
    };
}

/// The tag that is named after a relation `c`, and whether the tag exists and the relation's owner may not move it. The tag is null
/// where the condition is false.
macro_rules! tag {
    ($is_asked:literal) => {
        concat!(
            "(SELECT t.tag, t.tag IS NOT NULL AND EXISTS (SELECT FROM snowflake_ids.segment AS g WHERE g.tag = t.tag COLLATE \"C\"
                    AND NOT snowflake_ids_internal.may_move_tag(c.relowner, t.tag)) AS is_tag_denied
                FROM (SELECT CASE WHEN ", $is_asked, " THEN snowflake_ids_internal.default_tag(c.oid) END AS tag OFFSET 0) AS t)"
        )
    };
}

/// The same where no tag is asked for, so that nothing is looked up.
macro_rules! no_tag {
    () => {
        "(SELECT NULL::text AS tag, false AS is_tag_denied)"
    };
}

/// A table `c`. The arguments tell whether the table is planned, and its tag.
macro_rules! table {
    ($is_planned:literal, $tag:expr) => {
        concat!(
            "SELECT row_to_json(t) FROM (SELECT c.oid::bigint AS oid, c.oid::regclass::text AS name, c.relkind AS kind,
                c.relpersistence AS persistence, pg_has_role(c.relowner, 'USAGE') AS is_owned, d.is_distributed,
                CASE WHEN d.is_distributed THEN snowflake_ids_internal.node_group() ELSE 0 END AS node_group,
                (SELECT e.extname FROM pg_depend AS m JOIN pg_extension AS e ON e.oid = m.refobjid
                    WHERE m.classid = 'pg_class'::regclass AND m.objid = c.oid AND m.deptype = 'e' LIMIT 1) AS extension,
                ", $is_planned, " AS is_planned, n.tag, n.is_tag_denied
            FROM (SELECT snowflake_ids_internal.is_distributed(c.oid) AS is_distributed OFFSET 0) AS d, ", $tag, " AS n) AS t"
        )
    };
}

/// The sequence that a default `f` names, and whether another session may drop an object that the default names. Printing such
/// a default would fail.
macro_rules! of_default {
    () => {
        concat!("(SELECT max(d.refobjid) FILTER (WHERE s.relkind = 'S') AS sequence, bool_and((s.relkind = 'S') IS TRUE OR d.refobjid = f.adrelid
                OR d.refclassid = 'pg_type'::regclass OR d.refclassid = 'pg_proc'::regclass AND d.refobjid IN (", own_functions!(), ")) AS is_printable
            FROM pg_depend AS d LEFT JOIN pg_class AS s ON d.refclassid = 'pg_class'::regclass AND s.oid = d.refobjid
            WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid)")
    };
}

/// The columns of the rows `wanted`. The arguments tell whether a table is planned, its tag, and whether the tables are locked, so
/// that each default can be printed.
macro_rules! columns {
    ($wanted:expr, $is_planned:literal, $tag:expr, $is_locked:literal) => {
        concat!(
            $wanted,
            "SELECT row_to_json(r)::text FROM (
             SELECT (", table!($is_planned, $tag), ") AS \"table\", a.attnum AS number, a.attname::text AS attribute,
                quote_ident(a.attname) AS ident, a.atttypid::regtype::text AS type_name, ", base!(), ",
                a.attgenerated <> '' AS is_generated, a.attnotnull AS is_not_null, nullif(a.attidentity, '') AS identity, a.atthasdef AS has_default,
                -- Only expressions of generated columns name other columns. Printing column names would wait for a lock.
                CASE WHEN ", $is_locked, " OR a.attgenerated = '' AND e.is_printable
                    THEN pg_get_expr(f.adbin, CASE WHEN a.attgenerated = '' THEN 0 ELSE f.adrelid END) END AS expression,
                e.sequence::bigint AS sequence, coalesce(NOT pg_has_role(c.relowner, s.relowner, 'USAGE'), false) AS is_sequence_lent,
                o.identity::bigint AS identity_sequence, coalesce(o.owned, '{}') AS owned,
                -- A table may have thousands of constraints, so those of the column are found by their dependency on it.
                (SELECT k.confrelid::regclass::text FROM (SELECT d.classid, d.objid FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass
                        AND d.refobjid = c.oid AND d.refobjsubid = a.attnum OFFSET 0) AS d
                    CROSS JOIN LATERAL (SELECT k.* FROM pg_constraint AS k WHERE k.oid = d.objid OFFSET 0) AS k
                    WHERE d.classid = 'pg_constraint'::regclass AND k.contype = 'f' AND k.conrelid = c.oid AND k.conkey = ARRAY[a.attnum]
                    LIMIT 1) AS \"references\",
                w.is_source OR w.is_key AND b.base = ANY (ARRAY['bigint', 'integer', 'smallint', 'uuid']::regtype[]) AS is_candidate
             FROM wanted AS w JOIN pg_class AS c ON c.oid = w.relation
                JOIN pg_attribute AS a ON a.attrelid = w.relation AND a.attnum = w.number", of_type!("w.type"), "
                LEFT JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
                LEFT JOIN LATERAL ", of_default!(), " AS e ON true
                LEFT JOIN pg_class AS s ON s.oid = e.sequence
                LEFT JOIN LATERAL (SELECT array_agg(d.objid::bigint ORDER BY d.objid) AS owned,
                        max(d.objid) FILTER (WHERE d.deptype = 'i') AS identity
                    FROM (SELECT d.classid, d.objid, d.deptype FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass
                            AND d.refobjid = c.oid AND d.refobjsubid = a.attnum OFFSET 0) AS d
                        JOIN pg_class AS q ON q.oid = d.objid AND q.relkind = 'S'
                    WHERE d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')) AS o ON true
             ORDER BY c.relnamespace::regnamespace::text COLLATE \"C\", c.relname, a.attnum) AS r"
        )
    };
}

/// The columns of a schema's tables, and of the tables above and below them, that have a default of this extension or a
/// sequence, or are the only column of a primary key; also the columns of the same names in all these tables.
static OF_SCHEMA: Statement = Statement::of_many(columns!(
    concat!("WITH RECURSIVE schemas (oid) AS MATERIALIZED (
        SELECT n.oid FROM pg_namespace AS n WHERE snowflake_ids_internal.is_adopted_schema(n.oid, $1)
    ), tables (oid) AS (
        SELECT c.oid FROM pg_class AS c WHERE c.relkind IN ('r', 'p', 'f') AND c.relnamespace IN (SELECT n.oid FROM schemas AS n)
        UNION SELECT r.oid FROM tables AS t CROSS JOIN LATERAL (
            SELECT i.inhparent FROM pg_inherits AS i WHERE i.inhrelid = t.oid
            UNION ALL SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = t.oid) AS r (oid)
    ), found (relation, number, is_source) AS MATERIALIZED (
        SELECT f.adrelid, f.adnum, true FROM pg_attrdef AS f
            JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
            LEFT JOIN pg_class AS s ON d.refclassid = 'pg_class'::regclass AND s.oid = d.refobjid AND s.relkind = 'S'
        WHERE s.oid IS NOT NULL OR d.refclassid = 'pg_proc'::regclass AND d.refobjid IN (", own_functions!(), ")
        UNION SELECT d.refobjid, d.refobjsubid::smallint, true FROM pg_depend AS d
            JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND d.refobjsubid > 0
        UNION SELECT a.attrelid, a.attnum, true FROM pg_attribute AS a WHERE a.attidentity <> '' AND NOT a.attisdropped
        UNION SELECT i.indrelid, i.indkey[0], false FROM pg_index AS i WHERE i.indisprimary AND i.indnkeyatts = 1
    ), known (relation, number, attribute, is_source) AS MATERIALIZED (
        SELECT f.relation, f.number, a.attname, bool_or(f.is_source)
        FROM found AS f JOIN tables AS t ON t.oid = f.relation
            JOIN pg_attribute AS a ON a.attrelid = f.relation AND a.attnum = f.number AND NOT a.attisdropped
        GROUP BY f.relation, f.number, a.attname
    ), wanted (relation, number, type, is_source, is_key) AS (
        SELECT a.attrelid, a.attnum, a.atttypid, coalesce(k.is_source, false), NOT coalesce(k.is_source, true)
        FROM tables AS t JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN known AS k ON k.relation = a.attrelid AND k.number = a.attnum
        WHERE a.attname IN (SELECT n.attribute FROM known AS n)
    )"),
    "c.relnamespace IN (SELECT n.oid FROM schemas AS n)",
    tag!("$2"),
    "false"
));

/// One column, and the columns of the same name in the tables below.
static OF_COLUMN: Statement = Statement::of_few(columns!(
    "WITH RECURSIVE tables (oid) AS (
        SELECT $1 UNION SELECT i.inhrelid FROM tables AS t JOIN pg_inherits AS i ON i.inhparent = t.oid
    ), wanted (relation, number, type, is_source, is_key) AS (
        SELECT a.attrelid, a.attnum, a.atttypid, true, false
        FROM tables AS t JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attname = $2 COLLATE \"C\" AND a.attnum > 0
    )",
    "true",
    no_tag!(),
    "true"
));

/// A table and the tables below, the nearest first.
static TABLES: Statement = Statement::of_few(concat!(
    "SELECT (",
    table!("true", no_tag!()),
    ")::text FROM snowflake_ids_internal.table_and_below($1) WITH ORDINALITY AS m (relation, place)
        JOIN pg_class AS c ON c.oid = m.relation ORDER BY m.place"
));

/// The parents of tables.
static INHERITS: Statement = Statement::of_few(
    "SELECT i.inhrelid::bigint, i.inhparent::bigint FROM pg_inherits AS i WHERE i.inhrelid = ANY ($1)",
);

/// Columns that refer to tables. `pg_constraint` has no index on the referenced table, but `pg_depend` has one.
static REFERENCES: Statement = Statement::of_few(concat!(
    "SELECT row_to_json(r)::text FROM (
     SELECT k.confrelid::bigint AS \"to\", p.other AS to_number, k.conrelid::bigint AS relation, k.conrelid::regclass::text AS \"table\",
        a.attname::text AS attribute, quote_ident(a.attname) AS ident, a.attnum AS number, a.atttypid::regtype::text AS type_name, ",
    base!(),
    " FROM (SELECT DISTINCT d.classid, d.objid FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass
            AND d.refobjid = ANY ($1) OFFSET 0) AS d
        JOIN pg_constraint AS k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid AND k.contype = 'f' AND k.conparentid = 0 AND k.confrelid = ANY ($1)
        CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS p (own, other)
        JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = p.own",
    of_type!("a.atttypid"),
    ") AS r"
));

/// Sequences with their users: columns that name the sequence in their default, or own it.
macro_rules! sequences {
    ($is_planned:literal, $tag:expr) => {
        concat!(
            "SELECT row_to_json(r)::text FROM (
             SELECT c.oid::bigint AS oid, c.oid::regclass::text AS name, pg_get_userbyid(c.relowner)::text AS owner,
                pg_has_role(c.relowner, 'USAGE') AS is_owned, c.relpersistence AS persistence, q.seqtypid::regtype::text AS type_name, ",
            base!(),
            ", q.seqstart AS start, q.seqincrement AS increment, q.seqmax AS max, q.seqcycle AS cycles,
                CASE WHEN m.checked OR snowflake_ids_internal.sequence_stands_at_end(m.sequence)
                    THEN json_build_object('tag', m.tag, 'generator', m.generator) END AS bound,
                CASE WHEN m.identity IN ('a', 'd') THEN m.identity END AS identity,
                n.tag, n.is_tag_denied,
                (SELECT coalesce(json_agg(u ORDER BY u.base = 'smallint' DESC, u.base = 'integer' DESC, u.\"table\" COLLATE \"C\", u.number), '[]') FROM (
                    SELECT t.oid::bigint AS relation, t.oid::regclass::text AS \"table\", a.attname::text AS attribute,
                        quote_ident(a.attname) AS ident, a.attnum AS number, b.base::text AS type_name, ",
            base!(),
            ", f.oid IS NOT NULL AS has_default, CASE WHEN e.is_printable THEN pg_get_expr(f.adbin, 0) END AS expression,
                        ", $is_planned, " AS is_planned
                    FROM (SELECT l.relation, l.number, max(l.of_default) AS of_default FROM (
                            SELECT f.adrelid, f.adnum, f.oid FROM (SELECT d.classid, d.objid FROM pg_depend AS d
                                -- OFFSET 0 keeps the planner from reading all rows of a class if there are no statistics.
                                WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid OFFSET 0) AS d
                                JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
                            UNION ALL SELECT d.refobjid, d.refobjsubid::smallint, NULL::oid FROM pg_depend AS d
                            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass
                                AND d.deptype IN ('a', 'i') AND d.refobjsubid > 0) AS l (relation, number, of_default)
                        GROUP BY l.relation, l.number) AS l
                        JOIN pg_class AS t ON t.oid = l.relation
                        JOIN pg_attribute AS a ON a.attrelid = l.relation AND a.attnum = l.number", of_type!("a.atttypid"), "
                        LEFT JOIN pg_attrdef AS f ON f.oid = l.of_default
                        LEFT JOIN LATERAL ", of_default!(), " AS e ON true
                    -- Any role may name a sequence in a default by its oid.
                    WHERE has_sequence_privilege(t.relowner, c.oid, 'USAGE') AND NOT pg_is_other_temp_schema(t.relnamespace)) AS u) AS users
             FROM pg_sequence AS q JOIN pg_class AS c ON c.oid = q.seqrelid
                LEFT JOIN snowflake_ids.sequence_binding AS m ON m.sequence = c.oid", of_type!("q.seqtypid"), "
                CROSS JOIN LATERAL ", $tag, " AS n
             WHERE q.seqrelid = ANY ($1)) AS r"
        )
    };
}

static SEQUENCES: Statement = Statement::of_few(sequences!("true", no_tag!()));
static PLANNED_SEQUENCES: Statement = Statement::of_many(sequences!(
    "snowflake_ids_internal.is_adopted_schema(t.relnamespace, $2)",
    tag!("$3")
));

/// The views, functions and other objects that use a sequence according to the catalog, and functions that contain the
/// sequence's name as a literal.
static NAMED_BY: Statement = Statement::of_many(
    "WITH named AS (
        SELECT DISTINCT p.oid, btrim(substr(part, strpos(part, '.') + 1), '\"') AS name
        FROM (SELECT f.oid, left(f.prosrc, 20000) AS body FROM pg_proc AS f
                WHERE left(f.prosrc, 20000) ~ '(nextval|currval|setval)' AND f.pronamespace NOT IN ('pg_catalog'::regnamespace,
                    'snowflake_ids'::regnamespace, 'snowflake_ids_internal'::regnamespace) ORDER BY f.oid LIMIT 1000) AS p,
            string_to_table(p.body, '''') AS part
        WHERE length(part) < 1000
    ), uses AS (
        SELECT s.oid AS sequence, format('function %s', n.oid::regprocedure) AS name
        FROM named AS n JOIN pg_class AS s ON s.relkind = 'S' AND s.relname = n.name
        UNION SELECT s.oid, format('trigger %I on table %s', t.tgname, t.tgrelid::regclass)
        FROM named AS n JOIN pg_class AS s ON s.relkind = 'S' AND s.relname = n.name JOIN pg_trigger AS t ON t.tgfoid = n.oid
        UNION SELECT s.oid, CASE d.classid WHEN 'pg_rewrite'::regclass THEN (SELECT format('view %s', r.ev_class::regclass)
            FROM pg_rewrite AS r WHERE r.oid = d.objid) ELSE pg_describe_object(d.classid, d.objid, d.objsubid) END
        FROM pg_class AS s JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid
        WHERE s.relkind = 'S' AND d.classid NOT IN ('pg_attrdef'::regclass, 'pg_class'::regclass)
    )
    SELECT json_build_array(u.sequence::bigint, left(string_agg(u.name, ', ' ORDER BY u.name COLLATE \"C\"), 500))::text
    FROM uses AS u GROUP BY u.sequence",
);

/// The tag that is named after a relation, the relation's name, and whether its owner may not move the tag.
static UNNAMED_TAG: Statement = Statement::of_few(concat!(
    "SELECT n.tag, c.oid::regclass::text, n.is_tag_denied FROM pg_class AS c CROSS JOIN LATERAL ",
    tag!("true"),
    " AS n WHERE c.oid = $1"
));

static COUNT_TAGS: Statement = Statement::new("SELECT count(*) FROM snowflake_ids.segment");

/// Uses of a column that INSERT meets, or that calculate with the column in a narrower type.
static USES: Statement = Statement::of_few(
    "WITH members (relation, number, type, is_filled) AS MATERIALIZED (
        SELECT a.attrelid, a.attnum, a.atttypid, a.atthasdef OR a.attidentity <> ''
        FROM unnest($1::oid[]) AS m JOIN pg_attribute AS a ON a.attrelid = m AND a.attname = $2 COLLATE \"C\"
    ), uses (place, relation, name, what) AS (
        SELECT 1, k.conrelid, k.conname, json_build_object('use', 'check', 'name',
            format('constraint \"%s\" of relation \"%s\"', k.conname, k.conrelid::regclass), 'definition', left(pg_get_constraintdef(k.oid), 1000))
        FROM members AS m JOIN pg_constraint AS k ON k.conrelid = m.relation AND k.contype = 'c' AND k.conkey = ARRAY[m.number]
            AND k.coninhcount = 0
        UNION ALL SELECT 2, 0, k.conname, json_build_object('use', 'check', 'name',
            format('constraint \"%s\" of domain %s', k.conname, k.contypid::regtype), 'definition', left(pg_get_constraintdef(k.oid), 1000))
        FROM members AS m JOIN pg_constraint AS k ON k.contypid = m.type AND k.contype = 'c' WHERE m.relation = $1[1]
        UNION ALL SELECT 3, f.adrelid, a.attname, json_build_object('use', 'calculated', 'name',
            format('generated column \"%s\" of relation \"%s\"', a.attname, f.adrelid::regclass), 'definition', left(e.written, 1000))
        FROM members AS m JOIN pg_attrdef AS f ON f.adrelid = m.relation
            JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum AND a.attgenerated <> '' AND a.attinhcount = 0,
            LATERAL (SELECT pg_get_expr(f.adbin, f.adrelid) AS written OFFSET 0) AS e
        WHERE EXISTS (SELECT FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = m.relation AND d.refobjsubid = m.number
                AND (d.classid, d.objid) IN (('pg_attrdef'::regclass, f.oid), ('pg_class'::regclass, f.adrelid)))
            AND (a.atttypid IN ('integer'::regtype, 'smallint'::regtype) OR a.atttypmod >= 0 OR e.written ~ '::(integer|smallint|character|numeric\\()')
        UNION ALL SELECT 4, i.indrelid, x.relname, json_build_object('use', 'calculated', 'name',
            format('index \"%s\" of relation \"%s\"', x.relname, i.indrelid::regclass), 'definition', left(pg_get_indexdef(x.oid), 1000))
        FROM members AS m JOIN pg_index AS i ON i.indrelid = m.relation AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
            JOIN pg_class AS x ON x.oid = i.indexrelid AND NOT x.relispartition
        WHERE EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = x.oid
                AND d.refclassid = 'pg_class'::regclass AND d.refobjid = m.relation AND d.refobjsubid = m.number)
            AND concat(pg_get_expr(i.indexprs, i.indrelid), pg_get_expr(i.indpred, i.indrelid)) ~ '::(integer|smallint|character|numeric\\()'
        -- Row triggers that run before an INSERT.
        UNION ALL SELECT 5, t.tgrelid, t.tgname, json_build_object('use', 'trigger', 'attribute', $2, 'table', t.tgrelid::regclass,
            'trigger', t.tgname, 'sequence', s.sequence, 'kind', $3)
        FROM members AS m JOIN pg_trigger AS t ON t.tgrelid = m.relation AND NOT t.tgisinternal AND t.tgtype::integer & 7 = 7
            JOIN snowflake_ids_internal.sequences_of($1[1], $2) AS s ON s.owner = t.tgrelid
        WHERE NOT m.is_filled
        UNION ALL SELECT 6, p.partrelid, NULL, json_build_object('use', 'partitions', 'table', p.partrelid::regclass)
        FROM members AS m JOIN pg_partitioned_table AS p ON p.partrelid = m.relation AND p.partstrat = 'r' AND p.partattrs[0] = m.number
            AND p.partdefid = 0
        WHERE m.relation = $1[1] AND NOT EXISTS (SELECT FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
            WHERE i.inhparent = m.relation AND pg_get_expr(c.relpartbound, 0) LIKE '%TO (MAXVALUE%')
    )
    SELECT u.what::text FROM uses AS u ORDER BY u.place, u.relation, u.name",
);

/// The tables that have no identity, of a table and those below. Inheritance children have identities of their own; partitions
/// share their parent's since Postgres 17.
static WITHOUT_IDENTITY: Statement = Statement::of_few(
    "SELECT json_build_object('use', 'withoutdefault', 'table', ($1::oid[])[1]::regclass, 'attribute', $2, 'without',
            string_agg(a.attrelid::regclass::text, ', ' ORDER BY a.attrelid::regclass::text))::text
     FROM pg_attribute AS a WHERE a.attrelid = ANY ($1) AND a.attname = $2 COLLATE \"C\" AND a.attidentity = '' HAVING count(*) > 0",
);

/// The limit and the highest id of a tag, whether a table's owner may move the tag, and the highest number that all columns
/// with this tag hold.
static LIMIT_OF_TAG: Statement = Statement::of_few(
    "SELECT json_build_object('max_value', s.max_value, 'max_id', s.max_id, 'may_be_moved',
            snowflake_ids_internal.may_move_tag(c.relowner, $2), 'most', (SELECT coalesce(min(
                snowflake_ids_internal.column_maximum(t.relation, t.attribute)), 9223372036854775807)
            FROM snowflake_ids_internal.columns_of_tag($2) AS t))::text
     FROM snowflake_ids.segment AS s, pg_class AS c WHERE s.tag = $2 COLLATE \"C\" AND c.oid = $1",
);

/// A tag, for the column that owns a sequence. Its users are looked up only if the tag may have been left.
static KNOWN_TAG: Statement = Statement::of_few(
    "SELECT json_build_object('max_value', s.max_value, 'max_id', s.max_id, 'reset', s.reset, 'increment', s.increment, 'is_made', s.is_made,
            'is_new', s.update_time >= transaction_timestamp(),
            'is_used', CASE WHEN s.is_made AND $2 IS NOT NULL THEN snowflake_ids_internal.has_workers()
                OR snowflake_ids_internal.sequence_tag_is_shared($2, s.tag) ELSE true END,
            'most', coalesce(CASE WHEN s.max_value IN (32767, 2147483647) THEN (SELECT min(
                snowflake_ids_internal.column_maximum(t.relation, t.attribute)) FROM snowflake_ids_internal.columns_of_tag($1) AS t) END,
                9223372036854775807))::text
     FROM snowflake_ids.segment AS s WHERE s.tag = $1 COLLATE \"C\"",
);

/// A bound sequence, and its properties before it was bound. The type of its column stands in for a type that is not known.
static BOUND_SEQUENCE: Statement = Statement::of_few(concat!(
    "SELECT row_to_json(r)::text FROM (
     SELECT s.seqrelid::regclass::text AS name, s.seqstart AS start, s.seqincrement AS increment, s.seqmax AS max,
        g.last_number, g.single AS is_single, b.base::text AS type_name, ",
    base!(),
    ", coalesce(g.cycles, false) AS cycles, coalesce(g.unlogged, false) AS is_unlogged
     FROM snowflake_ids.sequence_binding AS g JOIN pg_sequence AS s ON s.seqrelid = g.sequence
        CROSS JOIN LATERAL (SELECT coalesce(g.type, (SELECT snowflake_ids_internal.base_type(a.atttypid)
            FROM pg_depend AS d JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
            WHERE d.classid = 'pg_class'::regclass AND d.objid = s.seqrelid AND d.refclassid = 'pg_class'::regclass
                AND d.deptype IN ('a', 'i') LIMIT 1), 'bigint'::regtype) AS base) AS b
     WHERE g.sequence = $1 AND (g.checked OR snowflake_ids_internal.sequence_stands_at_end(g.sequence))) AS r"
));

/// Whether a column of a distributed table owns a sequence, or names it in its default.
static IS_OF_DISTRIBUTED: Statement = Statement::of_few(
    "SELECT CASE WHEN to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN EXISTS (
        SELECT FROM pg_depend AS d LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
        WHERE d.classid = 'pg_class'::regclass AND d.objid = $1 AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
                AND snowflake_ids_internal.is_distributed(d.refobjid::regclass)
            OR d.refclassid = 'pg_class'::regclass AND d.refobjid = $1 AND snowflake_ids_internal.is_distributed(f.adrelid::regclass)) END",
);

/// The new columns of a table, or one of them, that have a sequence of their own. Extensions also create tables at run time, in
/// schemas of their own. Columns share the table's tag, which ends with the narrowest type.
static NEW_COLUMNS: Statement = Statement::of_few(concat!(
    "SELECT row_to_json(r)::text FROM (
     SELECT c.oid::regclass::text AS \"table\", a.attname::text AS attribute, a.attnum AS number, b.base::text AS type_name, ",
    base!(),
    ", s.oid::bigint AS sequence
     FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
            AND d.refobjid = c.oid AND d.refobjsubid = a.attnum
        JOIN pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'",
    of_type!("a.atttypid"),
    " WHERE c.oid = $1 AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND $2 IN (0, a.attnum)
        AND NOT EXISTS (SELECT FROM pg_depend AS e
            WHERE e.classid = 'pg_namespace'::regclass AND e.objid = c.relnamespace AND e.deptype = 'e')
     ORDER BY a.attlen, a.attnum) AS r"
));

/// Reads the facts of a schema, or of all schemas, and the names by which sequences are used.
pub fn of_schema(schema: Option<Oid>, kind: IdKind) -> Result<Facts, ErrorReport> {
    let is_segment = kind == IdKind::Segment;
    let columns: Vec<Column> = rows(&OF_SCHEMA, &[schema.into(), is_segment.into()])?;
    let asked = [oids(named_sequences(&columns)), schema.into(), is_segment.into()];
    let mut sequences: Vec<Sequence> = rows(&PLANNED_SEQUENCES, &asked)?;
    let mut named: BTreeMap<u32, String> = rows(&NAMED_BY, &[])?.into_iter().collect();
    for sequence in &mut sequences {
        sequence.named_by = named.remove(&sequence.oid);
    }
    let users = sequences.iter().flat_map(|sequence| &sequence.users).map(|user| user.relation);
    let tables: BTreeSet<_> = columns.iter().map(|column| column.table.oid).chain(users).collect();
    // Columns that must be widened together may be in other schemas.
    let mut references: Vec<Reference> = Vec::new();
    let (mut known, mut next) = (BTreeSet::new(), tables);
    while !next.is_empty() {
        let found: Vec<Reference> = rows(&REFERENCES, &[oids(next.iter().copied())])?;
        known.append(&mut next);
        next =
            found.iter().map(|reference| reference.relation).filter(|table| !known.contains(table)).collect();
        references.extend(found);
    }
    gather(columns, sequences, references)
}

/// Returns the tag that is named after a relation, the relation's name, and whether the tag exists and the relation's owner may
/// not move it; None if there is no such relation.
pub fn unnamed_tag(of: Oid) -> Result<Option<(TextOut, TextOut, bool)>, ErrorReport> {
    let found = UNNAMED_TAG.first(&[of.into()], |row| {
        Ok((row.get::<TextOut>(1)?, row.get::<TextOut>(2)?, row.get::<bool>(3)? == Some(true)))
    });
    let Some((tag, relation, is_denied)) = found.map_err(spi)? else { return Ok(None) };
    Ok(tag.zip(relation).map(|(tag, relation)| (tag, relation, is_denied)))
}

/// Returns the number of tags.
pub fn count_tags() -> Result<i64, ErrorReport> {
    Ok(COUNT_TAGS.value::<i64>(&[]).map_err(spi)?.unwrap_or_default())
}

/// Reads the facts of a column whose table and tables below are locked.
pub fn of_column(relation: Oid, attribute: &TextOut) -> Result<Facts, ErrorReport> {
    of_column_beside(relation, attribute, &[])
}

/// Does the same without reading sequences that are known.
fn of_column_beside(relation: Oid, attribute: &TextOut, known: &[Sequence]) -> Result<Facts, ErrorReport> {
    let columns: Vec<Column> = rows(&OF_COLUMN, &[relation.into(), attribute.clone().into()])?;
    let is_known = |oid: &u32| known.iter().any(|sequence| sequence.oid == *oid);
    let mut sequences = of_sequences(named_sequences(&columns).filter(|oid| !is_known(oid)))?;
    sequences.extend_from_slice(known);
    let tables = columns.iter().map(|column| column.table.oid);
    let references = rows(&REFERENCES, &[oids(tables)])?;
    gather(columns, sequences, references)
}

/// Runs `work` with the facts of a column whose table and tables below are locked.
pub fn with_column<T>(
    relation: Oid,
    attribute: &TextOut,
    work: impl FnOnce(&Facts, &Column) -> Result<T, ErrorReport>,
) -> Result<T, ErrorReport> {
    with_column_beside(relation, attribute, &[], work)
}

/// Does the same without reading sequences that are known.
pub fn with_column_beside<T>(
    relation: Oid,
    attribute: &TextOut,
    known: &[Sequence],
    work: impl FnOnce(&Facts, &Column) -> Result<T, ErrorReport>,
) -> Result<T, ErrorReport> {
    let facts = of_column_beside(relation, attribute, known)?;
    if let Some(column) = facts.columns().iter().find(|column| column.table.oid == relation.to_u32()) {
        return work(&facts, column);
    }
    let table = of_tables(relation)?.into_iter().next();
    let table = table.ok_or_else(|| report(ColumnError::NoRelation(relation.to_u32())))?.name;
    Err(report(ColumnError::NoColumn { attribute: attribute.to_utf8_lossy(), table }))
}

/// Reads the facts of sequences.
pub fn of_sequences(sequences: impl Iterator<Item = u32>) -> Result<Vec<Sequence>, ErrorReport> {
    let mut sequences = sequences.peekable();
    if sequences.peek().is_none() { Ok(Vec::new()) } else { rows(&SEQUENCES, &[oids(sequences)]) }
}

/// Reads the facts of a sequence.
pub fn of_sequence(of: Oid) -> Result<Sequence, ErrorReport> {
    if let Some(sequence) = of_sequences([of.to_u32()].into_iter())?.pop() {
        return Ok(sequence);
    }
    let relation = of_tables(of)?.pop().ok_or_else(|| report(ColumnError::NoRelation(of.to_u32())))?;
    Err(report(ColumnError::NotASequence(relation.name)))
}

/// Reads a bound sequence, and its properties before it was bound; None if it is not bound.
pub fn bound_sequence(of: Oid) -> Result<Option<Unbinding>, ErrorReport> {
    Ok(rows(&BOUND_SEQUENCE, &[of.into()])?.pop())
}

/// Returns whether a distributed table uses a sequence.
pub fn is_of_distributed(of: Oid) -> Result<bool, ErrorReport> {
    let found = IS_OF_DISTRIBUTED.first(&[of.into()], |row| row.get::<bool>(1)).map_err(spi)?;
    Ok(found.flatten() == Some(true))
}

/// Reads the new columns of a table that have a sequence of their own: the column `number`, or all columns if `number` is 0.
pub fn of_new_columns(relation: Oid, number: i32) -> Result<Vec<NewColumn>, ErrorReport> {
    rows(&NEW_COLUMNS, &[relation.into(), number.into()])
}

/// Reads the facts of a table and the tables below, the nearest first.
pub fn of_tables(relation: Oid) -> Result<Vec<UserTable>, ErrorReport> {
    rows(&TABLES, &[relation.into()])
}

/// Reads a tag for the column that owns this sequence, if any; None if this database has no such tag.
pub fn known_tag(tag: &TextOut, sequence: Option<Oid>) -> Result<Option<KnownTag>, ErrorReport> {
    Ok(rows(&KNOWN_TAG, &[tag.clone().into(), sequence.into()])?.pop())
}

/// Returns the name of a sequence with its schema; empty if it is gone.
pub fn name_of(sequence: Oid) -> Result<String, ErrorReport> {
    Ok(of_sequences([sequence.to_u32()].into_iter())?.pop().map(|found| found.name).unwrap_or_default())
}

/// Reads the limit of a tag for a table; None if this database has no such tag.
pub fn limit_of_tag(relation: Oid, tag: &TextOut) -> Result<Option<TagLimit>, ErrorReport> {
    Ok(rows(&LIMIT_OF_TAG, &[relation.into(), tag.clone().into()])?.pop())
}

/// Reads the uses of a column, whose members are locked.
pub fn uses(members: &[&Column], attribute: &TextOut, kind: IdKind) -> Result<Vec<Notice>, ErrorReport> {
    let tables = oids(members.iter().map(|member| member.table.oid));
    rows(&USES, &[tables, attribute.clone().into(), kind.name().into()])
}

/// Returns a notice if some of a column's tables have no identity.
pub fn without_identity(members: &[&Column], attribute: &TextOut) -> Result<Vec<Notice>, ErrorReport> {
    let tables = oids(members.iter().map(|member| member.table.oid));
    rows(&WITHOUT_IDENTITY, &[tables, attribute.clone().into()])
}

fn gather(
    columns: Vec<Column>,
    sequences: Vec<Sequence>,
    references: Vec<Reference>,
) -> Result<Facts, ErrorReport> {
    let tables = oids(columns.iter().map(|column| column.table.oid));
    let inherits = INHERITS.all(&[tables], |row| {
        let oid = |place| Ok::<_, SpiError>(row.get::<i64>(place)?.and_then(|oid| u32::try_from(oid).ok()));
        Ok((oid(1)?.unwrap_or_default(), oid(2)?.unwrap_or_default()))
    });
    Ok(Facts::new(columns, &inherits.map_err(spi)?, sequences, references))
}

fn named_sequences(columns: &[Column]) -> impl Iterator<Item = u32> {
    let named = columns.iter().flat_map(|column| column.sequence.iter().chain(&column.owned));
    named.copied().collect::<BTreeSet<_>>().into_iter()
}

pub(super) fn oids<'a>(oids: impl Iterator<Item = u32>) -> DatumWithOid<'a> {
    oids.map(Oid::from).collect::<Vec<_>>().into()
}

/// Runs a statement whose rows are JSON.
pub fn rows<T: DeserializeOwned>(
    statement: &Statement,
    arguments: &[DatumWithOid<'_>],
) -> Result<Vec<T>, ErrorReport> {
    statement.json(arguments)
}
