//! A server that uses no registry.

use snowflake_ids_core::registry::client::{Network, Options, RemoteStatement};
use snowflake_ids_core::registry::error::{Complaint, ConnectionError, RegistryError};
use snowflake_ids_core::registry::failover::Health;
use snowflake_ids_core::registry::link::{Endpoint, EndpointStatus};
use std::time::Duration;

#[derive(Clone)]
pub struct Alone;

impl Network for Alone {
    type Connection = ();
    type Status = Nothing;

    fn uptime(&self) -> Duration {
        Duration::ZERO
    }
    fn options(&self, server: &str) -> Result<Options, RegistryError> {
        panic!("registry {server} is asked");
    }
    fn open(&self, _: &Options, _: Duration) -> Result<(), ConnectionError> {
        Ok(())
    }
    fn is_good(&self, (): &mut ()) -> bool {
        false
    }
    fn run(
        &self,
        (): &mut (),
        statement: RemoteStatement,
        _: &str,
        _: Duration,
    ) -> Result<String, ConnectionError> {
        panic!("{statement:?} is run at a registry");
    }
    fn status(&self, _: &Endpoint) -> Nothing {
        Nothing
    }
    fn log(&self, _: &str) {}
}

pub struct Nothing;

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
