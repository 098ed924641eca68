//! A server that uses no registry.

use snowflake_ids_core::registry::error::{Complaint, RegistryError};
use snowflake_ids_core::registry::failover::Health;
use snowflake_ids_core::registry::link::{Endpoint, EndpointStatus, RegistryLink};
use snowflake_ids_core::registry::wire::{RequestBody, Response};
use std::time::Duration;

pub struct Alone;

impl RegistryLink for Alone {
    fn ask(&mut self, _: &Endpoint, ask: RequestBody, _: Duration) -> Result<Response, RegistryError> {
        panic!("{ask:?} is asked of a registry");
    }

    fn status(&self, _: &Endpoint) -> impl EndpointStatus {
        Nothing
    }
}

struct Nothing;

impl EndpointStatus for Nothing {
    fn health(&self) -> Health {
        Health::default()
    }
    fn asked(&self) {}
    fn given_up(&self) {}
    fn answered(&self, _: Duration) {}
    fn failed(&self, _: &Complaint) {}
    fn complain(&self, _: &Complaint) {}
    fn is_news(&self, _: &Complaint) -> bool {
        false
    }
    fn clear_complaint(&self) {}
}
