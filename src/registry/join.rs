//! Changes at the moment when this database begins to use registries, or ends it.

use super::call::RegistryCaller;
use super::session::{Checked, ask};
use crate::lease;
use crate::pg::catalog::Source;
use crate::pg::process::PerProcess;
use crate::pg::report::{raise, report, spi};
use crate::pg::transaction::{self, Hooks};
use crate::pg::{database, server};
use crate::segment::place;
use crate::shared::generator::{Shared, shared};
use crate::shared::leases::{Leases, leases};
use crate::shared::registries;
use crate::store::citus;
use crate::store::registry as sites;
use crate::store::tables::{REGISTRY_SERVER, WORKER_LEASE};
use crate::{issuer, settings};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::clock::human;
use snowflake_ids_core::registry::lease::Lease;
use snowflake_ids_core::registry::wire::{self, RequestBody};
use snowflake_ids_core::server::issuer::IssuerError;
use snowflake_ids_core::server::state::Identity;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

/// Gives the worker id back that this server leased from a registry, as this database has it. Should that fail, it is free
/// when its expiry has passed. Should the transaction be rolled back, one is leased again.
pub fn give_up_lease(server: &str, registry: &wire::Registry) -> Checked<()> {
    // Another database may be the one that leases it.
    let Some(shared) = shared().filter(|shared| shared.counts.registry() == Some(server::database())) else {
        return Ok(());
    };
    let hindered = |error: IssuerError| Box::new(report(&error));
    let given_up = issuer::change(shared, |state, _| state.leave_registry(&registry.identity));
    let Some((lease, claim)) = given_up.map_err(hindered)? else { return Ok(()) };
    // Ended by now: its mark is exact.
    let end = issuer::change(shared, |state, _| state.end_of(&lease)).map_err(hindered)?;
    let Lease { datacenter, worker, .. } = lease;
    // By one of these the row is known, if a renewal is on its way.
    let tokens = [Some(lease.token), claim];
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
    let leased = shared().filter(|shared| may_choose(shared));
    let Some(shared) = leased else { return Ok(None) };
    let held = issuer::change(shared, |state, _| {
        let held = state.held_for(server::database(), identity);
        if held.is_none() {
            state.moving_with = Some(identity.to_owned());
        }
        held
    });
    // One that was dropped meanwhile needs no worker id.
    Ok(held.map_err(|error| Box::new(report(&error)))?.and_then(database::name))
}

/// Takes away what is in the buffers of this database, and again when this is committed: what was reserved before cannot be
/// published any more, as refills are held up by the locks that the caller has.
pub fn switch(moves_lease: bool) {
    place::leave_all(server::database(), None);
    transaction::watch(&HOOKS);
    CHANGED.set(true);
    if moves_lease && settings::lease_duration() > wire::MAX_LEASE {
        pgrx::notice!(
            "worker ids are leased for {} at most, though snowflake_ids.lease_duration is {}",
            human(wire::MAX_LEASE),
            human(settings::lease_duration())
        );
    }
}

/// Returns whether this server chooses its worker id itself.
pub fn is_alone() -> bool {
    shared().is_some_and(|shared| shared.counts.alone.load(Relaxed))
}

/// Notes that this transaction changes whether this database draws from a registry, or is one, so that the launcher looks
/// when it has ended. Should the server end before, the state tells.
pub fn note_change() -> Checked<()> {
    let Some((shared, leases)) = shared().zip(leases()).filter(|_| !server::in_recovery()) else {
        return Ok(());
    };
    if !may_choose(shared) {
        return Ok(());
    }
    transaction::watch(&HOOKS);
    if *MOVING.borrow() == Moving::No {
        MOVING.replace(Moving::Yes);
        leases.requests.changing.fetch_add(1, AcqRel);
    }
    issuer::change(shared, |state, _| state.moving_to = Some(server::database()))
        .map_err(|error| Box::new(report(&error)))
}

/// Returns whether this session need not look any more where the worker id is from.
#[inline]
pub fn has_looked() -> bool {
    HAS_LOOKED.get()
}

/// As [`leave_alone`], with the first id of a session.
#[inline]
pub fn leave_alone_first(shared: &Shared) -> Result<(), IssuerError> {
    if has_looked() {
        return Ok(());
    }
    leave_alone(shared)?;
    // On a node that has no lease yet there is something to look for with the next one.
    HAS_LOOKED.set(!may_choose(shared) || shared.counts.expiry().is_some() || !citus::is_there());
    Ok(())
}

/// Has a server that chose its worker id itself give it up where this database belongs to a node of a Citus cluster, whose nodes
/// lease theirs from one registry. It may have joined by a transaction that was prepared.
pub fn leave_alone(shared: &Shared) -> Result<(), IssuerError> {
    if !has_chosen(shared) || transaction::is_parallel() || !citus::is_there() {
        return Ok(());
    }
    let is_node = WORKER_LEASE.find().map(|source| source.as_owner(citus::is_worker)).transpose();
    if !is_node.unwrap_or_else(|error| raise(spi(&error))).unwrap_or(false) {
        return Ok(());
    }
    if let Some(leases) = leases() {
        outdate(leases);
    }
    issuer::change(shared, |state, _| state.leave_alone(server::database()))
}

fn has_chosen(shared: &Shared) -> bool {
    may_choose(shared) && (is_alone() || shared.is_issuing() && shared.counts.expiry().is_none())
}

/// Returns whether the worker id is no number of an operator's.
fn may_choose(shared: &Shared) -> bool {
    matches!(shared.identity, Identity::Leased { .. })
}

static HOOKS: Hooks = Hooks {
    before_commit: look,
    before_prepare: refuse_to_prepare,
    committed: act,
    ended: forget,
    ..Hooks::none()
};

/// Whether the transaction changes by way of which database worker ids are leased.
#[derive(Default, PartialEq, Eq)]
enum Moving {
    #[default]
    No,
    Yes,
    /// As it commits: this one draws from the registry of this identity.
    To(String),
}

/// True if it was looked what this database is since the session began.
static HAS_LOOKED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
static MOVING: PerProcess<RefCell<Moving>> = PerProcess::new(RefCell::new(Moving::No));
/// True if it changes what registries this database uses.
static CHANGED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// Another session may commit it, and would not know what there is to do then. Citus prepares the transaction in which a new worker
/// gets the extension: that the worker belongs to a cluster, sessions find out.
fn refuse_to_prepare() {
    if (CHANGED.get() || *MOVING.borrow() != Moving::No) && !WORKER_LEASE.find().is_some_and(Source::is_new) {
        let report = ErrorReport::new(
            Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            "cannot PREPARE a transaction that has changed the registry",
            function_name!(),
        );
        raise(report.set_hint("COMMIT it."));
    }
}

/// Finds out what this is committed as.
fn look() {
    if *MOVING.borrow() != Moving::No {
        let look = || REGISTRY_SERVER.find().map(|source| source.as_owner(sites::sites)).transpose();
        let found = transaction::with_snapshot(look).unwrap_or_else(|error| raise(spi(&error)));
        let first = found.and_then(|sites| sites.into_iter().next());
        MOVING.replace(first.map_or(Moving::Yes, |site| Moving::To(site.seen.identity)));
    }
}

/// Must not fail.
fn forget() {
    CHANGED.set(false);
    if let (true, Some(leases)) = (MOVING.take() != Moving::No, leases()) {
        outdate(leases);
        end(leases);
    }
}

/// What the launcher has found out before does not count: it is to look what came of a change here.
fn outdate(leases: &Leases) {
    leases.requests.changed.store(server::database(), Release);
}

fn end(leases: &Leases) {
    leases.requests.changing.fetch_sub(1, AcqRel);
    lease::call(leases);
}

/// From now on the worker id that the server had chosen itself may be another node's. Must not fail: where the state cannot be
/// written, the launcher does this in time.
fn act() {
    if CHANGED.take() {
        registries::forget(server::database());
    }
    let moving = MOVING.take();
    let identity = match &moving {
        Moving::No => return,
        Moving::Yes => None,
        Moving::To(identity) => Some(identity.as_str()),
    };
    if let Some((shared, leases)) = shared().zip(leases()) {
        outdate(leases);
        let left = issuer::change(shared, |state, _| state.draw_from(server::database(), identity));
        if left.unwrap_or(false) {
            leases.requests.ask_to_renew();
        }
        end(leases);
    }
}
