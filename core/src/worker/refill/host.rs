//! The outside world of a refill worker, beside registries: its process and its tables.

use super::memory::{RefillSettings, SharedMemory};
use super::task::RefillTask;
use crate::registry::link::Endpoint;
use crate::registry::wire;
use crate::sequence::directory::Tag;
use crate::sequence::reservation::{Reached, Reserved, SavedRange};
use crate::sequence::slot::TagSlot;
use crate::sequence::tag_rows::TagRows;
use std::time::Duration;

/// The worker's process, and the memory that it shares with sessions.
pub trait RefillHost: SharedMemory {
    /// A tag's slot.
    type Slot: TagSlot;
    /// The tables of its database.
    type Database: Database;

    /// Its database.
    fn database(&self) -> &Self::Database;
    /// Returns what the settings say now.
    fn settings(&self) -> RefillSettings;
    /// The tags of its database with requests that have no answer.
    fn tasks(&self) -> Vec<RefillTask<'_, Self::Slot>>;
    /// Returns whether a registry of its database gave no answer last, and is to be asked again by now.
    fn has_registry_to_probe(&self) -> bool;
    /// Takes all places away from tags of a table that is gone.
    fn leave_table(&self, source: u32);

    /// Returns whether it is to leave after this round, as other databases wait for its slot.
    fn is_dismissed(&self) -> bool;
    /// Returns whether it should have left already.
    fn is_overdue(&self) -> bool;
    /// Returns whether databases wait for a slot: a worker with nothing to do leaves then.
    fn is_crowded(&self) -> bool;
    /// Notes that its turn was not in vain.
    fn record_served(&self);
    /// Sleeps where there was nothing to do since an instant of its uptime; false: it is to leave.
    fn rest(&self, last_work: Duration) -> bool;
    /// Sleeps until it is woken, and no longer than this.
    fn sleep(&self, limit: Duration);

    /// Shows for how many tags it reserves ids now.
    fn show_activity(&self, tags: usize);
    /// Tells the log, unless the same was said lately.
    fn say_once(&self, warning: String);
    /// A tag as messages show it.
    fn shown(&self, tag: &Tag) -> String;
}

/// Ids that were reserved when the server stopped and that no session got.
pub trait SavedRangeSource {
    /// Those of a tag.
    fn of(&self, source: u32, tag: &Tag) -> Option<SavedRange>;

    /// Notes what was taken up of it, whatever becomes of the rows: durable when this returns true. Else nothing of it may be
    /// handed out.
    fn take_up<'a>(&self, reserved: impl Iterator<Item = (u32, &'a Tag, &'a Reserved)>) -> bool;
}

/// A database, to which a worker is connected.
pub trait Database {
    /// Its tables, within a transaction.
    type Tables: Tables;

    /// Runs a transaction with the rights of the tables' owner, and commits it durably; rolls it back if it fails.
    ///
    /// # Errors
    /// Nothing was changed.
    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut Self::Tables) -> Result<T, <Self::Tables as TagRows>::Error>,
    ) -> Result<T, TransactionError>;
}

/// The tables of the extension in a transaction. Each call is a statement.
pub trait Tables: TagRows {
    /// Returns which table of tags there is; None: the extension was dropped, and nothing else may be called.
    fn source(&mut self) -> Option<u32>;
    /// Returns whether the ids come from registries on other servers.
    fn uses_registries(&mut self) -> Result<bool, Self::Error>;
    /// Returns whether this server belongs to a cluster whose nodes share a registry: ids of its own tables are
    /// others', too.
    fn is_clustered(&mut self) -> Result<bool, Self::Error>;
    /// Those registries, in their order.
    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Self::Error>;
    /// Returns whether this registry is one of them.
    fn is_used(&mut self, identity: &str) -> Result<bool, Self::Error>;
    /// Notes the timeline of a registry, where it is a later one.
    fn record_seen(&mut self, registry: &wire::RegistryName) -> Result<(), Self::Error>;
    /// Sees to it that what is received can be noted, to the end of the transaction: a session that changes which
    /// registries are in use has the table locked against that.
    fn lock_received(&mut self) -> Result<(), Self::Error>;
    /// Returns how far ids of a tag were received from a registry; None where none were.
    fn received(&mut self, identity: &str, tag: &Tag) -> Result<Option<Received>, Self::Error>;
    /// Notes how far ids of a tag were received from a registry, unless that has come further meanwhile: a column was
    /// attached. The received ids are not handed out then.
    fn receive(&mut self, identity: &str, tag: &Tag, reserved: &Reserved) -> Result<(), Self::Error>;
    /// A tag in letters that all servers know; None where it has others.
    fn to_utf8(&mut self, tag: &Tag) -> Option<String>;
}

/// The high-water mark of ids that were received from a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The period and the highest id.
    pub reached: Reached,
    /// The version of the registry's row since.
    pub version: i64,
}

/// Reason why a transaction failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionError {
    /// The SQLSTATE, as the server packs it.
    pub code: i32,
    /// The message, for the log.
    pub message: String,
    /// True if something was locked.
    pub is_lock_timeout: bool,
}
