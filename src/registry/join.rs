//! The transaction in which this database begins to use registries, or stops using them.

use super::call::others;
use crate::lease;
use crate::pg::per_process::PerProcess;
use crate::pg::report::{raise, report, spi};
use crate::pg::transaction::{self, Hooks};
use crate::pg::{database, server};
use crate::registry::serve::RegistryFailure;
use crate::shared::generator::{SHARED, Shared};
use crate::shared::leases::{LEASES, Leases};
use crate::shared::registries;
use crate::store::citus;
use crate::store::registry as endpoints;
use crate::store::tables::{REGISTRY_SERVER, WORKER_LEASE};
use crate::tag::slot;
use crate::{issuer, settings};
use snowflake_ids_core::clock::human;
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::wire::{self, RequestBody};
use snowflake_ids_core::server::issuer::IssuerError;
use snowflake_ids_core::server::lease::Lease;
use snowflake_ids_core::server::state::{Identity, State};
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

/// Gives back the worker id that this server leased from a registry through this database. If the registry cannot be
/// reached, the worker id becomes free when the lease expires. If the transaction is rolled back, the server leases a worker
/// id again.
pub fn give_up_lease(endpoint: &Endpoint) -> Result<(), IssuerError> {
    // The server may hold its lease through another database of this server.
    let Some(shared) = SHARED.get().filter(|shared| shared.status.registry() == Some(server::database()))
    else {
        return Ok(());
    };
    let given_up = issuer::change(shared, |state, _| state.leave_registry(&endpoint.seen.identity))?;
    let Some((lease, pending_token)) = given_up else { return Ok(()) };
    // The change above has ended the term, so the term's high-water mark is exact.
    let from = issuer::change(shared, |state, _| state.end_of(&lease))?;
    let Lease { datacenter, worker_id, .. } = lease;
    let mut there = others();
    // A renewal may have failed halfway, so the worker id's row in the registry may have either token.
    let released = [Some(lease.token), pending_token].into_iter().flatten().try_for_each(|token| {
        let release = RequestBody::Release { datacenter, worker_id, token, from };
        there.ask(&endpoint.server, Some(&endpoint.seen), release).map(drop)
    });
    match released {
        Ok(()) => issuer::change(shared, |state, _| state.former = None)?,
        Err(error) => {
            pgrx::notice!(
                "worker id {worker_id} stays leased until {}: {}",
                lease.expiry,
                report(error).message()
            );
        }
    }
    Ok(())
}

/// Returns the other database of this server through which the server leases, or will lease, its worker id. Returns None
/// without such a database, or if that database's registry has this identity.
pub fn leases_for(identity: &str) -> Result<Option<String>, IssuerError> {
    let Some(shared) = SHARED.get().filter(|shared| may_choose(shared)) else { return Ok(None) };
    if let Some(leases) = LEASES.get() {
        watch_change(leases);
    }
    let join = |state: &mut State| state.source.move_by(server::database(), Some(identity));
    let held = issuer::change(shared, |state, _| {
        let held = state.held_for(server::database(), identity);
        if held.is_none() {
            join(state);
        }
        held
    })?;
    let held = held.map(database::name);
    if held == Some(None) {
        // That database was dropped meanwhile, and a dropped database needs no worker id.
        issuer::change(shared, |state, _| join(state))?;
    }
    Ok(held.flatten())
}

/// Empties this database's buffers. Earlier reservations cannot fill the buffers again, because the caller's locks block
/// refills. After the commit, a hook clears the status of the former registries.
pub fn switch(moves_lease: bool) {
    slot::leave_all(server::database(), None);
    transaction::watch(&HOOKS);
    CHANGED.set(true);
    if moves_lease && settings::lease_duration() > wire::MAX_LEASE {
        pgrx::notice!(
            "worker ids are leased for at most {}, although snowflake_ids.lease_duration is {}",
            human(wire::MAX_LEASE),
            human(settings::lease_duration())
        );
    }
}

/// Returns whether this server chooses its worker id itself.
pub fn is_alone() -> bool {
    SHARED.get().is_some_and(|shared| shared.status.alone.load(Relaxed))
}

/// Records that this transaction changes this database's use of registries, or the database's own service as a registry. The
/// launcher reads the database again after the transaction has ended. After a crash, the launcher finds the change in the
/// state file.
pub fn record_change() -> Result<(), IssuerError> {
    let Some((shared, leases)) = SHARED.get().zip(LEASES.get()).filter(|_| !server::in_recovery()) else {
        return Ok(());
    };
    if !may_choose(shared) {
        return Ok(());
    }
    watch_change(leases);
    issuer::change(shared, |state, _| state.source.move_by(server::database(), None))
}

fn watch_change(leases: &Leases) {
    transaction::watch(&HOOKS);
    if *MOVING.borrow() == Moving::No {
        MOVING.replace(Moving::Yes);
        leases.requests.changing.fetch_add(1, AcqRel);
    }
}

/// Returns whether this session has checked the source of the worker id.
#[inline]
pub fn has_looked() -> bool {
    HAS_LOOKED.get()
}

/// Calls [`leave_alone`] before the first id of a session.
#[inline]
pub fn leave_alone_first(shared: &Shared) -> Result<(), IssuerError> {
    if has_looked() {
        return Ok(());
    }
    leave_alone(shared)?;
    // If the database has Citus and the server has no lease, the session checks again before its next id.
    HAS_LOOKED.set(!may_choose(shared) || shared.status.expiry().is_some() || !citus::is_there());
    Ok(())
}

/// Gives up a worker id that the server chose itself, if this database is on a worker of a Citus cluster. The cluster's
/// nodes lease worker ids from one registry. The hooks below do not suffice: the server may have joined the cluster in a
/// prepared transaction, whose commit runs no hooks.
pub fn leave_alone(shared: &Shared) -> Result<(), IssuerError> {
    if !has_chosen(shared) || transaction::is_parallel() || !citus::is_there() {
        return Ok(());
    }
    let is_node = WORKER_LEASE.find().map(|source| source.as_owner(citus::is_worker)).transpose();
    if !is_node.unwrap_or_else(|error| raise(spi(error))).unwrap_or(false) {
        return Ok(());
    }
    if let Some(leases) = LEASES.get() {
        outdate(leases);
    }
    issuer::change(shared, |state, _| state.leave_alone(server::database()))
}

fn has_chosen(shared: &Shared) -> bool {
    may_choose(shared) && (is_alone() || shared.is_issuing() && shared.status.expiry().is_none())
}

/// Returns false if the administrator has set the worker id.
fn may_choose(shared: &Shared) -> bool {
    matches!(shared.identity, Identity::Leased { .. })
}

static HOOKS: Hooks = Hooks {
    before_commit: look,
    before_prepare: || {
        // Citus creates the extension on a new worker in a prepared transaction. Sessions on that worker check later whether
        // the server belongs to a cluster.
        if CHANGED.get() || *MOVING.borrow() != Moving::No {
            WORKER_LEASE.refuse_to_prepare(RegistryFailure::Prepared);
        }
    },
    committed: act,
    ended: forget,
    ..Hooks::none()
};

/// The effect of this transaction on the source of the server's worker id.
#[derive(Default, PartialEq, Eq)]
enum Moving {
    #[default]
    No,
    Yes,
    /// The identity of the registry that this database uses from the commit on. Read just before the commit.
    To(String),
}

/// True if the session has checked the source of the worker id.
static HAS_LOOKED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
static MOVING: PerProcess<RefCell<Moving>> = PerProcess::new(RefCell::new(Moving::No));
/// True if this transaction changes the registries that this database uses.
static CHANGED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// Reads the first registry that this database uses. Runs just before the commit.
fn look() {
    if *MOVING.borrow() != Moving::No {
        let look = || REGISTRY_SERVER.find().map(|source| source.as_owner(endpoints::endpoints)).transpose();
        let found = transaction::with_snapshot(look).unwrap_or_else(|error| raise(spi(error)));
        let first = found.and_then(|endpoints| endpoints.into_iter().next());
        MOVING.replace(first.map_or(Moving::Yes, |endpoint| Moving::To(endpoint.seen.identity)));
    }
}

/// Runs after a rollback: this transaction no longer counts as changing registries, and the launcher must read the database
/// again. Must not fail.
fn forget() {
    CHANGED.set(false);
    if let (true, Some(leases)) = (MOVING.take() != Moving::No, LEASES.get()) {
        outdate(leases);
        end(leases);
    }
}

/// Makes the launcher read this database again.
fn outdate(leases: &Leases) {
    leases.requests.changed.store(server::database(), Release);
}

fn end(leases: &Leases) {
    leases.requests.changing.fetch_sub(1, AcqRel);
    lease::call(leases);
}

/// Carries out the change after the commit. Gives up a worker id that the server chose itself, because the registry may now
/// lease that worker id to another node. Must not fail: if the state file cannot be written, the launcher tries again.
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
    if let Some((shared, leases)) = SHARED.get().zip(LEASES.get()) {
        outdate(leases);
        let left = issuer::change(shared, |state, _| state.draw_from(server::database(), identity));
        if left.unwrap_or(false) {
            leases.requests.ask_to_renew();
        }
        end(leases);
    }
}
