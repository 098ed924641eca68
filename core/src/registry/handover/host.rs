//! The tables and the registries of a hand-over.

use crate::clock::UnixMicros;
use crate::registry::client::{Network, RegistryClient, RegistryTransaction};
use crate::registry::error::{RegistryError, UnusableRegistry};
use crate::registry::link::Endpoint;
use crate::registry::wire::{ReceivedTag, RegistryName, RequestBody, Response};
use crate::tag::reservation::{HighWaterMark, Share, TagRow, Unfit};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::time::Duration;

/// The present row of a tag that was taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagStanding {
    /// The tag.
    pub tag: String,
    /// The difference between an id and the next id.
    pub increment: i64,
    /// The remainder of the ids modulo `increment`.
    pub remainder: i64,
    /// True if the tag restarts each day, month or year.
    pub dated: bool,
    /// True if the received row has another value of `dated`.
    pub dated_otherwise: bool,
}

impl TagStanding {
    /// Returns the reason why the row cannot be used for this share of a tag's ids. Returns None if the row can be
    /// used.
    pub(super) fn unfit_for(&self, share: Option<Share>) -> Option<Unfit> {
        let Self { increment, remainder, dated, .. } = *self;
        match share.filter(|share| !share.holds(increment, remainder)) {
            Some(share) => Some(Unfit::Share { share, increment, remainder }),
            None => self.dated_otherwise.then_some(Unfit::Period { dated }),
        }
    }
}

/// The tables of a hand-over: of a database that uses registries or begins to use them, and of the registry, whose table of
/// tags takes over the tags of another table. All calls are in one transaction.
pub trait HandoverTables {
    /// The error of a failed statement.
    type Error;

    /// Reads and locks the existing rows of these tags, ordered by tag. The locks last until the transaction ends.
    fn read_all(&mut self, tags: &BTreeSet<String>) -> Result<Vec<(String, TagRow)>, Self::Error>;
    /// Creates missing tags with this share, and raises tags whose row is lower. `rows` has one row for each tag, in
    /// JSON.
    fn put(&mut self, rows: &[&RawValue], share: Share) -> Result<(), Self::Error>;
    /// Returns this table's present state of the tags in `rows`, ordered by tag.
    fn standings(&mut self, rows: &[&RawValue]) -> Result<Vec<TagStanding>, Self::Error>;

    /// Prevents other sessions from reserving ids or recording received ids until the transaction ends.
    fn lock(&mut self) -> Result<(), Self::Error>;
    /// Prevents changes of the registries in use until the transaction ends. Several transactions can hold this lock at
    /// once.
    fn keep_endpoints(&mut self) -> Result<(), Self::Error>;
    /// Returns the registries in use, in order. The list is empty if this database is its own registry.
    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Self::Error>;
    /// Sets the registries in use.
    fn set_endpoints(&mut self, endpoints: &[Endpoint]) -> Result<(), Self::Error>;
    /// Returns rows of this database's own table of tags, in JSON and ordered by tag: one page of the tags after `after`.
    fn tags(&mut self, after: Option<&str>) -> Result<Vec<Box<RawValue>>, Self::Error>;
    /// Returns the highest received id of each tag, or of the tag `only`, ordered by tag. Each id comes with the
    /// identity of the registry that sent the id.
    fn received(&mut self, only: Option<&str>) -> Result<Vec<(String, ReceivedTag)>, Self::Error>;
    /// Records the highest id of each tag, as if it had been received from each registry in use.
    fn record_all(&mut self) -> Result<(), Self::Error>;
    /// Gives existing tags the definitions in `rows`, which has one row for each tag, in JSON.
    fn define(&mut self, rows: &[&RawValue]) -> Result<(), Self::Error>;
}

/// A server, one of whose databases begins or stops using registries.
pub trait NodeServer {
    /// The tables of that database.
    type Tables: HandoverTables;
    /// The reason why the database cannot begin or stop using registries.
    type Error: From<UnusableRegistry> + From<<Self::Tables as HandoverTables>::Error>;

    /// Returns the tables of the database.
    fn tables(&mut self) -> &mut Self::Tables;
    /// Returns the highest ids that rolled-back transactions of the database handed out.
    fn high_water_marks(&mut self) -> Result<Vec<RolledBackTag>, Self::Error>;
    /// Returns the database for which the server already leases its worker id from another registry than `identity`.
    /// Returns None if there is no such database.
    fn leases_for(&mut self, identity: &str) -> Result<Option<String>, Self::Error>;
    /// Gives back the worker id that was leased from a registry.
    fn give_up_lease(&mut self, endpoint: &Endpoint) -> Result<(), Self::Error>;
    /// Empties the tag buffers of this database, and makes the launcher check the worker id after the commit.
    /// `moves_lease` is true if the worker id is leased through this database after the commit.
    fn switch(&mut self, moves_lease: bool) -> Result<(), Self::Error>;
    /// Returns the identity of this database as a registry.
    fn identity(&mut self) -> Option<String>;
    /// Returns the layout that a registry must have; None if any layout will do.
    fn layout(&self) -> Option<String>;
    /// Returns the server's wall time.
    fn now(&self) -> UnixMicros;
    /// Returns the largest allowed difference between clocks.
    fn max_clock_skew(&self) -> Duration;
}

/// The highest id that rolled-back transactions handed out for a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolledBackTag {
    /// The tag.
    pub tag: String,
    /// The id, with the tag's generation when the id was handed out.
    pub high_water_mark: HighWaterMark,
    /// The tag's generation now. None if the tag does not exist any more.
    pub tag_generation: Option<i64>,
}

/// Registries on other servers.
pub struct Registries<N: Network> {
    client: RegistryClient<N>,
    limit: Duration,
}

impl<N: Network> Registries<N> {
    /// Returns registries that are reached through `network`. `limit` is the time limit of each response.
    pub fn new(network: N, limit: Duration) -> Self {
        Self { client: RegistryClient::new(network), limit }
    }

    /// Asks the registry of a foreign server, and fails if another registry than `seen` answers. After an error, the
    /// registry may have served the request nevertheless.
    pub fn ask(
        &mut self,
        server: &str,
        seen: Option<&RegistryName>,
        ask: RequestBody,
    ) -> Result<Response, UnusableRegistry> {
        self.client.ask_server(server, seen, ask, self.limit).map_err(|error| unusable(server, error))
    }

    /// Begins a transaction at each registry. If a registry is restored from a backup afterwards, the transaction at
    /// that registry fails.
    pub(super) fn begin<'s>(
        &mut self,
        endpoints: &'s [Endpoint],
    ) -> Result<Vec<Begun<'s, N>>, UnusableRegistry> {
        let begin = |endpoint: &'s Endpoint| match self.client.begin(endpoint, endpoints.len(), self.limit) {
            Ok(begun) => Ok((endpoint, begun)),
            Err(error) => Err(unusable(&endpoint.server, error)),
        };
        endpoints.iter().map(begin).collect()
    }
}

/// A registry, and the transaction that was begun there.
pub(super) type Begun<'s, N> = (&'s Endpoint, RegistryTransaction<N>);

pub(super) fn unusable(server: &str, error: impl Into<RegistryError>) -> UnusableRegistry {
    UnusableRegistry::Failed(server.to_owned(), error.into())
}
