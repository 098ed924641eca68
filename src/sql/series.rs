//! Series. Their tables, and the functions that run with the rights of the tables' owner, are SQL, in `series.sql`. This
//! file has the functions that every role may call. These functions check the caller's rights.

use crate::column::series as column;
use crate::pg::catalog::Source;
use crate::pg::encoding::to_utf8;
use crate::pg::error::ServerError;
use crate::pg::relation::Relation;
use crate::pg::report::{report, spi};
use crate::pg::role;
use crate::pg::text::{Text, TextOut, handed_on};
use crate::pg::tuple::NoRow;
use crate::series;
use crate::series::error::NoNumberError;
use crate::sql::attach::extension_keep;
use crate::sql::error::CallError;
use crate::sql::rights::{Changed, check_coordinator, listed, series_name as name};
use crate::store::citus;
use crate::store::tables::{REGISTRY_SERVER, SERIES};
use pgrx::Uuid;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::column::series::FillError;
use snowflake_ids_core::series::{
    Key, MAX_KEY_BYTES, MAX_NAME_BYTES as MAX_SERIES_BYTES, MAX_TIME_ZONE_BYTES, Series, SeriesError,
    SeriesRow,
};
use snowflake_ids_core::tag::definition::{MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES};
use snowflake_ids_core::tag::privilege::Access;
use std::ffi::CStr;

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
    Changed::series(name.as_ref())?
        .run("SELECT snowflake_ids_internal.series_alter($1, $2, $3, $4, $5, $6::name, $7, $8, $9)", others)
}

/// Drops a series and its keys; fails if a column uses the series.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn series_drop(name: Option<Text<'_>>) -> Result<(), ErrorReport> {
    Changed::series(name.as_ref())?.run("SELECT snowflake_ids_internal.series_drop($1)", [])
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
    let actions = [Access::Take, Access::Look, Access::Move];
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
    scope: Option<Text<'_>>,
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
    let scope = scope.as_ref().map(|scope| scope.read("scope")).transpose()?;
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
        scope: scope.as_deref(),
    };
    Series::new(&row).map_err(report)?;
    scope.map(drop).ok_or_else(|| report(SeriesError::Missing { column: "scope" }))
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

/// Makes a series fill a column where it is null in new rows, with the next number of the key in another column.
#[pg_extern(
    requires = ["search_path"],
    sql = "CREATE FUNCTION snowflake_ids.series_attach(relation regclass, \"column\" name, series text, key_column name) RETURNS void
LANGUAGE c SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET row_security = off
AS 'MODULE_PATHNAME', 'series_attach_wrapper';"
)]
fn series_attach(
    relation: Option<pg_sys::Oid>,
    column: Option<&CStr>,
    series: Option<Text<'_>>,
    key_column: Option<&CStr>,
) -> Result<(), ErrorReport> {
    extension_keep()?;
    let (Some(relation), Some(column), Some(key)) = (relation, column, key_column) else {
        return Err(report(FillError::NullArgument));
    };
    column::attach(relation, &text(column), name(series.as_ref())?, &text(key))
}

fn text(name: &CStr) -> TextOut {
    TextOut::of_bytes(name.to_bytes())
}

/// Stops series from filling a column.
#[pg_extern(
    requires = ["search_path"],
    sql = "CREATE FUNCTION snowflake_ids.series_detach(relation regclass, \"column\" name) RETURNS void
LANGUAGE c SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS 'MODULE_PATHNAME', 'series_detach_wrapper';"
)]
fn series_detach(relation: Option<pg_sys::Oid>, column: Option<&CStr>) -> Result<(), ErrorReport> {
    extension_keep()?;
    column::detach(relation, column.map(text))
}

/// Moves a series' counters to the shards of a distributed table. The table must belong to the caller.
#[pg_extern(
    requires = ["search_path"],
    sql = "CREATE FUNCTION snowflake_ids.series_distribute(series text, colocate_with regclass) RETURNS void
LANGUAGE c SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'series_distribute_wrapper';"
)]
fn series_distribute(series: Option<Text<'_>>, beside: Option<pg_sys::Oid>) -> Result<(), ErrorReport> {
    extension_keep()?;
    let own = Changed::series(series.as_ref())?;
    let table = beside.and_then(|oid| Some((oid, Relation::find(oid)?)));
    let table = table.filter(|(_, table)| role::has_privileges_of(table.owner()));
    let (beside, _) = table.ok_or(CallError::NotOwnerOfTable)?;
    check_coordinator()?;
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
