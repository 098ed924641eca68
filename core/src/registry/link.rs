//! A registry as processes reach it: the tables of this database, or another server over a connection.

use crate::registry::error::{Complaint, RegistryError};
use crate::registry::failover::Health;
use crate::registry::wire::{self, RequestBody, Response};
use crate::sequence::reservation::Share;
use std::time::Duration;

/// A registry: takes a request for worker ids or tags, or a hand-over, and gives its response.
pub trait Registry {
    /// Sends a request and waits for the response.
    ///
    /// # Errors
    /// [`RegistryError`]. The request may have been served all the same.
    fn ask(&mut self, ask: RequestBody) -> Result<Response, RegistryError>;
}

/// A registry on another server that a database uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its place among them, from 0.
    pub position: u32,
    /// The foreign server.
    pub server: String,
    /// The registry as it was seen last.
    pub seen: wire::RegistryName,
}

impl Endpoint {
    /// Returns its share of each tag's ids; None where there is one registry.
    pub fn share(&self, of: usize) -> Option<Share> {
        u32::try_from(of).ok().filter(|of| *of > 1).map(|of| Share { index: self.position, of })
    }
}

/// The registries of a database, with what is noted of them: for the refill worker.
pub trait RegistryLink {
    /// Sends a request to a registry, waits for the response for so long, and notes the outcome.
    ///
    /// # Errors
    /// [`RegistryError`]. The request may have been served all the same.
    fn ask(
        &mut self,
        endpoint: &Endpoint,
        ask: RequestBody,
        limit: Duration,
    ) -> Result<Response, RegistryError>;

    /// Returns what is known of a registry.
    fn status(&self, endpoint: &Endpoint) -> impl EndpointStatus;
}

/// Notes on one registry, for all processes of a server. Where there is no room for them, nothing is noted.
pub trait EndpointStatus {
    /// Returns when it failed last, and how often.
    fn health(&self) -> Health;
    /// Notes that it is asked.
    fn asked(&self);
    /// Notes that the response is not waited for any longer, for no fault of the registry.
    fn given_up(&self);
    /// Notes a response, and how long it took.
    fn answered(&self, took: Duration);
    /// Notes that there was none.
    fn failed(&self, complaint: &Complaint);
    /// Notes a fault of its responses.
    fn complain(&self, complaint: &Complaint);
    /// Returns whether another fault was noted before.
    fn is_news(&self, complaint: &Complaint) -> bool;
    /// Notes that its responses have no fault.
    fn clear_complaint(&self);
}
