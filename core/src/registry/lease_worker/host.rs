//! The outside world of a lease worker: its server, and the registry.

use super::error::LinkError;
use crate::clock::UnixMicros;
use crate::registry::lease::{Lease, Policy};
use crate::registry::wire::{LeaseError, MAX_LEASE, Registry, RequestBody, Response, ResponseBody};
use crate::server::issuer::Compared;
use std::time::Duration;

/// The way to the registry.
pub trait LeaseLink {
    /// Reason why there is no answer.
    type Error: LinkError;

    /// Looks where the registry is.
    fn find(&mut self) -> Result<RegistryPlace, Self::Error>;

    /// Asks the registry that is this database, in a transaction. `now` is its clock.
    ///
    /// # Errors
    /// The transaction failed, and nothing was done; or whether it was is not known.
    fn ask_own(&mut self, ask: RequestBody, now: UnixMicros) -> Result<ResponseBody, Self::Error>;

    /// Asks a registry on another server.
    ///
    /// # Errors
    /// There is no answer; whether the request was served is not known.
    fn ask_other(&mut self, other: &Other, ask: RequestBody) -> Result<Response, Self::Error>;

    /// Returns whether that registry has given no answer just before: to ask it again would cost the whole time limit.
    fn has_just_failed(&self, other: &Other) -> bool;

    /// Notes which registry answered, where it was promoted since.
    fn note_seen(&mut self, registry: &Registry) -> Result<(), Self::Error>;

    /// An answer of another server that is not believed, or none because it has just failed.
    fn doubt(&self, other: &Other, doubt: Doubt) -> Self::Error;
}

/// Where the registry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryPlace {
    /// In this database, which leases worker ids to others.
    Here,
    /// On a server that this database uses.
    On(Other),
    /// Nowhere: this database neither draws from a registry nor is one, or has no extension.
    Nowhere,
}

/// A registry on another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// What this server calls it.
    pub server: String,
    /// Which registry it was when it was seen last.
    pub seen: Registry,
}

/// Why another server is not believed, or not asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It gave no answer just before.
    JustFailed,
    /// Its clock differs from this server's by so much.
    Clocks(Duration),
    /// What it says makes no sense.
    Garbled(String),
}

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

    /// Notes what has happened, for the log and for the view.
    fn note(&mut self, event: LeaseEvent<'_>);

    /// Answers all callers up to this ticket.
    fn answer(&mut self, ticket: u64, outcome: Result<(), LeaseError>);
}

/// The settings that leases depend on.
#[derive(Clone, Copy, Debug)]
pub struct LeaseSettings {
    /// Which worker id to take.
    pub policy: Policy,
    /// How far clocks may differ.
    pub max_clock_skew: Duration,
    /// For how long ids are leased.
    pub duration: Duration,
}

impl LeaseSettings {
    /// For how long ids are leased; a registry that servers share does so for a month at most.
    pub fn duration_of(&self, shared: bool) -> Duration {
        if shared { self.duration.min(MAX_LEASE) } else { self.duration }
    }
}

/// What the lease worker has to tell.
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
}
