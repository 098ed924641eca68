//! The services that an issuer needs from the server. A process may end between any two calls.

use super::slot::Issuing;
use super::state_file::StateStore;
use crate::clock::UnixMicros;
use crate::generator::rules::Rules;
use crate::registry::lease::Policy;
use crate::server::clock_reference::Reading;
use std::ops::DerefMut;
use std::time::Duration;

/// Properties of the server's cluster.
#[derive(Clone, Copy, Debug)]
pub struct Cluster {
    /// The system identifier, which all copies of the cluster share.
    pub system_identifier: u64,
    /// The timeline that the cluster writes.
    pub timeline: u32,
    /// The commit time of the last transaction that recovery replayed.
    pub replayed: Option<UnixMicros>,
}

/// The settings that an issuer needs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The limits of the generator.
    pub rules: Rules,
    /// The time beyond the clock to which the high-water mark is raised.
    pub reserve: Duration,
    /// The largest step forward of the clock that ids follow.
    pub max_clock_jump: Duration,
    /// The largest allowed difference between two servers' clocks.
    pub max_clock_skew: Duration,
    /// The policy for choosing a worker id.
    pub policy: Policy,
}

/// The services that an issuer needs.
pub trait Host: StateStore {
    /// Reads the machine's clocks.
    fn reading(&self) -> Reading;
    /// Takes the state lock, until the result is dropped. One process of the server has the lock at a time. The holder
    /// may be waiting for the disk, so a query cancel ends the wait with a Postgres error.
    fn lock(&self) -> impl DerefMut<Target = Issuing>;
    /// Returns the server's cluster.
    fn cluster(&self) -> Cluster;
    /// Returns the current settings.
    fn settings(&self) -> Settings;
    /// Returns a random number.
    fn token(&self) -> i64;
    /// Returns the OID of the process's database.
    fn database(&self) -> u32;
    /// Records the foreign server from which the worker id is leased; empty for this server. Called under the state lock.
    fn show_origin(&self, server: &str);
}
