//! Columns that a series fills: reads the facts on which the core's verdict rests, and carries the verdict out. The caller sets
//! the `search_path` to `pg_catalog`.
//!
//! Policies and indexes contain code of a table's owner, which must not run or be planned with another role's rights. So each
//! table is read by itself, as its owner.

use super::facts;
use crate::pg::report::{report, spi, tell};
use crate::pg::statement::Statement;
use crate::pg::tag_text::TagText;
use crate::pg::text::TextOut;
use crate::pg::{guc, role, transaction};
use crate::series;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::series::{FillError, FillStep, FilledTable};
use snowflake_ids_core::series::{Scope, SeriesError};
use snowflake_ids_core::tag::privilege::Access;
use snowflake_ids_core::{Explain, Kind};

/// The triggers `t` that fill a column from a series, or raise the series' counters. The column is the second of three
/// arguments, each of which ends with a zero byte.
macro_rules! triggers {
    () => {
        "FROM pg_trigger AS t WHERE t.tgrelid = $1 AND t.tgfoid = to_regprocedure('snowflake_ids_internal.series_fill()')
            AND t.tgnargs = 3 AND position(decode('00', 'hex') IN t.tgargs)
                = position(decode('00', 'hex') || convert_to($2, getdatabaseencoding()) || decode('00', 'hex') IN t.tgargs)"
    };
}

static TABLE: Statement = Statement::of_few(concat!(
    "WITH RECURSIVE below (oid) AS (
        SELECT $1 UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN below AS b ON i.inhparent = b.oid
     ), found AS (
        SELECT a.attname AS name, quote_ident(a.attname) AS ident, a.attrelid::regclass AS \"table\", format_type(a.atttypid, a.atttypmod) AS type_name,
            format_type(snowflake_ids_internal.base_type(a.atttypid), NULL) AS base, a.attname = $2 COLLATE \"C\" AS is_filled,
            a.attname = $3 COLLATE \"C\" AS is_key, a.attgenerated <> '' AS is_generated, a.attidentity <> '' AS is_identity,
            a.atthasdef AS has_default, EXISTS (SELECT FROM pg_partitioned_table AS p
                WHERE p.partrelid = a.attrelid AND a.attnum = ANY (p.partattrs)) AS is_partition_key
        FROM pg_attribute AS a WHERE a.attrelid = $1 AND a.attname IN ($2 COLLATE \"C\", $3 COLLATE \"C\") AND a.attnum > 0 AND NOT a.attisdropped
     )
     SELECT json_build_object('name', c.oid::regclass, 'kind', c.relkind, 'owner', c.relowner::bigint, 'is_owned', pg_has_role(c.relowner, 'USAGE'),
        'columns', ARRAY(SELECT row_to_json(a) FROM found AS a), 'members', ARRAY(
            SELECT json_build_array(t.oid::bigint, t.oid::regclass, t.relowner::bigint, quote_ident(pg_get_userbyid(t.relowner)))
            FROM below AS b JOIN pg_class AS t ON t.oid = b.oid WHERE t.relkind <> 'p' ORDER BY t.oid),
        'is_attached', EXISTS (SELECT ", triggers!(), "))::text FROM pg_class AS c WHERE c.oid = $1"
));

static NAME: Statement = Statement::new("SELECT $1::regclass::text");

/// Keeps other sessions from inserting rows and from renaming the table.
static LOCK: Statement =
    Statement::new("SELECT format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', $1::regclass)");

static RAISE: Statement = Statement::new(
    "SELECT format('SELECT count(snowflake_ids_internal.series_raise(%L, t.key, t.highest)) FROM (SELECT %I::%s AS key,
            max(%I)::bigint AS highest FROM ONLY %s WHERE %2$I IS NOT NULL AND %4$I IS NOT NULL GROUP BY 1) AS t',
        $4, $3, CASE $5 WHEN 'text' THEN 'text COLLATE \"C\"' ELSE $5 END, $2, $1::regclass)",
);

static HAS_NUMBERS: Statement = Statement::new(
    "SELECT snowflake_ids_internal.as_owner($1, format('SELECT 1::bigint FROM ONLY %s WHERE %I IS NOT NULL LIMIT 1', $1::regclass, $2))
        IS NOT NULL",
);

static IS_DISTRIBUTED: Statement = Statement::new("SELECT snowflake_ids_internal.is_distributed($1)");

/// Keeps other sessions from adding partitions.
static LOCK_PARTITIONS: Statement =
    Statement::new("SELECT snowflake_ids_internal.lock_relation(t.relid) FROM pg_partition_tree($1) AS t");

static IS_BY_EXPRESSION: Statement = Statement::new(
    "SELECT EXISTS (SELECT FROM pg_partition_tree($1) AS t JOIN pg_partitioned_table AS p ON p.partrelid = t.relid
        WHERE p.partexprs IS NOT NULL)",
);

/// Long names of columns may differ only at their end, so a hash replaces a long name.
static CREATE: Statement = Statement::new(
    "SELECT format('CREATE TRIGGER %I BEFORE INSERT ON %s FOR EACH ROW WHEN (NEW.%I IS %s)
            EXECUTE FUNCTION snowflake_ids_internal.series_fill(%L, %3$L, %6$L)',
        $5 || CASE WHEN octet_length($5 || $2) < 64 THEN $2 ELSE md5($2) END, $1::regclass, $2, $6, $4, $3)",
);

static DROP: Statement =
    Statement::new(concat!("SELECT format('DROP TRIGGER %I ON %s', t.tgname, $1::regclass) ", triggers!()));

/// Makes a series fill a column, with the numbers of the key in another column.
pub fn attach(relation: Oid, column: &TextOut, series: &[u8], key: &TextOut) -> Result<(), ErrorReport> {
    if !transaction::sees_new_commits() {
        let level = guc::shown(c"transaction_isolation").unwrap_or_default();
        return Err(report(FillError::Isolation(level)));
    }
    let arguments = |of: Oid| [of.into(), column.clone().into(), key.clone().into()];
    let read = || Ok::<_, ErrorReport>(facts::rows::<FilledTable>(&TABLE, &arguments(relation))?.pop());
    let before = read()?.ok_or_else(|| report(ColumnError::NoRelation(relation.to_u32())))?;
    before.check().map_err(report)?;
    LOCK.execute(&[relation.into()]).map_err(spi)?;
    let changed = || report(FillError::Changed(before.name.clone()));
    let table = read()?.filter(|now| (&now.name, now.owner) == (&before.name, before.owner));
    let table = table.ok_or_else(changed)?;

    let cached = series::look_up(series)?;
    for role in [table.owner.into(), role::current()] {
        cached.check(Access::Take, role).map_err(report)?;
    }
    if cached.series.scope == Scope::Shard {
        return Err(report(SeriesError::Distributed { series: cached.shown() }));
    }
    // The lock keeps other sessions from dropping or renaming the series before the trigger is committed.
    cached.keep()?;
    let (shown, names) = (cached.shown(), [column, key].map(TextOut::to_utf8_lossy));
    let (names, role) = (names.each_ref().map(String::as_str), role::current().to_u32());
    let steps = table.judge(names, (&cached.series, &shown), role).map_err(report)?;

    let (name, key_type) = (TagText(series::checked(series).map_err(report)?), cached.series.key_type.name());
    let create = |prefix: &'static str, is: &'static str| {
        let [table, column, key] = arguments(relation);
        CREATE.execute(&[table, column, key, name.into(), prefix.into(), is.into()]).map(drop).map_err(spi)
    };
    let holds = |fact: &Statement| fact.value::<bool>(&[relation.into()]).map_err(spi);
    for step in steps {
        match step {
            FillStep::RaiseAbove(member) => {
                let [table, column, key] = arguments(member.into());
                RAISE.execute(&[table, column, key, name.into(), key_type.into()]).map_err(spi)?;
            }
            FillStep::Look(members) => {
                for (member, said) in members {
                    let [table, column, _] = arguments(member.into());
                    match HAS_NUMBERS.value::<bool>(&[table, column]).map_err(spi)? {
                        Some(true) if said.kind() != Kind::Notice => return Err(report(said)),
                        Some(true) => {
                            tell(said);
                            break;
                        }
                        _ => {}
                    }
                }
            }
            // Only the extension's owner may create triggers with series_fill, because series_fill takes numbers with the rights
            // of the table's owner. A role with TRIGGER on the table would gain those rights.
            FillStep::Fill { follows } => cached.table.as_owner(|| {
                if holds(&IS_DISTRIBUTED)? == Some(true) {
                    let (table, series) = (table.name.clone(), shown.clone());
                    return Err(report(FillError::Distributed { table, series }));
                }
                // Creating a trigger evaluates the expressions of partition keys with the rights of this function.
                LOCK_PARTITIONS.run(&[relation.into()]).map_err(spi)?;
                if holds(&IS_BY_EXPRESSION)? == Some(true) {
                    return Err(report(FillError::PartitionedByExpression(table.name.clone())));
                }
                create("snowflake_ids_fill_", "NULL")?;
                // Triggers run in the order of their names. This trigger must run last, because other triggers may change the
                // row's key or skip the row. Then the counter of the original key must not move.
                if follows { create("~snowflake_ids_raise_", "NOT NULL") } else { Ok(()) }
            })?,
        }
    }
    // Another table may have the table's name by now.
    if read()?.is_some_and(|table| table.is_attached) { Ok(()) } else { Err(changed()) }
}

/// Removes the triggers that fill a column.
pub fn detach(relation: Option<Oid>, column: Option<TextOut>) -> Result<(), ErrorReport> {
    let arguments = [relation.into(), column.clone().into()];
    if !DROP.execute(&arguments).map_err(spi)? {
        let table = NAME.value::<TextOut>(&arguments[..1]).map_err(spi)?;
        let [column, table] =
            [column, table].map(|name| name.map_or_else(String::new, |name| name.to_utf8_lossy()));
        return Err(report(FillError::NotAttached { column, table }));
    }
    while DROP.execute(&arguments).map_err(spi)? {}
    Ok(())
}
