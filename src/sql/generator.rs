//! Named generators. Their table and the functions that change it are SQL, in `generator.sql`. This file has the checks of
//! rows, and the status of a layout's counter.

use crate::issuer::issuer;
use crate::named;
use crate::pg::clock::SystemClock;
use crate::pg::report::report;
use crate::pg::text::Text;
use crate::pg::tuple::NoRow;
use crate::pg::{server, time};
use crate::shared::generator::{SHARED, Shared};
use crate::shared::segments::PIECE;
use crate::sql::layout;
use crate::sql::status::{node, years_left};
use crate::store::tables::GENERATOR;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::generator::named::{GeneratorRow, MAX_NAME_BYTES, Named, NamedError};
use snowflake_ids_core::server::issuer::Host as _;
use snowflake_ids_core::server::state::Identity;
use snowflake_ids_core::{Clock, Field, Layout, Position};
use std::sync::atomic::Ordering::Relaxed;

/// Fails if no generator can have these properties.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn generator_check(
    name: Option<Text<'_>>,
    layout: Option<Text<'_>>,
    modulus: Option<i32>,
    remainder: Option<i32>,
    sequence_start: Option<Text<'_>>,
    cache: Option<i32>,
) -> Result<(), ErrorReport> {
    let name = name.ok_or(NamedError::NoName).map_err(report)?;
    let name = name.bytes(MAX_NAME_BYTES, "name")?;
    named::checked(name).map_err(report)?;
    let layout = layout.as_ref().map(|layout| layout.read("layout")).transpose()?;
    let start = sequence_start.as_ref().map(|start| start.read("sequence_start")).transpose()?;
    let row = GeneratorRow {
        layout: layout.as_deref().unwrap_or_default(),
        modulus,
        remainder,
        sequence_start: start.as_deref(),
        cache,
    };
    let named = Named::new(&row).map_err(report)?;
    named.check_name(&String::from_utf8_lossy(name)).map_err(report)
}

/// Fails with the error for a name that no generator has.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn generator_unknown(name: Option<Text<'_>>) -> Result<(), ErrorReport> {
    let name = name.ok_or_else(|| report(NamedError::NoName))?;
    let name = named::checked(name.bytes(MAX_NAME_BYTES, "name")?);
    Err(report(name.map_or_else(|error| error, |name| named::unknown(&name))))
}

#[pg_extern(schema = "snowflake_ids_internal", stable, parallel_safe)]
fn server_layout() -> Result<String, ErrorReport> {
    Ok(layout::of_server()?.to_string())
}

/// Returns the status of this server's counter for a layout. The column `slot` is the counter's slot; null for the
/// server's own layout, and for a layout without a slot.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe, strict)]
fn layout_status(
    layout: Text<'_>,
) -> Result<
    TableIterator<
        'static,
        (
            name!(slot, Option<i32>),
            name!(last_id, Option<i64>),
            name!(last_timestamp, Option<TimestampWithTimeZone>),
            name!(high_water_mark, Option<TimestampWithTimeZone>),
            name!(drift, Option<Interval>),
            name!(years_left, Option<f64>),
            name!(fits, Option<bool>),
            name!(state, String),
        ),
    >,
    ErrorReport,
> {
    let unknown = |state: String| TableIterator::once((None, None, None, None, None, None, None, state));
    let layout: Layout = match layout.read("layout")?.parse() {
        Ok(layout) => layout,
        Err(error) => return Ok(unknown(error.to_string())),
    };
    let Some(shared) = SHARED.get() else {
        return Ok(unknown("snowflake_ids is not loaded via shared_preload_libraries".into()));
    };
    let (is_own, now) = (layout == shared.layout, SystemClock.now());
    let issuer = issuer(shared);
    // Calls for ids wait for this lock, so it is held for few slots at a time.
    let mut pieces = (0..shared.slots.len()).step_by(PIECE);
    let slot = if is_own {
        None
    } else {
        pieces.find_map(|from| issuer.host.lock().slot_from(from, PIECE, &layout))
    };
    let generator = slot.map_or(&shared.generator, |slot| &shared.slots[slot].generator);
    let snapshot = (is_own || slot.is_some()).then(|| generator.snapshot());
    let last = snapshot.and_then(|seen| Some((seen.last?, seen.node_bits)));
    let made = last.map(|(position, _)| layout.instant_of(position));
    let high_water_mark = snapshot.map(|seen| seen.limit).filter(|limit| *limit > Position::ZERO);
    let misfit = misfit(shared, &layout);
    let fits = misfit.is_none();
    let state = if server::in_recovery() {
        "in recovery".into()
    } else if let Some(misfit) = misfit {
        misfit
    } else if let Some(obstacle) = issuer.obstacle_in(&layout, generator) {
        obstacle.reason
    } else if high_water_mark.is_some() {
        "ready".into()
    } else {
        "idle".into()
    };
    Ok(TableIterator::once((
        slot.map(i32::try_from).transpose().unwrap_or_default(),
        last.map(|(position, bits)| layout.id(position, bits).cast_signed()),
        made.map(time::to_sql).transpose()?,
        high_water_mark
            .map(|high_water_mark| time::to_sql(layout.instant_of(high_water_mark)))
            .transpose()?,
        made.map(|made| time::interval(made.since(now))).transpose()?,
        Some(years_left(&layout, now)),
        Some(fits),
        state,
    )))
}

/// Returns the reason that this server cannot generate ids of a layout. Returns None if the layout has room for the server's
/// datacenter id and worker id. The worker id does not matter if the server has none yet, or may choose another.
fn misfit(shared: &Shared, layout: &Layout) -> Option<String> {
    let is_chosen = shared.status.alone.load(Relaxed);
    let node = node(shared, &shared.generator.snapshot()).filter(|_| !is_chosen);
    let datacenter = match shared.identity {
        Identity::Fixed { datacenter, .. } | Identity::Leased { datacenter: Some(datacenter) } => datacenter,
        Identity::Leased { datacenter: None } => node.map_or(0, |node| node.datacenter),
    };
    let worker_id = node.map_or(0, |node| node.worker_id);
    let fits = |field, value: u32| layout.check(field, value.into()).err();
    let misfit = fits(Field::Datacenter, datacenter).or_else(|| fits(Field::Worker, worker_id));
    misfit.map(|error| error.to_string())
}

/// Makes all sessions look up generators again.
#[allow(clippy::unnecessary_wraps, reason = "the form of a trigger")]
#[pg_trigger(sql = "CREATE FUNCTION snowflake_ids_internal.generator_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'generator_changed_trigger';")]
fn generator_changed<'a>(_trigger: &'a PgTrigger<'a>) -> NoRow<'a> {
    if let Some(table) = GENERATOR.find() {
        table.announce();
    }
    named::changed();
    Ok(None)
}

extension_sql_file!(
    "generator.sql",
    name = "generators",
    requires = [generator_check, generator_changed, layout_status, "snowflake_nextval", "status_view"]
);
