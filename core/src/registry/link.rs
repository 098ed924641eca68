//! The registries on other servers that a database uses, and their status.

use crate::registry::error::Complaint;
use crate::registry::failover::Health;
use crate::registry::wire;
use crate::tag::reservation::Share;
use std::time::Duration;

/// A registry on another server that this database uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The registry's index in the list of registries in use, from 0.
    pub position: u32,
    /// The foreign server.
    pub server: String,
    /// The registry's name (identity and timeline), as last seen.
    pub seen: wire::RegistryName,
}

impl Endpoint {
    /// Returns the share of each tag's ids that this registry serves, if `of` registries are in use. Returns None if
    /// `of` is 1.
    pub fn share(&self, of: usize) -> Option<Share> {
        u32::try_from(of).ok().filter(|of| *of > 1).map(|of| Share { index: self.position, of })
    }
}

/// The status of one registry, which all processes of the server share. The methods record nothing if shared memory has
/// no free slot for the registry.
pub trait EndpointStatus {
    /// Returns the last failure and the number of failures.
    fn health(&self) -> Health;
    /// Records that a request is sent.
    fn asked(&self);
    /// Records that this process stopped waiting for a response, without a fault of the registry.
    fn given_up(&self);
    /// Records a response, and the time that it took.
    fn answered(&self, took: Duration);
    /// Records a request without a response.
    fn failed(&self, complaint: &Complaint);
    /// Records a fault in a response.
    fn complain(&self, complaint: &Complaint);
    /// Returns whether this fault differs from the last recorded fault.
    fn is_news(&self, complaint: &Complaint) -> bool;
    /// Records a response without a fault.
    fn clear_complaint(&self);
}
