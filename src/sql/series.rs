//! Series. Their tables, and the functions that run with the rights of the tables' owner, are SQL, in `series.sql`. This
//! file has the functions that every role may call. These functions check the caller's rights.

use crate::pg::catalog::Source;
use crate::pg::encoding::to_utf8;
use crate::pg::error::ServerError;
use crate::pg::relation::Relation;
use crate::pg::report::{report, spi};
use crate::pg::tag_text::TagText;
use crate::pg::text::{Text, TextOut, handed_on};
use crate::pg::tuple::NoRow;
use crate::pg::{role, statement};
use crate::series::error::NoNumberError;
use crate::series::{self, CachedSeries};
use crate::sql::error::CallError;
use crate::sql::tag::{granted, listed};
use crate::store::citus;
use crate::store::tables::{REGISTRY_SERVER, SERIES};
use pgrx::Uuid;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::series::{
    Key, MAX_KEY_BYTES, MAX_NAME_BYTES as MAX_SERIES_BYTES, MAX_TIME_ZONE_BYTES, Scope, Series, SeriesError,
    SeriesRow,
};
use snowflake_ids_core::tag::definition::{MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES};
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::privilege::Action;
use std::rc::Rc;

/// Returns the name of a series, without looking up the series.
fn name<'a>(series: Option<&'a Text<'_>>) -> Result<&'a [u8], ErrorReport> {
    let series = series.ok_or_else(|| report(SeriesError::NullName))?;
    Ok(series.bytes(MAX_SERIES_BYTES, "series")?)
}

/// A value that can be a key.
trait AsKey {
    fn as_key(&self) -> Result<Key, ErrorReport>;
}

impl AsKey for i64 {
    fn as_key(&self) -> Result<Key, ErrorReport> {
        Ok(Key::Bigint(*self))
    }
}

impl AsKey for Text<'_> {
    fn as_key(&self) -> Result<Key, ErrorReport> {
        Key::text(self.bytes(MAX_KEY_BYTES, "key")?).map_err(report)
    }
}

impl AsKey for Uuid {
    fn as_key(&self) -> Result<Key, ErrorReport> {
        Ok(Key::Uuid(u128::from_be_bytes(**self)))
    }
}

/// Returns a key; fails for null. An unknown series is reported before a null key.
fn key(name: &[u8], key: Option<impl AsKey>) -> Result<Key, ErrorReport> {
    match key {
        Some(key) => key.as_key(),
        None => Err(report(SeriesError::NullKey { series: series::look_up(name)?.shown() })),
    }
}

fn next_text(series: Option<&Text<'_>>, of: Option<impl AsKey>) -> Result<TextOut, ErrorReport> {
    let name = name(series)?;
    let key = key(name, of)?;
    let (cached, taken) = series::next(c"series_nextval_text()", name, &key, role::current())?;
    cached.written(taken).map_err(|report| *report)
}

fn last(series: Option<&Text<'_>>, of: Option<impl AsKey>) -> Result<i64, ErrorReport> {
    let name = name(series)?;
    Ok(series::last(name, &key(name, of)?)?)
}

fn set(
    series: Option<&Text<'_>>,
    of: Option<impl AsKey>,
    value: Option<i64>,
    force: Option<bool>,
) -> Result<(), ErrorReport> {
    let name = name(series)?;
    let key = key(name, of)?;
    let value = value.ok_or_else(|| report(SeriesError::NullValue))?;
    Ok(series::set(name, &key, value, force.unwrap_or(false))?)
}

fn raise_above(series: Option<&Text<'_>>, of: Option<impl AsKey>, value: i64) -> Result<bool, ErrorReport> {
    let name = name(series)?;
    series::raise_above(name, &key(name, of)?, value)?;
    Ok(true)
}

/// Defines a function for each type of keys. The brackets have more attributes of `pg_extern`.
macro_rules! for_each_key_type {
    ($(#[$doc:meta])* $name:literal [$($attribute:tt)*] $bigint:ident $text:ident $uuid:ident ($($more:tt)*) ($($pass:ident),*) -> $result:tt = $body:path) => {
        $(#[$doc])*
        #[pg_extern(name = $name, volatile, parallel_unsafe, $($attribute)*)]
        fn $bigint(series: Option<Text<'_>>, key: Option<i64>, $($more)*) -> Result<$result, ErrorReport> {
            $body(series.as_ref(), key, $($pass),*)
        }

        $(#[$doc])*
        #[pg_extern(name = $name, volatile, parallel_unsafe, $($attribute)*)]
        fn $text(series: Option<Text<'_>>, key: Option<Text<'_>>, $($more)*) -> Result<$result, ErrorReport> {
            $body(series.as_ref(), key, $($pass),*)
        }

        $(#[$doc])*
        #[pg_extern(name = $name, volatile, parallel_unsafe, $($attribute)*)]
        fn $uuid(series: Option<Text<'_>>, key: Option<Uuid>, $($more)*) -> Result<$result, ErrorReport> {
            $body(series.as_ref(), key, $($pass),*)
        }
    };
}

for_each_key_type! {
    /// Returns the next number of a key, in the series' format.
    "series_nextval_text" [] series_nextval_text series_nextval_text_of_text series_nextval_text_of_uuid () () -> TextOut = next_text
}
for_each_key_type! {
    /// Returns the last number that this session got for a key.
    "series_currval" [] series_currval series_currval_of_text series_currval_of_uuid () () -> i64 = last
}

/// A series that the caller may change.
struct ChangedSeries {
    cached: Rc<CachedSeries>,
    name: Tag,
}

impl ChangedSeries {
    fn checked(series: Option<&Text<'_>>) -> Result<Self, ErrorReport> {
        let name = name(series)?;
        let cached = series::look_up(name)?;
        cached.check(Action::Own, role::current()).map_err(report)?;
        let name = series::checked(name).map_err(report)?;
        Ok(Self { cached, name })
    }

    /// Runs a statement whose first argument is the series' name.
    fn run<'a>(
        &self,
        sql: &str,
        others: impl IntoIterator<Item = DatumWithOid<'a>>,
    ) -> Result<(), ErrorReport> {
        let arguments: Vec<_> = [TagText(self.name).into()].into_iter().chain(others).collect();
        let is_distributed = self.cached.series.scope == Scope::Shard;
        let run = || {
            if is_distributed {
                statement::run("SELECT snowflake_ids_internal.series_check_coordinator()", &[])?;
            }
            statement::run(sql, &arguments)?;
            if is_distributed {
                let id = [self.cached.series.id.into()];
                statement::run("SELECT snowflake_ids_internal.series_pass_on($1)", &id)?;
            }
            Ok(())
        };
        self.cached.table.as_owner(run).map_err(spi)
    }
}

for_each_key_type! {
    /// Sets a key's counter to a value, like setval.
    "series_set" [schema = "snowflake_ids"] series_set series_set_of_text series_set_of_uuid
        (value: Option<i64>, force: default!(Option<bool>, false)) (value, force) -> () = set
}

/// Changes a series; null arguments change nothing.
#[allow(clippy::too_many_arguments, reason = "what a series has")]
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn series_alter(
    name: Option<Text<'_>>,
    max_value: default!(Option<i64>, "NULL"),
    time_zone: default!(Option<Text<'_>>, "NULL"),
    format: default!(Option<Text<'_>>, "NULL"),
    description: default!(Option<Text<'_>>, "NULL"),
    owner: default!(Option<Text<'_>>, "NULL"),
    new_name: default!(Option<Text<'_>>, "NULL"),
    step: default!(Option<i32>, "NULL"),
    max_step: default!(Option<i32>, "NULL"),
) -> Result<(), ErrorReport> {
    let others = [
        max_value.into(),
        handed_on(time_zone.as_ref(), "time_zone", MAX_NAME_BYTES)?,
        handed_on(format.as_ref(), "format", MAX_NAME_BYTES)?,
        handed_on(description.as_ref(), "description", MAX_DESCRIPTION_BYTES)?,
        handed_on(owner.as_ref(), "owner", MAX_NAME_BYTES)?,
        handed_on(new_name.as_ref(), "new_name", MAX_SERIES_BYTES)?,
        step.into(),
        max_step.into(),
    ];
    ChangedSeries::checked(name.as_ref())?
        .run("SELECT snowflake_ids_internal.series_alter($1, $2, $3, $4, $5, $6::name, $7, $8, $9)", others)
}

/// Drops a series and its keys; fails if a column uses the series.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn series_drop(name: Option<Text<'_>>) -> Result<(), ErrorReport> {
    ChangedSeries::checked(name.as_ref())?.run("SELECT snowflake_ids_internal.series_drop($1)", [])
}

#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn series_grant(
    series: Option<Text<'_>>,
    role: Option<Text<'_>>,
    privileges: Option<Text<'_>>,
) -> Result<(), ErrorReport> {
    let sql = "SELECT snowflake_ids_internal.series_grant($1, $2::name, $3)";
    ChangedSeries::checked(series.as_ref())?.run(sql, granted(role, privileges)?)
}

#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn series_revoke(
    series: Option<Text<'_>>,
    role: Option<Text<'_>>,
    privileges: Option<Text<'_>>,
) -> Result<(), ErrorReport> {
    let sql = "SELECT snowflake_ids_internal.series_revoke($1, $2::name, $3)";
    ChangedSeries::checked(series.as_ref())?.run(sql, granted(role, privileges)?)
}

/// Returns whether the current role has at least one of these privileges on a series.
#[pg_extern(schema = "snowflake_ids", stable, parallel_safe, strict)]
fn has_series_privilege(series: Text<'_>, privilege: Text<'_>) -> Result<bool, ErrorReport> {
    let wanted = listed(Some(privilege))?;
    let cached = match series::look_up(name(Some(&series))?) {
        Ok(cached) => cached,
        Err(NoNumberError::Series(SeriesError::Unknown { .. })) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let actions = [Action::Take, Action::Look, Action::Move];
    let role = role::current();
    Ok(actions.into_iter().any(|action| wanted.has(action.privilege()) && cached.allows(action, role)))
}

/// Fails if no series can have these properties.
#[allow(clippy::too_many_arguments, reason = "what a series has")]
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn series_check(
    name: Option<Text<'_>>,
    kind: Option<Text<'_>>,
    key_type: Option<Text<'_>>,
    start: Option<i64>,
    max_value: Option<i64>,
    reset: Option<Text<'_>>,
    time_zone: Option<Text<'_>>,
    format: Option<Text<'_>>,
    description: Option<Text<'_>>,
    step: Option<i32>,
    max_step: Option<i32>,
    sections: Option<i32>,
) -> Result<(), ErrorReport> {
    let name = name.ok_or(SeriesError::NullName).map_err(report)?;
    series::checked(name.bytes(MAX_SERIES_BYTES, "name")?).map_err(report)?;
    if let Some(description) = &description {
        description.check_length(MAX_DESCRIPTION_BYTES, "description")?;
    }
    let zone = time_zone.ok_or(SeriesError::Missing { column: "time_zone" }).map_err(report)?;
    zone.check_length(MAX_TIME_ZONE_BYTES, "time_zone")?;
    let kind = kind.as_ref().map(|kind| kind.read("kind")).transpose()?;
    let key_type = key_type.as_ref().map(|key_type| key_type.read("key_type")).transpose()?;
    let reset = reset.as_ref().map(|reset| reset.read("reset")).transpose()?;
    let format = format.as_ref().map(|format| format.bytes(MAX_SERIES_BYTES, "format")).transpose()?;
    let format =
        format.map(|bytes| to_utf8(bytes).ok_or(ServerError::NotUtf8 { name: "format" })).transpose()?;
    let row = SeriesRow {
        id: Some(0),
        kind: kind.as_deref().unwrap_or_default(),
        key_type: key_type.as_deref().unwrap_or_default(),
        start,
        max_value,
        reset: reset.as_deref(),
        time_zone: "",
        format: format.as_deref(),
        step,
        max_step,
        sections,
        scope: None,
    };
    Series::new(&row).map(drop).map_err(report)
}

/// Fails if a series of this kind cannot have this scope.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn series_check_scope(kind: Option<Text<'_>>, scope: Option<Text<'_>>) -> Result<(), ErrorReport> {
    let kind = kind.as_ref().map(|kind| kind.read("kind")).transpose()?;
    let scope = scope.as_ref().map(|scope| scope.read("scope")).transpose()?;
    let scope = scope.ok_or(SeriesError::Missing { column: "scope" }).map_err(report)?;
    Scope::new(&kind.unwrap_or_default(), Some(&scope)).map(drop).map_err(report)
}

/// Fails if a series of this kind cannot be created, because other servers would also give numbers of the series.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn series_refuse(
    kind: Option<Text<'_>>,
    registry: Option<Text<'_>>,
    others: Option<i64>,
) -> Result<(), ErrorReport> {
    let kind = kind.as_ref().map(|kind| kind.read("kind")).transpose()?;
    if kind.as_deref() == Some("monotonic") {
        let several = others.is_some_and(|others| others > 0);
        let refused = Err(report(SeriesError::Registries { kind: "monotonic" }));
        return if several { refused } else { Ok(()) };
    }
    let kind = "gapless";
    if let Some(registry) = registry {
        let registry = registry.read("registry")?.into_owned();
        return Err(report(SeriesError::Registry { kind, registry }));
    }
    if citus::is_worker().map_err(spi)? {
        return Err(report(SeriesError::CitusWorker { kind }));
    }
    Ok(())
}

/// Returns the properties of a series that decide whether a column can hold its numbers. Fails if the caller or the table's
/// owner may not take numbers.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn series_to_attach(
    series: Option<Text<'_>>,
    owner: Option<pg_sys::Oid>,
) -> Result<
    TableIterator<'static, (name!(key_type, &'static str), name!(max_value, i64), name!(is_dated, bool))>,
    ErrorReport,
> {
    let cached = series::look_up(name(series.as_ref())?)?;
    for role in owner.into_iter().chain([role::current()]) {
        cached.check(Action::Take, role).map_err(report)?;
    }
    if cached.series.scope == Scope::Shard {
        return Err(report(SeriesError::Distributed { series: cached.shown() }));
    }
    // The lock keeps other sessions from dropping or renaming the series before the trigger is committed.
    cached.keep()?;
    let Series { key_type, max_value, reset, .. } = &cached.series;
    Ok(TableIterator::once((key_type.name(), *max_value, reset.is_some())))
}

/// Creates the trigger that fills a column. Runs with the rights of the extension's owner. The caller must have the rights
/// of the table's owner.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn series_make_trigger(
    series: Option<Text<'_>>,
    relation: Option<pg_sys::Oid>,
    column: Option<Text<'_>>,
    key_column: Option<Text<'_>>,
) -> Result<(), ErrorReport> {
    let name = name(series.as_ref())?;
    let cached = series::look_up(name)?;
    let (oid, table) =
        relation.and_then(|oid| Some((oid, Relation::find(oid)?))).ok_or(CallError::NotOwnerOfTable)?;
    let owner = table.owner();
    if !role::has_privileges_of(owner) {
        return Err(CallError::NotOwnerOfTable.into());
    }
    for role in [role::current(), owner] {
        cached.check(Action::Take, role).map_err(report)?;
    }
    let arguments = [
        TagText(series::checked(name).map_err(report)?).into(),
        oid.into(),
        handed_on(column.as_ref(), "column", MAX_COLUMN_BYTES)?,
        handed_on(key_column.as_ref(), "key_column", MAX_COLUMN_BYTES)?,
    ];
    let sql = "SELECT snowflake_ids_internal.series_add_trigger($1, $2, $3, $4)";
    cached.table.as_owner(|| statement::run(sql, &arguments)).map_err(spi)
}

/// The longest possible name in Postgres, in bytes.
const MAX_COLUMN_BYTES: usize = 63;

/// Moves a series' counters to the shards of a distributed table. The table must belong to the caller.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn series_make_shards(series: Option<Text<'_>>, beside: Option<pg_sys::Oid>) -> Result<(), ErrorReport> {
    let own = ChangedSeries::checked(series.as_ref())?;
    let table = beside.and_then(|oid| Some((oid, Relation::find(oid)?)));
    let table = table.filter(|(_, table)| role::has_privileges_of(table.owner()));
    let (beside, _) = table.ok_or(CallError::NotOwnerOfTable)?;
    own.run("SELECT snowflake_ids_internal.series_add_shards($1, $2)", [beside.into()])
}

for_each_key_type! {
    /// Raises a key's counter to a value, if the counter is lower.
    "series_raise" [schema = "snowflake_ids_internal", strict] series_raise series_raise_text series_raise_uuid (value: i64) (value) -> bool = raise_above
}

/// Makes all sessions look up series again.
#[allow(clippy::unnecessary_wraps, reason = "the form of a trigger")]
#[pg_trigger(sql = "CREATE FUNCTION snowflake_ids_internal.series_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'series_changed_trigger';")]
fn series_changed<'a>(trigger: &'a PgTrigger<'a>) -> NoRow<'a> {
    let table = trigger.relid()?;
    let registries = REGISTRY_SERVER.find().filter(|registries| registries.oid() == table);
    SERIES.find().into_iter().chain(registries).for_each(Source::announce);
    Ok(None)
}

extension_sql_file!(
    "series.sql",
    name = "series",
    requires = [series_changed, "series_fill", has_series_privilege, "segments"]
);
