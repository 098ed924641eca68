//! The refill worker's process and tables.

use super::memory::{RefillSettings, SharedMemory};
use super::task::RefillTask;
use crate::registry::error::SqlError;
use crate::registry::link::Endpoint;
use crate::registry::wire;
use crate::tag::directory::Tag;
use crate::tag::reservation::{Reached, Reserved};
use crate::tag::slot::TagSlot;
use crate::tag::tag_rows::TagRows;
use std::time::Duration;

/// The worker's process, and the memory that it shares with sessions.
pub trait RefillHost: SharedMemory {
    /// The slot of a tag.
    type Slot: TagSlot;
    /// The tables of the worker's database, within a transaction.
    type Tables: Tables;

    /// Runs a transaction with the rights of the tables' owner, and commits it durably. Rolls back if `work` fails.
    ///
    /// # Errors
    /// The transaction was rolled back.
    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut Self::Tables) -> Result<T, <Self::Tables as TagRows>::Error>,
    ) -> Result<T, SqlError>;
    /// Returns the present settings.
    fn settings(&self) -> RefillSettings;
    /// Returns the tags of the worker's database that have unanswered requests.
    fn tasks(&self) -> Vec<RefillTask<'_, Self::Slot>>;
    /// Returns whether a failed registry of the database is due for a retry.
    fn has_registry_to_probe(&self) -> bool;
    /// Frees the slots of all tags of a dropped table of tags.
    fn leave_table(&self, source: u32);

    /// Returns whether the worker has to exit after this round, because other databases wait for its slot.
    fn is_dismissed(&self) -> bool;
    /// Returns whether the worker's time limit to exit has passed.
    fn is_overdue(&self) -> bool;
    /// Returns whether databases wait for a slot. An idle worker then exits.
    fn is_crowded(&self) -> bool;
    /// Records that the time slice was successful.
    fn record_served(&self);
    /// Sleeps while there is nothing to do. `last_work` is the uptime of the last work. Returns false if the worker has
    /// to exit.
    fn rest(&self, last_work: Duration) -> bool;
    /// Sleeps until woken, at most for `limit`.
    fn sleep(&self, limit: Duration);

    /// Requests a renewal of the worker id's lease, if another server leases it. A registry that was promoted may have lost the
    /// lease.
    fn renew_lease(&self);
    /// Shows in `pg_stat_activity` the number of tags that the worker serves.
    fn show_activity(&self, tags: usize);
    /// Logs a warning, but not if the same warning was logged recently.
    fn say_once(&self, warning: String);
    /// Returns a tag as text for messages.
    fn shown(&self, tag: &Tag) -> String;
}

/// The tables of the extension, within a transaction. Each call is a statement.
pub trait Tables: TagRows {
    /// Returns the OID of the table of tags; None if the extension was dropped. After None, no other method may be
    /// called.
    fn source(&mut self) -> Option<u32>;
    /// Returns whether this server is in a cluster whose nodes share a registry. Other nodes may then issue the same ids as
    /// this database's own table.
    fn is_clustered(&mut self) -> Result<bool, Self::Error>;
    /// Returns the registries in use, in order. The list is empty if the database is its own registry.
    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Self::Error>;
    /// Records the timeline and the fork of a registry if they are news: see [`wire::RegistryName::after`].
    fn record_seen(&mut self, registry: &wire::RegistryName) -> Result<(), Self::Error>;
    /// Locks the table of received ids until the transaction ends. Fails after a timeout if a session that changes the
    /// registries in use has locked the table.
    fn lock_received(&mut self) -> Result<(), Self::Error>;
    /// Returns the highest id that a registry has sent for a tag; None if this server received no id.
    fn received(&mut self, identity: &str, tag: &Tag) -> Result<Option<Received>, Self::Error>;
    /// Records the highest id that a registry has sent for a tag. Records nothing if a session that attached a column
    /// has already recorded a higher id. The received ids are then not handed out.
    fn receive(&mut self, identity: &str, tag: &Tag, reserved: &Reserved) -> Result<(), Self::Error>;
    /// Returns a tag in UTF-8. Returns None if the conversion fails.
    fn to_utf8(&mut self, tag: &Tag) -> Option<String>;
}

/// The highest id that was received from a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The period and the highest id.
    pub reached: Reached,
    /// The version of the registry's row after that reservation.
    pub version: i64,
}
