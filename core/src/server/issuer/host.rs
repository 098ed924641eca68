//! The services that an issuer needs from the server. A process may end between any two calls.

use super::slot::Issuing;
use crate::clock::UnixMicros;
use crate::generator::rules::Rules;
use crate::server::clock_reference::Reading;
use crate::server::lease::Policy;
use crate::server::state::{DataDirectory, FileIdentity};
use std::io;
use std::ops::DerefMut;
use std::time::Duration;

/// Properties of the server's cluster.
#[derive(Clone, Copy, Debug)]
pub struct Cluster {
    /// The system identifier, which all copies of the cluster share.
    pub system_identifier: u64,
    /// The timeline that the cluster writes.
    pub timeline: u32,
    /// The commit time of the last transaction that recovery replayed, or a later time that a previous primary
    /// replicated.
    pub replayed: Option<UnixMicros>,
}

/// The settings that an issuer needs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The generator's largest drift and its sequence start.
    pub rules: Rules,
    /// The time by which a newly raised high-water mark is ahead of the clock.
    pub reserve: Duration,
    /// The largest step forward of the clock that ids follow.
    pub max_clock_jump: Duration,
    /// The largest allowed difference between two servers' clocks.
    pub max_clock_skew: Duration,
    /// The policy for choosing a worker id.
    pub policy: Policy,
}

/// The services that an issuer needs.
///
/// Among them are the state file and its *marker file*. A new state is written under a temporary name, synced, and renamed, so that
/// the state file has the old or the new content after a crash. The marker file only shows that the server once had a
/// state. A server with neither file has never issued an id. A server with only the marker file has lost its state.
///
/// All methods that fail return errors of the operating system.
pub trait Host {
    /// A state file that is being written under the temporary name.
    type NewFile;

    /// Returns the state file's content and the file's identity; None if there is no file.
    fn read(&self) -> io::Result<Option<(Vec<u8>, FileIdentity)>>;
    /// Returns true if the marker file exists.
    fn has_marker_file(&self) -> io::Result<bool>;
    /// Creates an empty file under the temporary name, and returns its identity.
    fn create(&self) -> io::Result<(Self::NewFile, FileIdentity)>;
    /// Writes the new file's content.
    fn fill(&self, file: &mut Self::NewFile, text: &str) -> io::Result<()>;
    /// Syncs the new file's content to disk.
    fn sync(&self, file: Self::NewFile) -> io::Result<()>;
    /// Renames the new file to the state file's name, and thereby replaces the old state file.
    fn rename(&self) -> io::Result<()>;
    /// Syncs the directory, and with it the new file's name.
    fn sync_directory(&self) -> io::Result<()>;
    /// Writes the marker file durably.
    fn marker_file(&self) -> io::Result<()>;
    /// Copies the state file, if it exists, to a new name beside earlier copies.
    fn keep_rejected(&self) -> io::Result<()>;
    /// Returns the data directory's identity.
    fn data_directory(&self) -> io::Result<DataDirectory>;

    /// Reads the machine's clocks.
    fn reading(&self) -> Reading;
    /// Takes the state lock, which is released when the result is dropped. Only one process of the server has the lock
    /// at a time. A process may have to wait long for the lock, because the lock's holder may be waiting for the disk.
    /// Therefore a query cancel ends the wait with a Postgres error.
    fn lock(&self) -> impl DerefMut<Target = Issuing>;
    /// Returns the server's cluster.
    fn cluster(&self) -> Cluster;
    /// Returns the current settings.
    fn settings(&self) -> Settings;
    /// Returns a random number, for a lease token.
    fn token(&self) -> i64;
    /// Returns the OID of the process's database.
    fn database(&self) -> u32;
    /// Shows in the status view the foreign server from which the worker id is leased. `server` is the foreign server's
    /// name, or empty if the worker id is not leased from another server. The caller holds the state lock.
    fn show_origin(&self, server: &str);
}
