//! The registries that a database uses, as seen by the processes that send requests to them.

use crate::registry::error::{Complaint, RegistryError};
use crate::registry::failover::Health;
use crate::registry::wire::{self, RequestBody, Response};
use crate::sequence::reservation::Share;
use std::time::Duration;

/// A registry that a database uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its place among them, from 0.
    pub position: u32,
    /// The foreign server.
    pub server: String,
    /// Which registry that is, as it was seen last.
    pub seen: wire::Registry,
}

impl Site {
    /// Returns which of several registries this one is; None where there is one.
    pub fn share(&self, of: usize) -> Option<Share> {
        u32::try_from(of).ok().filter(|of| *of > 1).map(|of| Share { index: self.position, of })
    }
}

/// How workers reach the registries of their database, and what is noted of those.
pub trait RegistryLink {
    /// Sends a request to a registry, waits for the response for so long, and notes how that went.
    ///
    /// # Errors
    /// [`RegistryError`]. What was asked for may have been done all the same.
    fn ask(&mut self, site: &Site, ask: RequestBody, limit: Duration) -> Result<Response, RegistryError>;

    /// Returns what is known of a registry.
    fn notes(&self, site: &Site) -> impl RegistryNotes;
}

/// What is noted of one registry, for all processes of a server. Where there is no room for that, nothing is.
pub trait RegistryNotes {
    /// Returns what there is to go by when it is to be asked again.
    fn health(&self) -> Health;
    /// Notes that it is asked.
    fn asked(&self);
    /// Notes that the response is not waited for any longer, for no fault of the registry.
    fn given_up(&self);
    /// Notes a response, and how long it took.
    fn answered(&self, took: Duration);
    /// Notes that there was none, and why.
    fn failed(&self, complaint: &Complaint);
    /// Notes what is wrong with what it answers.
    fn complain(&self, complaint: &Complaint);
    /// Returns whether something else was wrong with it before.
    fn is_news(&self, complaint: &Complaint) -> bool;
    /// Notes that there is nothing wrong with what it answers.
    fn be_content(&self);
}
