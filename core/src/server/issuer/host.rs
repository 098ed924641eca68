//! The outside world of an issuer. A process may end between any two calls of these.

use super::slot::Issuing;
use crate::clock::UnixMicros;
use crate::generator::rules::Rules;
use crate::registry::lease::Policy;
use crate::server::clock_reference::Reading;
use crate::server::state::{DataDirectory, FileIdentity};
use std::io;
use std::ops::DerefMut;
use std::time::Duration;

/// The state's file. It is written whole under another name, synced, and renamed: whenever the machine fails, either the
/// old content or the new one is there. Beside it stands a *witness*, a file that only tells that there is a state. A
/// server without either has never issued an id; one that has the witness only has lost its state.
///
/// All methods give the errors of the system.
pub trait StateStore {
    /// A file that is being written under the other name.
    type NewFile;

    /// Returns what the state's file holds, and which file it is; None where there is none.
    fn read(&self) -> io::Result<Option<(Vec<u8>, FileIdentity)>>;
    /// Returns whether the witness is there.
    fn is_witnessed(&self) -> io::Result<bool>;
    /// Makes an empty file under the other name, and says which file it is.
    fn create(&self) -> io::Result<(Self::NewFile, FileIdentity)>;
    /// Writes the new file's content.
    fn fill(&self, file: &mut Self::NewFile, text: &str) -> io::Result<()>;
    /// Has the disk take the new file's content.
    fn sync(&self, file: Self::NewFile) -> io::Result<()>;
    /// Puts the new file in place of the old one.
    fn rename(&self) -> io::Result<()>;
    /// Has the disk take the new file's name.
    fn sync_directory(&self) -> io::Result<()>;
    /// Writes the witness, durably.
    fn marker_file(&self) -> io::Result<()>;
    /// Keeps a copy of the state's file, if there is one, beside those of before.
    fn keep_rejected(&self) -> io::Result<()>;
    /// The data directory, in which the file is.
    fn data_directory(&self) -> io::Result<DataDirectory>;
}

/// The cluster of the server, as far as it is known out of recovery.
#[derive(Clone, Copy, Debug)]
pub struct Cluster {
    /// The cluster's number, which all its copies share.
    pub system_identifier: u64,
    /// The timeline that it writes.
    pub timeline: u32,
    /// The time of the last commit that was replayed.
    pub replayed: Option<UnixMicros>,
}

/// The settings that an issuer needs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The limits of the generator.
    pub rules: Rules,
    /// The time beyond the clock to which the mark is raised.
    pub reserve: Duration,
    /// The largest step forward of the clock to be followed.
    pub max_clock_jump: Duration,
    /// The largest difference of two servers' clocks.
    pub max_clock_skew: Duration,
    /// The choice among worker ids.
    pub policy: Policy,
}

/// All that an issuer touches.
pub trait Host: StateStore {
    /// Returns what the machine's clocks show now.
    fn reading(&self) -> Reading;
    /// Takes the state lock, which one process of the server has at a time, until the result is dropped. Its holder may be
    /// waiting for the disk, so a cancelled call leaves by an error of the server's.
    fn lock(&self) -> impl DerefMut<Target = Issuing>;
    /// The cluster.
    fn cluster(&self) -> Cluster;
    /// The settings now.
    fn settings(&self) -> Settings;
    /// A random number.
    fn token(&self) -> i64;
    /// The database of the process, by its oid.
    fn database(&self) -> u32;
    /// Shows which server the worker id is leased from; empty: this one. Called under the state lock.
    fn show_origin(&self, server: &str);
}
