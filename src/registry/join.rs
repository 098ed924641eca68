//! Changes at the moment when this database begins to use registries, or ends it.

use super::call::others;
use crate::lease;
use crate::pg::catalog::Source;
use crate::pg::process::PerProcess;
use crate::pg::report::{raise, report, spi};
use crate::pg::transaction::{self, Hooks};
use crate::pg::{database, server};
use crate::segment::slot;
use crate::shared::generator::{Shared, shared};
use crate::shared::leases::{Leases, leases};
use crate::shared::registries;
use crate::store::citus;
use crate::store::registry as endpoints;
use crate::store::tables::{REGISTRY_SERVER, WORKER_LEASE};
use crate::{issuer, settings};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::clock::human;
use snowflake_ids_core::registry::lease::Lease;
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::wire::{self, RequestBody};
use snowflake_ids_core::server::issuer::IssuerError;
use snowflake_ids_core::server::state::Identity;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

/// Gives the worker id back that this server leased from a registry, as this database has it. Should that fail, it is free
/// when its expiry has passed. Should the transaction be rolled back, one is leased again.
pub fn give_up_lease(endpoint: &Endpoint) -> Result<(), IssuerError> {
    // Another database may be the one that leases it.
    let Some(shared) = shared().filter(|shared| shared.status.registry() == Some(server::database())) else {
        return Ok(());
    };
    let given_up = issuer::change(shared, |state, _| state.leave_registry(&endpoint.seen.identity))?;
    let Some((lease, pending_token)) = given_up else { return Ok(()) };
    // Ended by now: its mark is exact.
    let from = issuer::change(shared, |state, _| state.end_of(&lease))?;
    let Lease { datacenter, worker, .. } = lease;
    let mut there = others();
    // By one of these tokens the row is known, if a renewal is on its way.
    let released = [Some(lease.token), pending_token].into_iter().flatten().try_for_each(|token| {
        let release = RequestBody::Release { datacenter, worker, token, from };
        there.ask(&endpoint.server, Some(&endpoint.seen), release).map(drop)
    });
    match released {
        Ok(()) => issuer::change(shared, |state, _| state.former = None)?,
        Err(error) => {
            pgrx::notice!(
                "worker id {worker} stays leased until {}: {}",
                lease.expiry,
                report(&error).message()
            );
        }
    }
    Ok(())
}

/// The database for which this server leases its worker id from another registry than the one of this identity, where it would
/// be leased from that one from now on.
pub fn leases_for(identity: &str) -> Result<Option<String>, IssuerError> {
    let Some(shared) = shared().filter(|shared| may_choose(shared)) else { return Ok(None) };
    let held = issuer::change(shared, |state, _| {
        let held = state.held_for(server::database(), identity);
        if held.is_none() {
            state.moving_with = Some(identity.to_owned());
        }
        held
    })?;
    // One that was dropped meanwhile needs no worker id.
    Ok(held.and_then(database::name))
}

/// Empties the buffers of this database, now and when this is committed: ids that were reserved before cannot be published any
/// more, as the caller's locks hold refills up.
pub fn switch(moves_lease: bool) {
    slot::leave_all(server::database(), None);
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
    shared().is_some_and(|shared| shared.status.alone.load(Relaxed))
}

/// Notes that this transaction has this database draw from a registry, or be one, or end that: the launcher looks when it has
/// ended. Should the server end before, the state tells.
pub fn record_change() -> Result<(), IssuerError> {
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
}

/// Returns whether this session knows the place that the worker id is from.
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
    // A node that has no lease yet looks again with the next id.
    HAS_LOOKED.set(!may_choose(shared) || shared.status.expiry().is_some() || !citus::is_there());
    Ok(())
}

/// Gives up a worker id that the server chose itself, if this database is of a node of a Citus cluster, whose nodes lease theirs
/// from one registry. It may have joined by a transaction that was prepared.
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
    may_choose(shared) && (is_alone() || shared.is_issuing() && shared.status.expiry().is_none())
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

/// A change of the database by way of which worker ids are leased, by this transaction.
#[derive(Default, PartialEq, Eq)]
enum Moving {
    #[default]
    No,
    Yes,
    /// As it commits: this one draws from the registry of this identity.
    To(String),
}

/// True if the session knows the place that the worker id is from.
static HAS_LOOKED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
static MOVING: PerProcess<RefCell<Moving>> = PerProcess::new(RefCell::new(Moving::No));
/// True if it changes what registries this database uses.
static CHANGED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// Another session may commit it, and would not do the rest. Citus prepares the transaction in which a new worker gets the
/// extension: sessions find out that the worker belongs to a cluster.
fn refuse_to_prepare() {
    if (CHANGED.get() || *MOVING.borrow() != Moving::No) && !WORKER_LEASE.find().is_some_and(Source::is_new) {
        let report = ErrorReport::new(
            Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            "cannot PREPARE a transaction that has changed the registry",
            function_name!(),
        );
        raise(report.set_hint("Run it again, and end it with COMMIT."));
    }
}

/// Reads the registry that this database uses as the transaction commits.
fn look() {
    if *MOVING.borrow() != Moving::No {
        let look = || REGISTRY_SERVER.find().map(|source| source.as_owner(endpoints::endpoints)).transpose();
        let found = transaction::with_snapshot(look).unwrap_or_else(|error| raise(spi(&error)));
        let first = found.and_then(|endpoints| endpoints.into_iter().next());
        MOVING.replace(first.map_or(Moving::Yes, |endpoint| Moving::To(endpoint.seen.identity)));
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

/// Has the launcher look at this database anew.
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
