//! Beginning to use registries, and ending it: what is checked first, and what has to change at once.

use super::call::Caller;
use super::session::{Checked, NOT_READY, ask, garbled, here, refusal};
use crate::lease;
use crate::lease::end_of;
use crate::pg::clock::SystemClock;
use crate::pg::process::PerProcess;
use crate::pg::report::raise;
use crate::pg::transaction::{self, Hooks};
use crate::pg::{database, server};
use crate::segment::place;
use crate::shared::generator::shared;
use crate::shared::leases::{ANY, Leases, leases};
use crate::shared::registries;
use crate::store::registry::{Site, sites};
use crate::{issuer, settings};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::clock::{human, micros};
use snowflake_ids_core::lease::{Lease, check_clock};
use snowflake_ids_core::state::Identity;
use snowflake_ids_core::wire::{self, RequestBody, ResponseBody, Stranger};
use snowflake_ids_core::{Clock, Explain};
use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::Ordering::Release;

/// Asks a foreign server which registry it is, and whether this server can use it.
///
/// # Errors
/// Why not. What is wrong with the foreign server itself is thrown.
pub fn introduce(server: &str) -> Checked<wire::Registry> {
    let mut caller = Caller::default();
    let mut answer = ask(&mut caller, server, None, RequestBody::Introduce)?;
    // One that was promoted since leaves a former primary, which may be asked first.
    let later =
        |site: &Site| answer.registry.check(&site.seen).is_err_and(|stranger| stranger != Stranger::Another);
    if let Some(site) = here(sites)?.into_iter().find(later) {
        answer = ask(&mut caller, server, Some(&site.seen), RequestBody::Introduce)?;
    }
    let ResponseBody::Introduced { version } = answer.said else { return Err(garbled(server)) };
    if version != env!("CARGO_PKG_VERSION") {
        return Err(refusal(
            NOT_READY,
            server,
            "it has another version of the extension",
            &format!("It has {version}, and this server {}.", env!("CARGO_PKG_VERSION")),
            "Install the same version on both servers.",
        ));
    }
    if super::this().is_some_and(|this| this.identity == answer.registry.identity) {
        return Err(refusal(
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            server,
            "it is this very database",
            "The foreign server leads back here.",
            "Without a foreign server a database is its own registry: SELECT snowflake_ids.use_local_registry().",
        ));
    }
    let skew = check_clock(SystemClock.now(), answer.clock, None, settings::max_clock_skew());
    skew.map_err(|skew| {
        let (detail, hint) = (skew.detail().unwrap_or_default(), skew.hint().unwrap_or_default());
        refusal(NOT_READY, server, &skew.to_string(), &detail, &hint)
    })?;
    Ok(answer.registry)
}

/// Gives the worker id back that this server leased from a registry, as this database has it. Should that fail, it is free
/// when its expiry has passed. Should the transaction be rolled back, one is leased again.
///
/// # Errors
/// The state can't be written.
pub fn give_up_lease(server: &str, registry: &wire::Registry) -> Checked<()> {
    // Another database may be the one that leases it.
    let Some(shared) = shared().filter(|shared| shared.counts.registry() == Some(server::database())) else {
        return Ok(());
    };
    let hindered = |error: issuer::IssuerError| Box::new(error.into());
    let given_up = issuer::change(shared, |state, _| {
        let of_site =
            |lease: &Lease| lease.origin.as_ref().is_some_and(|origin| origin.identity == registry.identity);
        let lease = state.lease.clone().filter(of_site)?;
        // By one of these the row is known, if a renewal is on its way.
        let tokens = [Some(lease.token), state.claim];
        // Another database may use a registry, too.
        state.registry = None;
        // Not to be known again: who asks for a lease before this is committed gets another row.
        state.give_up();
        Some((lease, tokens))
    });
    let Some((lease, tokens)) = given_up.map_err(hindered)? else { return Ok(()) };
    MOVING.set(Some(ANY));
    // Ended by now: its mark is exact.
    let end = issuer::change(shared, |state, here| end_of(state, &lease, &here.layout)).map_err(hindered)?;
    let Lease { datacenter, worker, .. } = lease;
    let mut caller = Caller::default();
    let release = |token| RequestBody::Release { datacenter, worker, token, from: end };
    let mut tokens = tokens.into_iter().flatten();
    let released =
        tokens.try_for_each(|token| ask(&mut caller, server, Some(registry), release(token)).map(drop));
    if let Err(report) = released {
        pgrx::notice!("worker id {worker} stays leased until {}: {}", lease.expiry, report.message());
    }
    Ok(())
}

/// Takes away what is in the buffers of this database, and has the worker id looked after when this is committed; from
/// here, if `moves_lease`.
/// What was reserved before can't be published any more: refills are held up by the locks that the caller has.
///
/// # Errors
/// The state can't be written.
pub fn switch(moves_lease: bool) -> Checked<()> {
    static HOOKS: Hooks = Hooks {
        watched: Once::new(),
        before_commit: || (),
        before_prepare: refuse_to_prepare,
        committed: act,
        ended: forget,
        subtransaction_aborted: |_| (),
        subtransaction_committed: |_, _| (),
    };
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
            human(micros(wire::MAX_LEASE)),
            human(micros(settings::lease_duration()))
        );
    }
    if named.is_empty() || database::of_name(&named) == Some(server::database()) {
        // Should the server end before it is acted on, the lease worker looks whether this was committed.
        issuer::change(shared, |state, _| state.moving_to = Some(server::database()))
            .map_err(|error| Box::new(error.into()))?;
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

/// Somebody else may commit it, who would not know what there is to do then.
fn refuse_to_prepare() {
    if CHANGED.get() {
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
        leases.stays.store(server::database(), Release);
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
            leases.moved_to.store(database, Release);
        }
        look_after(leases);
    }
}

fn look_after(leases: &Leases) {
    leases.renew.store(true, Release);
    leases.request.ask();
    lease::call(leases);
}
