//! What has to change at once when this database begins to use registries, or ends it.

use super::call::RegistryCaller;
use super::session::{Checked, ask};
use crate::lease;
use crate::pg::catalog::Source;
use crate::pg::process::PerProcess;
use crate::pg::report::{raise, report};
use crate::pg::transaction::{self, Hooks};
use crate::pg::{database, server};
use crate::segment::place;
use crate::shared::generator::shared;
use crate::shared::leases::{Leases, leases};
use crate::shared::registries;
use crate::store::tables::WORKER_LEASE;
use crate::{issuer, settings};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::clock::human;
use snowflake_ids_core::registry::lease::Lease;
use snowflake_ids_core::registry::lease_worker::ANY;
use snowflake_ids_core::registry::wire::{self, RequestBody};
use snowflake_ids_core::server::issuer::IssuerError;
use snowflake_ids_core::server::state::Identity;
use std::cell::Cell;
use std::sync::atomic::Ordering::Release;

/// Gives the worker id back that this server leased from a registry, as this database has it. Should that fail, it is free
/// when its expiry has passed. Should the transaction be rolled back, one is leased again.
pub fn give_up_lease(server: &str, registry: &wire::Registry) -> Checked<()> {
    // Another database may be the one that leases it.
    let Some(shared) = shared().filter(|shared| shared.counts.registry() == Some(server::database())) else {
        return Ok(());
    };
    let hindered = |error: IssuerError| Box::new(report(&error));
    let given_up = issuer::change(shared, |state, _| {
        let of_site =
            |lease: &Lease| lease.origin.as_ref().is_some_and(|origin| origin.identity == registry.identity);
        let lease = state.lease.clone().filter(of_site)?;
        // By one of these the row is known, if a renewal is on its way.
        let tokens = [Some(lease.token), state.claim];
        // Another database may use a registry, too.
        (state.registry, state.leases_with) = (None, None);
        // None issues under it any more. A registry that took the place of this one is shown it.
        state.leave_former();
        Some((lease, tokens))
    });
    let Some((lease, tokens)) = given_up.map_err(hindered)? else { return Ok(()) };
    MOVING.set(Some(ANY));
    // Ended by now: its mark is exact.
    let end = issuer::change(shared, |state, here| state.end_of(&lease, &here.layout)).map_err(hindered)?;
    let Lease { datacenter, worker, .. } = lease;
    let mut caller = RegistryCaller::default();
    let release = |token| RequestBody::Release { datacenter, worker, token, from: end };
    let mut tokens = tokens.into_iter().flatten();
    let released =
        tokens.try_for_each(|token| ask(&mut caller, server, Some(registry), release(token)).map(drop));
    match released {
        Ok(()) => issuer::change(shared, |state, _| state.former = None).map_err(hindered)?,
        Err(report) => {
            pgrx::notice!("worker id {worker} stays leased until {}: {}", lease.expiry, report.message());
        }
    }
    Ok(())
}

/// The database for which this server leases its worker id from another registry than the one of this identity, where it would
/// be leased from that one from now on.
pub fn leases_for(identity: &str) -> Checked<Option<String>> {
    let leased = shared().filter(|shared| matches!(shared.identity, Identity::Leased { .. }));
    // Where a setting says which database it is, no other one moves it.
    let Some(shared) = leased.filter(|_| settings::registry_database().is_empty()) else { return Ok(None) };
    let held = issuer::change(shared, |state, _| state.held_for(server::database(), identity));
    // One that was dropped meanwhile needs no worker id.
    Ok(held.map_err(|error| Box::new(report(&error)))?.and_then(database::name))
}

/// Takes away what is in the buffers of this database, and has the worker id looked after when this is committed; from
/// here, if `moves_lease`.
/// What was reserved before can't be published any more: refills are held up by the locks that the caller has.
pub fn switch(moves_lease: bool) -> Checked<()> {
    static HOOKS: Hooks =
        Hooks { before_prepare: refuse_to_prepare, committed: act, ended: forget, ..Hooks::none() };
    place::leave_all(server::database(), None);
    let Some(shared) = shared().filter(|shared| matches!(shared.identity, Identity::Leased { .. })) else {
        return Ok(());
    };
    transaction::watch(&HOOKS);
    CHANGED.set(true);
    let named = settings::registry_database();
    if !moves_lease {
        return Ok(());
    }
    if settings::lease_duration() > wire::MAX_LEASE {
        pgrx::notice!(
            "worker ids are leased for {} at most, though snowflake_ids.lease_duration is {}",
            human(wire::MAX_LEASE),
            human(settings::lease_duration())
        );
    }
    if named.is_empty() || database::of_name(&named) == Some(server::database()) {
        // Should the server end before it is acted on, the lease worker looks whether this was committed.
        issuer::change(shared, |state, _| state.moving_to = Some(server::database()))
            .map_err(|error| Box::new(report(&error)))?;
        MOVING.set(Some(server::database()));
    } else {
        pgrx::notice!(
            "worker ids are still leased from database \"{named}\", which snowflake_ids.registry_database names"
        );
    }
    Ok(())
}

/// Where the transaction moves the registry of worker ids to, if it does.
static MOVING: PerProcess<Cell<Option<u32>>> = PerProcess::new(Cell::new(None));
/// Whether it changes what registries this database uses.
static CHANGED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// Another session may commit it, and would not know what there is to do then. That an extension is created, the launcher finds
/// out by itself; Citus prepares the transaction in which a new worker gets it.
fn refuse_to_prepare() {
    if CHANGED.get() && !WORKER_LEASE.find().is_some_and(Source::is_new) {
        let report = ErrorReport::new(
            Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            "cannot PREPARE a transaction that has changed the registry",
            function_name!(),
        );
        raise(report.set_hint("COMMIT it."));
    }
}

/// What is in the state already does not count. Must not fail, so the launcher puts it right.
fn forget() {
    CHANGED.set(false);
    if let (Some(_), Some(leases)) = (MOVING.take(), leases()) {
        leases.requests.stays.store(server::database(), Release);
        look_after(leases);
    }
}

fn act() {
    let (changed, moving) = (CHANGED.replace(false), MOVING.take());
    if changed {
        registries::forget(server::database());
    }
    if let Some(leases) = leases().filter(|_| changed) {
        if let Some(database) = moving {
            leases.requests.moved_to.store(database, Release);
        }
        look_after(leases);
    }
}

fn look_after(leases: &Leases) {
    leases.requests.ask_to_renew();
    lease::call(leases);
}
