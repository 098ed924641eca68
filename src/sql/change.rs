//! Functions that check a change of a layout and prepare it. The core decides whether the change is allowed (`layout::change`).

use crate::issuer::{self, issuer};
use crate::pg::report::{new_report, report};
use crate::pg::text::Text;
use crate::pg::{catalog, role, time, transaction};
use crate::shared::generator::{self, SHARED, Shared};
use crate::sql::error::CallError;
use crate::{named, settings};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::generator::named::MAX_NAME_BYTES;
use snowflake_ids_core::ids::layout::change::{LayoutChange, Past, check};
use snowflake_ids_core::server::issuer::{IssuerError, NoRoom};
use snowflake_ids_core::server::state::Identity;
use snowflake_ids_core::{Field, Layout, UnixMicros};
use std::time::Duration;

/// Checks a change of the server's own layout or of a named generator's layout. Returns the time from which all ids of the
/// new layout are above the existing ids.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_safe)]
fn layout_check(
    new: Text<'_>,
    generator: default!(Option<Text<'_>>, "NULL"),
) -> Result<
    TableIterator<
        'static,
        (
            name!(old_layout, String),
            name!(new_layout, String),
            name!(ready, bool),
            name!(above_from, Option<TimestampWithTimeZone>),
            name!(old_until, Option<TimestampWithTimeZone>),
            name!(years, f64),
            name!(ends, TimestampWithTimeZone),
        ),
    >,
    ErrorReport,
> {
    let (old, new, change) = of("snowflake_ids.layout_check", &new, generator.as_ref())?;
    let old_until = |until| match until {
        UnixMicros(i64::MAX) => Ok(TimestampWithTimeZone::positive_infinity()),
        until => time::to_sql(until),
    };
    Ok(TableIterator::once((
        old.to_string(),
        new.to_string(),
        change.ready,
        change.above_from.map(time::to_sql).transpose()?,
        change.old_until.map(old_until).transpose()?,
        (change.years * 10.0).floor() / 10.0,
        time::to_sql(change.last)?,
    )))
}

/// The SQL function that calls the two functions below, as error messages name it.
const FUNCTION: &str = "snowflake_ids.layout_change";

/// Prepares a change of the server's layout that takes effect at the next start. Only a superuser may call this
/// function.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn layout_change_own(new: Text<'_>) -> Result<(), ErrorReport> {
    if !catalog::is_superuser(role::current()) {
        return Err(CallError::NotSuperuser.into());
    }
    // A rollback would undo neither the state file nor the setting.
    transaction::refuse_block(FUNCTION);
    let (old, new, change) = of(FUNCTION, &new, None)?;
    change.allow(&old, &new).map_err(report)?;
    let Some(shared) = SHARED.get() else { return Ok(()) };
    check_room(shared, &new)?;
    // The state file is written before the setting, so that a server that starts with the new setting finds the new
    // layout in the state file.
    issuer::change(shared, |state, _| state.next_layout = Some(new)).map_err(report)?;
    settings::set_layout_at_next_start(&new);
    new_report(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("ids will have layout \"{new}\" after the server is restarted"),
    )
    .set_detail(
        "snowflake_ids.layout was set in postgresql.auto.conf. Other servers may keep the old layout until \
                 the time that snowflake_ids.layout_check shows as old_until.",
    )
    .report(PgLogLevel::NOTICE);
    Ok(())
}

/// Fails if the layout of a generator cannot be changed now.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn layout_change_check(new: Text<'_>, generator: Option<Text<'_>>) -> Result<(), ErrorReport> {
    let (old, new, change) = of(FUNCTION, &new, generator.as_ref())?;
    change.allow(&old, &new).map_err(report)?;
    let Some(shared) = SHARED.get() else { return Ok(()) };
    check_room(shared, &new)?;
    named::layout_changed();
    Ok(())
}

/// Fails if the new layout has no room for this server's datacenter id or its fixed worker id.
fn check_room(shared: &Shared, new: &Layout) -> Result<(), ErrorReport> {
    let (datacenter, worker_id) = match shared.identity {
        Identity::Fixed { datacenter, worker_id } => (Some(datacenter), Some(worker_id)),
        // If the present worker id does not fit, another worker id is leased.
        Identity::Leased { datacenter } => (datacenter, None),
    };
    for (field, value) in [(Field::Datacenter, datacenter), (Field::Worker, worker_id)] {
        if let Some(value) = value.filter(|value| u64::from(*value) > new.max(field)) {
            let no_room = NoRoom { layout: *new, field, value, leased: false };
            return Err(report(IssuerError::NoRoom(no_room)));
        }
    }
    Ok(())
}

/// Returns the present layout, the new layout, and the result of the check. Errors name `function`.
fn of(
    function: &'static str,
    new: &Text<'_>,
    generator: Option<&Text<'_>>,
) -> Result<(Layout, Layout, LayoutChange), ErrorReport> {
    let shared = generator::on_primary(function).map_err(report)?;
    let old = match generator {
        None => shared.layout,
        Some(name) => {
            let name = name.bytes(MAX_NAME_BYTES, "generator")?;
            named::look_up(name).map_err(report)?.named().layout
        }
    };
    let new: Layout = new.read("new")?.parse().map_err(report)?;
    let high_water_mark = issuer(shared).highest_in(&old).map_err(report)?;
    let drift = Duration::from_micros(settings::rules().max_drift);
    let ahead = drift.saturating_add(settings::max_clock_skew()).saturating_add(named::UNDER_WAY);
    Ok((old, new, check(&old, &new, Past { high_water_mark, ahead }, shared.now())))
}

extension_sql_file!("change.sql", name = "layout_change", requires = ["generators"]);
