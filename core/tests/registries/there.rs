//! Registries as an operator's session reaches them.

use snowflake_ids_core::registry::client::{Block, Network, RegistryClient};
use snowflake_ids_core::registry::error::RegistryError;
use snowflake_ids_core::registry::handover::Registries;
use snowflake_ids_core::registry::link::Site;
use snowflake_ids_core::registry::wire::{Registry, RequestBody, Response};
use std::time::Duration;

/// Registries on other servers.
pub struct There<N: Network> {
    network: N,
    client: RegistryClient<N>,
    /// How long a response is waited for.
    limit: Duration,
}

impl<N: Network> There<N> {
    /// Those that are reached by this network.
    pub fn new(network: N, limit: Duration) -> Self {
        Self { client: RegistryClient::new(network.clone()), network, limit }
    }
}

impl<N: Network> Registries for There<N> {
    type Error = RegistryError;
    type Block = Block<N>;

    fn ask(
        &mut self,
        server: &str,
        seen: Option<&Registry>,
        ask: RequestBody,
    ) -> Result<Response, RegistryError> {
        let options = self.network.options(server)?;
        self.client.ask_at(server, &options, seen, ask, self.limit)
    }

    fn begin(&mut self, site: &Site, of: usize) -> Result<Self::Block, RegistryError> {
        let options = self.network.options(&site.server)?;
        self.client.begin(site, &options, of, self.limit)
    }

    fn ask_in(&mut self, block: &mut Self::Block, ask: RequestBody) -> Result<Response, RegistryError> {
        block.ask(ask)
    }

    fn commit(&mut self, block: Self::Block) -> Result<(), RegistryError> {
        block.commit()
    }
}
