//! The lease worker's memory, its server, and its access to the registry.

use super::requests::LeaseRequests;
use crate::clock::UnixMicros;
use crate::registry::error::RegistryError;
use crate::registry::failover::Health;
use crate::registry::link::Endpoint;
use crate::registry::wire::{MAX_LEASE, RegistryName, RequestBody, Response};
use crate::server::issuer::Issuer;
use crate::server::issuer::{Compared, IssuerError};
use crate::server::lease::{Lease, LeaseError, Policy};
use std::time::Duration;

/// The server of a lease worker.
pub trait LeaseHost {
    /// Returns the time since the machine started, by a clock that cannot be set.
    fn uptime(&self) -> Duration;
    /// Returns the present settings.
    fn settings(&self) -> LeaseSettings;
    /// Returns the port that the server listens on.
    fn port(&self) -> Option<i32>;
    /// Returns the oid of the database that the worker is connected to.
    fn database(&self) -> u32;
    /// Finds the registry that this database uses. Fails only if a statement in this database fails.
    fn find(&mut self) -> Result<RegistryLocation, RegistryError>;
    /// Sends a request to a registry, and waits for the response. `endpoint` is None for this database's own registry,
    /// whose clock shows `now`. After an error, the registry may have served the request nevertheless.
    fn ask(
        &mut self,
        endpoint: Option<&Endpoint>,
        ask: RequestBody,
        now: UnixMicros,
    ) -> Result<Response, RegistryError>;
    /// Returns the last failure of the registry, and the number of failures.
    fn health(&self, endpoint: &Endpoint) -> Health;
    /// Records that a registry is on a later timeline or another fork than seen last.
    fn record_seen(&mut self, registry: &RegistryName) -> Result<(), RegistryError>;
    /// Records an event in the log and in shared memory.
    fn record(&mut self, event: LeaseEvent<'_>);
    /// Answers all requests up to this ticket.
    fn answer(&mut self, ticket: u64, outcome: Result<(), LeaseError>);
}

/// The location of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryLocation {
    /// This database, which leases worker ids to other servers.
    Here,
    /// A registry on another server.
    On(Endpoint),
    /// No registry: this database neither uses nor is a registry, or does not have the extension.
    Nowhere,
    /// The coordinator of this Citus cluster. This node does not use that registry yet.
    Unregistered,
}

/// The settings that leases depend on.
#[derive(Clone, Copy, Debug)]
pub struct LeaseSettings {
    /// The policy for the choice of a worker id.
    pub policy: Policy,
    /// The largest allowed difference between clocks.
    pub max_clock_skew: Duration,
    /// The length of a lease.
    pub duration: Duration,
}

impl LeaseSettings {
    /// Returns the length of the lease to request. A registry that several servers share grants a month at most.
    pub fn duration_of(&self, shared: bool) -> Duration {
        if shared { self.duration.min(MAX_LEASE) } else { self.duration }
    }
}

/// An event of a lease.
#[derive(Clone, Copy, Debug)]
pub enum LeaseEvent<'a> {
    /// The server leased another worker id than before.
    Switched,
    /// The lease was lost: another server, or a copy of this server, holds the lease.
    Lost(&'a Lease),
    /// The clock was compared with the clock of a registry on another server.
    Compared(&'a Compared),
    /// The previous worker id could not be given back. The fields are the worker id and the reason.
    NotReleased(u32, &'a str),
    /// The registry of this database could not be used. The field is the reason.
    Unreachable(&'a str),
}

/// The lease worker.
pub struct LeaseWorker<'a, S, H> {
    /// The server's state.
    pub state: Issuer<'a, S>,
    /// The server.
    pub host: H,
    /// The pending requests.
    pub requests: &'a LeaseRequests,
    /// The registry on another server; None if the registry is this database.
    pub(super) endpoint: Option<Endpoint>,
    /// The clock of the registry on another server, at its last response.
    pub(super) registry_clock: Option<UnixMicros>,
}

impl<'a, S, H> LeaseWorker<'a, S, H> {
    /// Returns a worker that has not looked for a registry yet.
    pub fn new(state: Issuer<'a, S>, host: H, requests: &'a LeaseRequests) -> Self {
        Self { state, host, requests, endpoint: None, registry_clock: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseStep {
    /// No work is left.
    Done,
    /// More work is left, or the state or a row has changed meanwhile.
    Again,
}

#[derive(Debug)]
pub(super) enum StepError {
    /// The registry gave no response, or a response that is not credible.
    Registry(RegistryError),
    /// No worker id is available, or the state cannot be read or written.
    None(LeaseError),
}

impl From<RegistryError> for StepError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(error)
    }
}

impl From<IssuerError> for StepError {
    fn from(error: IssuerError) -> Self {
        let hint = "Check snowflake_ids.status and the server's log.";
        Self::None(LeaseError::yet(format!("{error}."), hint))
    }
}
