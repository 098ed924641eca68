//! The first lease: for the transaction that creates the extension, and wants ids before it commits.
//!
//! No worker sees its tables before, so its session does what the lease worker does, with a row of its own transaction. Where
//! that is rolled back, so is the row, and the lease is given up: whatever registry there is next knows nothing of it.

use super::lease_worker::host::LeaseServer;
use crate::issuer::issuer;
use crate::lease;
use crate::pg::catalog::Source;
use crate::pg::process::PerProcess;
use crate::pg::transaction::{self, Hooks, Subtransaction};
use crate::pg::{database, server};
use crate::registry::serve;
use crate::settings;
use crate::shared::generator::Shared;
use crate::shared::leases::leases;
use crate::store::citus;
use crate::store::registry as sites;
use crate::store::tables::WORKER_LEASE;
use pgrx::spi::SpiError;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::lease_worker::{
    Doubt, LeaseLink, LeaseWorker, LinkError, Other, RegistryPlace,
};
use snowflake_ids_core::registry::wire::{LeaseError, Registry, RequestBody, Response, ResponseBody};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::Ordering::Release;

/// Where in the transaction the lease was taken, and the token of its row.
static TAKEN: PerProcess<Cell<Option<(Subtransaction, i64)>>> = PerProcess::new(Cell::new(None));

static HOOKS: Hooks = Hooks {
    committed: || TAKEN.set(None),
    ended: take_back,
    subtransaction_aborted: |aborted| {
        if TAKEN.get().is_some_and(|(at, _)| at == aborted) {
            take_back();
        }
    },
    subtransaction_committed: |committed, parent| {
        if let Some((_, token)) = TAKEN.get().filter(|(at, _)| *at == committed) {
            TAKEN.set(Some((parent, token)));
        }
    },
    ..Hooks::none()
};

/// Leases a worker id within this transaction, after the launcher has found the extension in no database, if it is this
/// transaction that creates it; whether there is a lease now.
pub fn take(shared: &'static Shared) -> bool {
    let Some(leases) = leases().filter(|_| lease::is_nowhere()) else { return false };
    if transaction::is_parallel() {
        return false;
    }
    let Some(source) = WORKER_LEASE.find().filter(|source| source.is_new()) else { return false };
    transaction::watch(&HOOKS);
    let host = LeaseServer { shared, leases };
    let outcome =
        LeaseWorker::new(issuer(shared), OwnTables(source), host, &leases.requests).look_after_now();
    if !matches!(outcome, Some(Ok(()))) {
        return false;
    }
    let token = issuer(shared).change(|state, _| state.lease.as_ref().map(|lease| lease.token));
    if let Ok(Some(token)) = token {
        TAKEN.set(Some((Subtransaction::current(), token)));
    }
    true
}

/// Has the launcher give the lease up. Must not fail.
fn take_back() {
    if let (Some((_, token)), Some(leases)) = (TAKEN.take(), leases()) {
        leases.requests.taken_back.store(token, Release);
        lease::call(leases);
    }
}

/// The tables of this transaction.
struct OwnTables(Source);

impl LeaseLink for OwnTables {
    type Error = FirstLeaseError;

    fn find(&mut self) -> Result<RegistryPlace, FirstLeaseError> {
        let name = settings::registry_database();
        if !name.is_empty() && database::of_name(&name) != Some(server::database()) {
            return Ok(RegistryPlace::Elsewhere);
        }
        // Other servers may have the worker id that this one would take.
        let uses =
            self.0.as_owner(|| Ok(sites::in_use()? || citus::is_worker()?)).map_err(FirstLeaseError)?;
        Ok(if uses { RegistryPlace::Nowhere } else { RegistryPlace::Here })
    }

    fn ask_own(&mut self, ask: RequestBody, now: UnixMicros) -> Result<ResponseBody, FirstLeaseError> {
        self.0.as_owner(|| serve::answer(ask, now)).map_err(FirstLeaseError)
    }

    fn ask_other(&mut self, _: &Other, _: RequestBody) -> Result<Response, FirstLeaseError> {
        Err(FirstLeaseError(SpiError::NoTupleTable))
    }

    fn has_just_failed(&self, _: &Other) -> bool {
        false
    }

    fn note_seen(&mut self, _: &Registry) -> Result<(), FirstLeaseError> {
        Ok(())
    }

    fn doubt(&self, _: &Other, _: Doubt) -> FirstLeaseError {
        FirstLeaseError(SpiError::NoTupleTable)
    }
}

/// A statement on the tables failed without an error of SQL, which would have ended the transaction.
#[derive(Debug)]
struct FirstLeaseError(SpiError);

impl LinkError for FirstLeaseError {
    fn is_conflict(&self) -> bool {
        false
    }

    fn explain(self) -> LeaseError {
        LeaseError::yet(format!("{self}."), "COMMIT, and try again.")
    }
}

impl fmt::Display for FirstLeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
