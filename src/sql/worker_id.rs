//! The registry of worker ids. Its table and the release of worker ids are SQL, in `worker_id.sql`; this file has the parts
//! that concern this server's own lease.

use crate::issuer;
use crate::lease;
use crate::pg::report::{report, spi};
use crate::pg::time;
use crate::pg::{database, server};
use crate::shared::generator::{SHARED, Shared, on_primary};
use crate::sql::error::CallError;
use crate::store::registry;
use crate::store::tables::{WORKER_CHOSEN, WORKER_LEASE};
use crate::store::worker_id::record_chosen;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::server::lease::Lease;
use snowflake_ids_core::server::state::{Chosen, Identity, WorkerIdSource};

/// Fails if worker ids are leased from another database.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn worker_check_registry() -> Result<(), ErrorReport> {
    let shared = ready()?;
    if let Some(source) = WORKER_LEASE.find()
        && let Some(endpoint) = source.as_owner(registry::endpoints).map_err(spi)?.first()
    {
        return Err(CallError::LeasesAtRegistry { server: endpoint.server.clone() }.into());
    }
    match shared.status.registry().and_then(database::name) {
        Some(registry) if database::of_name(&registry) != Some(server::database()) => {
            Err(CallError::OtherDatabase { database: registry }.into())
        }
        _ => Ok(()),
    }
}

/// Ends a lease if this server holds the lease; `token` is the lease token in the lease's row. Returns the time from which
/// another server may issue ids under that worker id; null if this server does not hold the lease.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn worker_give_up(
    datacenter_id: Option<i32>,
    worker_id: Option<i32>,
    token: Option<i64>,
) -> Result<Option<TimestampWithTimeZone>, ErrorReport> {
    let shared = ready()?;
    let (datacenter_id, worker_id) = datacenter_id.zip(worker_id).ok_or(CallError::NoLease)?;
    let lease = issuer::change(shared, |state, _| {
        let lease = state.lease.clone().filter(|lease| {
            (lease.datacenter.cast_signed(), lease.worker_id.cast_signed()) == (datacenter_id, worker_id)
                && token.is_some()
                && (Some(lease.token) == token || state.pending_token == token)
        })?;
        state.give_up();
        // If this transaction is rolled back, the row keeps this token. By this token the server can recognise its row again.
        state.pending_token = token;
        Some(lease)
    })
    .map_err(report)?;
    let Some(lease) = lease else { return Ok(None) };
    // The change above has ended the issuing of ids under the lease, so the high-water mark is exact.
    let end = issuer::change(shared, |state, _| state.end_of(&lease)).map_err(report)?;
    time::to_sql(end).map(Some)
}

/// Makes this server choose another worker id, if the server chose this worker id itself and uses no registry. Returns whether
/// the server chose another worker id.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn worker_choose_another(datacenter_id: Option<i32>, worker_id: Option<i32>) -> Result<bool, ErrorReport> {
    let (shared, unsigned) = (ready()?, |value: Option<i32>| u32::try_from(value?).ok());
    let Some((datacenter, worker_id)) = unsigned(datacenter_id).zip(unsigned(worker_id)) else {
        return Ok(false);
    };
    let now = shared.now();
    let taken = issuer::change(shared, |state, here| state.leave_worker_id(here, now, datacenter, worker_id));
    taken.map_err(report)?.map_err(report)
}

/// Returns this server's lease of a worker id in JSON; null without a lease. If the server chose the worker id itself, the
/// lease never expires: its end is in the year 9998.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn worker_held() -> Result<Option<String>, ErrorReport> {
    let Some(shared) = SHARED.get() else { return Ok(None) };
    let lease = issuer::change(shared, |state, _| state.lease.clone());
    Ok(lease.map_err(report)?.map(|Lease { datacenter, worker_id, token, expiry, .. }| {
        format!(
            r#"{{"datacenter_id": {datacenter}, "worker_id": {worker_id}, "token": {token}, "expires_at": "{expiry}"}}"#
        )
    }))
}

/// Records the first worker id that this server chose, if any. A promoted standby may know this worker id only from the table
/// that this function writes.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn worker_note_chosen() -> Result<(), ErrorReport> {
    let Some(shared) = SHARED.get().filter(|_| !server::in_recovery()) else { return Ok(()) };
    let Identity::Leased { .. } = shared.identity else { return Ok(()) };
    // If this change fails, the state file cannot be trusted. CREATE EXTENSION must succeed even so, because the extension has the
    // functions that repair the state.
    let known = issuer::change(shared, |state, _| *state.source.settled() != WorkerIdSource::Unknown);
    let Ok(is_known) = known else { return Ok(()) };
    if !is_known {
        // The server has just started and has no worker id yet. If the lease worker does not answer in time, no worker id is
        // recorded. A worker id that is chosen later need not be in the table.
        drop(lease::ask(shared, false));
    }
    let chosen = issuer::change(shared, |state, here| {
        let (system_identifier, home) = (here.system_identifier, here.home.identity.clone());
        state.first.map(|first| Chosen { first, home, system_identifier })
    });
    let Some((chosen, source)) = chosen.ok().flatten().zip(WORKER_CHOSEN.find()) else { return Ok(()) };
    source.as_owner(|| record_chosen(&chosen)).map_err(spi)
}

fn ready() -> Result<&'static Shared, ErrorReport> {
    on_primary("snowflake_ids.worker_release").map_err(report)
}

extension_sql_file!(
    "worker_id.sql",
    name = "workers",
    requires = [worker_note_chosen, "status_view", "segments"]
);
