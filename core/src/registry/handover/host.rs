//! The tables and the registries that a hand-over touches.

use crate::clock::UnixMicros;
use crate::registry::client::{Network, RegistryClient, RegistryTransaction};
use crate::registry::error::{RegistryError, UnusableRegistry};
use crate::registry::link::Endpoint;
use crate::registry::wire::{ReceivedTag, RegistryName, RequestBody, Response};
use crate::sequence::reservation::{HighWaterMark, Share, Unfit};
use crate::sequence::tag_rows::StoredRow;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::time::Duration;

/// A table of tags that can take others over, within a transaction.
pub trait RegistryTags {
    /// Reason why a statement failed.
    type Error;

    /// Reads the rows of these tags that exist, in their order, and locks them to the end of the transaction.
    fn read_all(&mut self, tags: &BTreeSet<String>) -> Result<Vec<(String, StoredRow)>, Self::Error>;
    /// Makes tags of these rows, in JSON and one for each tag: missing ones with this share, and raises those that are
    /// behind.
    fn put(&mut self, rows: &[&RawValue], share: Share) -> Result<(), Self::Error>;
    /// Returns its tags beside these rows, in their order.
    fn standings(&mut self, rows: &[&RawValue]) -> Result<Vec<Standing>, Self::Error>;
}

/// A tag that was taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The tag.
    pub tag: String,
    /// From one of its ids to the next.
    pub increment: i64,
    /// The remainder of its ids when divided by that.
    pub remainder: i64,
    /// True if it starts over each day, month or year.
    pub dated: bool,
    /// True if the row that was handed over says otherwise.
    pub dated_otherwise: bool,
}

impl Standing {
    /// Returns the reason why its row must not be used as this share; None where it may.
    pub(super) fn unfit_for(&self, share: Option<Share>) -> Option<Unfit> {
        let Self { increment, remainder, dated, .. } = *self;
        match share.filter(|share| !share.holds(increment, remainder)) {
            Some(share) => Some(Unfit::Share { share, increment, remainder }),
            None => self.dated_otherwise.then_some(Unfit::Period { dated }),
        }
    }
}

/// The tables of a database that uses registries, or is to. All calls are of one transaction.
pub trait NodeTables: RegistryTags<Error: From<UnusableRegistry>> {
    /// Keeps others from reserving ids, and from noting received ones, until the transaction ends: comparisons stay true.
    fn lock(&mut self) -> Result<(), Self::Error>;
    /// Keeps the registries in use the same until the transaction ends. Several transactions may do this at once.
    fn keep_endpoints(&mut self) -> Result<(), Self::Error>;
    /// The registries in use, in their order; none where this database is its own.
    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Self::Error>;
    /// Makes these the registries in use.
    fn set_endpoints(&mut self, endpoints: &[Endpoint]) -> Result<(), Self::Error>;
    /// The rows of this database's own table of tags in their order, in JSON: those after a tag, and as many as an answer
    /// takes.
    fn tags(&mut self, after: Option<&str>) -> Result<Vec<Box<RawValue>>, Self::Error>;
    /// The tags that were received, in their order, or this one alone: each with the identity of the registry.
    fn received(&mut self, only: Option<&str>) -> Result<Vec<(String, ReceivedTag)>, Self::Error>;
    /// The highest ids of transactions here that were rolled back.
    fn high_water_marks(&mut self) -> Result<Vec<RolledBackTag>, Self::Error>;
    /// Notes the highest id of each tag as received, for all registries in use.
    fn record_all(&mut self) -> Result<(), Self::Error>;
    /// Gives existing tags the definitions of these rows, in JSON: one row for each tag.
    fn define(&mut self, rows: &[&RawValue]) -> Result<(), Self::Error>;
    /// The database for which this server leases its worker id from another registry than the one of this identity, where it
    /// would be leased from that one from now on.
    fn leases_for(&mut self, identity: &str) -> Result<Option<String>, Self::Error>;
    /// Gives the worker id back that was leased from a registry.
    fn give_up_lease(&mut self, endpoint: &Endpoint) -> Result<(), Self::Error>;
    /// Empties the buffers, and has the worker id looked after when this is committed; from here, if `moves_lease`.
    fn switch(&mut self, moves_lease: bool) -> Result<(), Self::Error>;
    /// The identity of this database as a registry.
    fn identity(&mut self) -> Option<String>;
    /// The clock here.
    fn now(&self) -> UnixMicros;
    /// The limit of the difference between clocks.
    fn max_clock_skew(&self) -> Duration;
}

/// The highest id of a transaction that was rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolledBackTag {
    /// The tag.
    pub tag: String,
    /// The id, and the tag's generation then.
    pub high_water_mark: HighWaterMark,
    /// The tag's generation now; None where it is gone.
    pub tag_generation: Option<i64>,
}

/// Registries on other servers.
pub struct Registries<N: Network> {
    client: RegistryClient<N>,
    limit: Duration,
}

impl<N: Network> Registries<N> {
    /// Registries that are reached by this network, and whose responses are waited for so long.
    pub fn new(network: N, limit: Duration) -> Self {
        Self { client: RegistryClient::new(network), limit }
    }

    /// Asks the registry of a foreign server: `seen`, if that is given. After an error the request may have been served all the
    /// same.
    pub fn ask(
        &mut self,
        server: &str,
        seen: Option<&RegistryName>,
        ask: RequestBody,
    ) -> Result<Response, UnusableRegistry> {
        self.client.ask_server(server, seen, ask, self.limit).map_err(|error| unusable(server, error))
    }

    /// Begins a transaction at each registry. One that is set back from then on ends it.
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

/// A transaction at a registry.
pub(super) type Begun<'s, N> = (&'s Endpoint, RegistryTransaction<N>);

/// The error of the registry of a foreign server.
pub(super) fn unusable(server: &str, error: impl Into<RegistryError>) -> UnusableRegistry {
    UnusableRegistry::Failed(server.to_owned(), error.into())
}
