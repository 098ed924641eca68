//! The view `snowflake_ids.status` of this server's generator.

use crate::issuer::{self, issuer};
use crate::lease;
use crate::pg::clock::SystemClock;
use crate::pg::{database, server, time};
use crate::shared::generator::{SHARED, Shared};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::clock::{YEAR_MICROS, micros};
use snowflake_ids_core::registry::citus;
use snowflake_ids_core::server::issuer::NoIds;
use snowflake_ids_core::server::state::Identity;
use snowflake_ids_core::{Clock, Layout, Node, Position, Snapshot, UnixMicros};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Returns the node that issues ids. If no ids are issued, returns the node that the configuration sets.
pub fn node(shared: &Shared, snapshot: &Snapshot) -> Option<Node> {
    match shared.identity {
        _ if snapshot.limit > Position::ZERO => shared.layout.node_of(snapshot.node_bits),
        Identity::Fixed { datacenter, worker_id } => Some(Node { datacenter, worker_id, rollback: 0 }),
        Identity::Leased { .. } => None,
    }
}

/// Returns the remaining years of a layout, rounded down to one decimal; 0 if the layout's time is over.
#[allow(clippy::cast_precision_loss, reason = "one digit is shown")]
pub fn years_left(layout: &Layout, now: UnixMicros) -> f64 {
    let left = micros(layout.last_instant().since(now));
    (left as f64 / YEAR_MICROS as f64 * 10.0).floor() / 10.0
}

/// Returns one row: the state of this server's generator since the server started.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_safe)]
fn status() -> Result<
    TableIterator<
        'static,
        (
            name!(datacenter_id, Option<i32>),
            name!(worker_id, Option<i32>),
            name!(layout, String),
            name!(epoch, TimestampWithTimeZone),
            name!(last_id, Option<i64>),
            name!(last_timestamp, Option<TimestampWithTimeZone>),
            name!(drift, Interval),
            name!(ids_issued, i64),
            name!(full_ticks, i64),
            name!(steps_back, i64),
            name!(largest_step_back, Interval),
            name!(years_left, f64),
            name!(rollback, Option<i32>),
            name!(high_water_mark, Option<TimestampWithTimeZone>),
            name!(reservations, i64),
            name!(reserved_by_callers, i64),
            name!(steps_forward, i64),
            name!(clock_ahead, Interval),
            name!(switches, i64),
            name!(scope, &'static str),
            name!(lease_expires_at, Option<TimestampWithTimeZone>),
            name!(leased_from, Option<String>),
            name!(state, String),
        ),
    >,
    ErrorReport,
> {
    let shared = SHARED.ready("snowflake_ids.status")?;
    let layout = &shared.layout;
    let snapshot = shared.generator.snapshot();
    let node = node(shared, &snapshot);
    let (counts, status) = (&shared.counts, &shared.status);
    let count = |counter: &AtomicU64| counter.load(Relaxed).cast_signed();
    let now = SystemClock.now();
    let origin = lease::origin().filter(|_| matches!(shared.identity, Identity::Leased { .. }));
    let last = snapshot.last.map(|position| layout.id(position, snapshot.node_bits).cast_signed());
    let made = snapshot.last.map(|position| layout.instant_of(position));
    let drift = made.map_or(Duration::ZERO, |made| made.since(now));
    Ok(TableIterator::once((
        node.map(|node| node.datacenter.cast_signed()),
        node.map(|node| node.worker_id.cast_signed()),
        layout.to_string(),
        time::to_sql(layout.epoch())?,
        last,
        made.map(time::to_sql).transpose()?,
        time::interval(drift)?,
        shared.counted().cast_signed(),
        snapshot.full_ticks.cast_signed(),
        snapshot.steps_back.cast_signed(),
        time::interval(Duration::from_micros(snapshot.largest_step_back.saturating_mul(layout.unit())))?,
        years_left(layout, now),
        node.map(|node| node.rollback.cast_signed()),
        (snapshot.limit > Position::ZERO)
            .then(|| time::to_sql(layout.instant_of(snapshot.limit)))
            .transpose()?,
        count(&counts.reservations),
        count(&counts.by_callers),
        count(&counts.steps_forward),
        time::interval(Duration::from_micros(status.clock_ahead.load(Relaxed)))?,
        count(&counts.switches),
        match shared.identity {
            Identity::Fixed { .. } => "configured",
            Identity::Leased { .. } if origin.is_some() => "shared registry",
            Identity::Leased { .. } => "this server only",
        },
        status.expiry().map(time::to_sql).transpose()?,
        status.expiry().and_then(|_| origin.or_else(|| status.registry().and_then(database::name))),
        state(shared).map_or_else(str::to_owned, |obstacle| obstacle.reason),
    )))
}

/// Returns the reason why this server issues no snowflake ids; if it can issue ids or is a standby, returns its state as an
/// error.
fn state(shared: &Shared) -> Result<NoIds, &'static str> {
    if server::in_recovery() {
        return Err("in recovery");
    }
    match issuer(shared).obstacle() {
        Some(obstacle) => Ok(obstacle),
        None if shared.generator.limit() > Position::ZERO => Err("ready"),
        None => lease::trouble().map(NoIds::from).ok_or(citus::IDLE),
    }
}

/// Returns the remedy if this server issues no snowflake ids.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn server_remedy() -> Option<String> {
    state(SHARED.get()?).ok().map(|obstacle| obstacle.remedy)
}

/// Returns true if a copy of the data directory may look like the original, so that both issue ids under one worker id.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn copies_look_alike() -> bool {
    SHARED.get().is_some_and(|shared| issuer(shared).copies_look_alike())
}

/// Returns the time at which the server found that its data directory was copied or put back.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn copied_at() -> Result<Option<TimestampWithTimeZone>, ErrorReport> {
    issuer::copied().map(|copied| time::to_sql(copied.at)).transpose()
}

extension_sql!(
    "
CREATE VIEW snowflake_ids.status AS SELECT * FROM snowflake_ids.status();
COMMENT ON VIEW snowflake_ids.status IS 'the state of this server''s snowflake generator since the server started';
",
    name = "status_view",
    requires = [status, server_remedy, copies_look_alike, copied_at]
);
