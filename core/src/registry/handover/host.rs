//! The outside world of a hand-over: the tables of the database here, and the registries.

use super::error::HandoverError;
use super::take_over::RegistryTags;
use crate::clock::UnixMicros;
use crate::registry::link::Site;
use crate::registry::wire::{ReceivedTag, Registry, RequestBody, Response};
use crate::sequence::reservation::{Floor, Reached};
use serde_json::value::RawValue;
use std::time::Duration;

/// The tables of a database that uses registries, or is to. All calls are of one transaction.
pub trait NodeTables: RegistryTags {
    /// Sees to it that nothing can be reserved here, nor noted as received, until the transaction ends: what is compared
    /// stays true.
    fn lock(&mut self) -> Result<(), Self::Error>;
    /// Has the registries in use stay the same until the transaction ends: of others that do this, none has to wait.
    fn keep_sites(&mut self) -> Result<(), Self::Error>;
    /// The registries in use, in their order; none where this database is its own.
    fn sites(&mut self) -> Result<Vec<Site>, Self::Error>;
    /// Has these be the registries in use.
    fn set_sites(&mut self, sites: &[Site]) -> Result<(), Self::Error>;
    /// The rows of this database's own table of tags in their order, in JSON: those after a tag, and as many as an answer
    /// takes.
    fn tags(&mut self, after: Option<&str>) -> Result<Vec<Box<RawValue>>, Self::Error>;
    /// The tags that were received, in their order: each with the identity of the registry, and how far.
    fn received(&mut self) -> Result<Vec<(String, ReceivedTag)>, Self::Error>;
    /// Returns how far a tag was received from the registry of this identity; None where it was not.
    fn received_of(&mut self, identity: &str, tag: &str) -> Result<Option<Reached>, Self::Error>;
    /// Returns how far transactions came here that were rolled back.
    fn floors(&mut self) -> Result<Vec<NotedFloor>, Self::Error>;
    /// Notes, for all registries in use, how far each tag has come: as if that was received.
    fn note_all(&mut self) -> Result<(), Self::Error>;
    /// Gives tags that there are the definitions of these rows, in JSON: one row for each tag.
    fn define(&mut self, rows: &[&RawValue]) -> Result<(), Self::Error>;
    /// The database for which this server leases its worker id from another registry than the one of this identity, where it
    /// would be leased from that one from now on.
    fn leases_for(&mut self, identity: &str) -> Result<Option<String>, Self::Error>;
    /// Gives the worker id back that was leased from a registry.
    fn give_up_lease(&mut self, site: &Site) -> Result<(), Self::Error>;
    /// Takes away what is in the buffers, and has the worker id looked after when this is committed; from here, if
    /// `moves_lease`.
    fn switch(&mut self, moves_lease: bool) -> Result<(), Self::Error>;
    /// This database as a registry.
    fn identity(&mut self) -> Option<String>;
    /// The clock here.
    fn now(&self) -> UnixMicros;
    /// Returns how far clocks may differ.
    fn max_clock_skew(&self) -> Duration;
}

/// How far a transaction came that was rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedFloor {
    /// The tag.
    pub tag: String,
    /// How far, and in which of its lives.
    pub floor: Floor,
    /// The life that the tag is in now; None where it is gone.
    pub life: Option<i64>,
}

/// Registries on other servers.
pub trait Registries {
    /// Reason why there is no answer.
    type Error;
    /// A transaction at one of them. Unless it is committed, it ends with this.
    type Block;

    /// Asks the registry of a foreign server; `seen` says which one is meant.
    fn ask(
        &mut self,
        server: &str,
        seen: Option<&Registry>,
        ask: RequestBody,
    ) -> Result<Response, Self::Error>;
    /// Begins a transaction at a registry in use, which is one of so many that are asked by turns.
    fn begin(&mut self, site: &Site, of: usize) -> Result<Self::Block, Self::Error>;
    /// Asks within a transaction: what is answered is not durable yet.
    ///
    /// # Errors
    /// Why there is no answer; the transaction is of no use then.
    fn ask_in(&mut self, block: &mut Self::Block, ask: RequestBody) -> Result<Response, Self::Error>;
    /// Makes it durable.
    ///
    /// # Errors
    /// Whether it is durable is not known then.
    fn commit(&mut self, block: Self::Block) -> Result<(), Self::Error>;
}

/// What comes of a step of a hand-over.
pub type Handed<T, H, R> = Result<T, HandoverError<<H as RegistryTags>::Error, <R as Registries>::Error>>;
