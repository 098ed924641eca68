//! The tables of the worker's database.

use crate::registry::link::Site;
use crate::registry::wire;
use crate::sequence::directory::Tag;
use crate::sequence::reservation::{Reached, Reserved};
use crate::sequence::tag_rows::TagRows;

/// A database, to which a worker is connected.
pub trait Database {
    /// Its tables, within a transaction.
    type Tables: Tables;

    /// Runs a transaction, with the rights of the tables' owner, and commits it; where it fails, rolls it back. What it gives
    /// is durable.
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
    fn sites(&mut self) -> Result<Vec<Site>, Self::Error>;
    /// Returns whether this registry is one of them.
    fn is_used(&mut self, identity: &str) -> Result<bool, Self::Error>;
    /// Notes the timeline of a registry, where it is a later one.
    fn note_seen(&mut self, registry: &wire::RegistryName) -> Result<(), Self::Error>;
    /// Sees to it that what is received can be noted, to the end of the transaction: a session that changes which
    /// registries are in use has the table locked against that.
    fn lock_received(&mut self) -> Result<(), Self::Error>;
    /// Returns how far ids of a tag were received from a registry; None where none were.
    fn received(&mut self, identity: &str, tag: &Tag) -> Result<Option<Received>, Self::Error>;
    /// Notes how far ids of a tag were received from a registry, unless that has come further meanwhile: a column was
    /// attached. What was received is not handed out then.
    fn receive(&mut self, identity: &str, tag: &Tag, reserved: &Reserved) -> Result<(), Self::Error>;
    /// A tag in letters that all servers know; None where it has others.
    fn to_utf8(&mut self, tag: &Tag) -> Option<String>;
}

/// How far ids of a tag were received from a registry.
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
