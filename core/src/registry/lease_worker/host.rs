//! The server that a lease worker works for, with its way to the registry, and what the worker remembers.

use super::requests::LeaseRequests;
use crate::clock::UnixMicros;
use crate::registry::error::RegistryError;
use crate::registry::failover::Health;
use crate::registry::lease::{Lease, Policy};
use crate::registry::link::{Endpoint, Registry};
use crate::registry::wire::{LeaseError, MAX_LEASE, RegistryName};
use crate::server::issuer::Issuer;
use crate::server::issuer::{Compared, IssuerError};
use std::time::Duration;

/// The server that the lease worker works for.
pub trait LeaseHost {
    /// The time since the server's machine started, by a clock that cannot be stepped.
    fn uptime(&self) -> Duration;
    /// The settings as they are now.
    fn settings(&self) -> LeaseSettings;
    /// The port that the server listens on.
    fn port(&self) -> Option<i32>;
    /// The database that this worker is connected to, by its oid.
    fn database(&self) -> u32;
    /// Looks where the registry is; the error is one of this database.
    fn find(&mut self) -> Result<RegistryLocation, RegistryError>;
    /// The registry on another server, or that of this database, whose clock shows `now`.
    fn registry<'a>(&'a mut self, endpoint: Option<&'a Endpoint>, now: UnixMicros) -> Box<dyn Registry + 'a>;
    /// Returns when that registry failed last, and how often.
    fn health(&self, endpoint: &Endpoint) -> Health;
    /// Notes a registry that was promoted since it was seen.
    fn record_seen(&mut self, registry: &RegistryName) -> Result<(), RegistryError>;
    /// Notes an event, for the log and for the view.
    fn record(&mut self, event: LeaseEvent<'_>);
    /// Answers all callers up to this ticket.
    fn answer(&mut self, ticket: u64, outcome: Result<(), LeaseError>);
}

/// The place of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryLocation {
    /// This database, which leases worker ids to others.
    Here,
    /// A server that this database uses.
    On(Endpoint),
    /// None: this database neither draws from a registry nor is one, or has no extension.
    Nowhere,
    /// Another server, which this worker of a Citus cluster does not use yet.
    Unregistered,
}

/// The settings that leases depend on.
#[derive(Clone, Copy, Debug)]
pub struct LeaseSettings {
    /// The policy by which a worker id is chosen.
    pub policy: Policy,
    /// The limit of the difference between clocks.
    pub max_clock_skew: Duration,
    /// The length of a lease.
    pub duration: Duration,
}

impl LeaseSettings {
    /// The length of a lease; at most a month from a registry that servers share.
    pub fn duration_of(&self, shared: bool) -> Duration {
        if shared { self.duration.min(MAX_LEASE) } else { self.duration }
    }
}

/// An event in the life of a lease.
#[derive(Clone, Copy, Debug)]
pub enum LeaseEvent<'a> {
    /// Another worker id than before was leased.
    Switched,
    /// The lease is another server's now, or a copy's.
    Lost(&'a Lease),
    /// The clock was compared with that of a registry on another server.
    Compared(&'a Compared),
    /// The former worker id could not be given back, and why.
    NotReleased(u32, &'a str),
    /// The registry of this database could not be reached, and why.
    Unreachable(&'a str),
}

/// The lease worker.
pub struct LeaseWorker<'a, S, H> {
    /// The server's state.
    pub state: Issuer<'a, S>,
    /// The server.
    pub host: H,
    /// The requests that it serves.
    pub requests: &'a LeaseRequests,
    /// The registry that was found; None: this database.
    pub(super) endpoint: Option<Endpoint>,
    /// The clock of a registry on another server as it responded last.
    pub(super) registry_clock: Option<UnixMicros>,
}

impl<'a, S, H> LeaseWorker<'a, S, H> {
    /// A worker that has looked for no registry yet.
    pub fn new(state: Issuer<'a, S>, host: H, requests: &'a LeaseRequests) -> Self {
        Self { state, host, requests, endpoint: None, registry_clock: None }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseStep {
    /// There is nothing left to do.
    Done,
    /// There is more to do, or what was seen has changed.
    Again,
}

/// Reason why a step was in vain.
#[derive(Debug)]
pub(super) enum StepError {
    /// The registry gave no response, or none that can be believed.
    Registry(RegistryError),
    /// There is no worker id to be had, or the state cannot be read or written.
    None(LeaseError),
}

impl From<RegistryError> for StepError {
    fn from(error: RegistryError) -> Self {
        Self::Registry(error)
    }
}

impl From<IssuerError> for StepError {
    fn from(error: IssuerError) -> Self {
        let hint = "Look at snowflake_ids.status and at the server's log.";
        Self::None(LeaseError::yet(format!("{error}."), hint))
    }
}
