//! This database's tables, for the core's refill worker.

use crate::pg::catalog::Source;
use crate::pg::encoding::to_utf8;
use crate::store::citus;
use crate::store::registry as store;
use crate::store::segment::TagTables;
use pgrx::spi::SpiError;
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::wire;
use snowflake_ids_core::sequence::directory::Tag;
use snowflake_ids_core::sequence::reservation::Reserved;
use snowflake_ids_core::worker::refill::{Received, Tables};

impl Tables for TagTables {
    fn source(&mut self) -> Option<u32> {
        self.0.map(Source::number)
    }

    fn uses_registries(&mut self) -> Result<bool, SpiError> {
        store::in_use()
    }

    fn is_clustered(&mut self) -> Result<bool, SpiError> {
        citus::is_worker()
    }

    fn endpoints(&mut self) -> Result<Vec<Endpoint>, SpiError> {
        store::endpoints()
    }

    fn is_used(&mut self, identity: &str) -> Result<bool, SpiError> {
        store::is_used(identity)
    }

    fn record_seen(&mut self, registry: &wire::RegistryName) -> Result<(), SpiError> {
        store::record_seen(registry)
    }

    fn lock_received(&mut self) -> Result<(), SpiError> {
        store::lock_received()
    }

    fn received(&mut self, identity: &str, tag: &Tag) -> Result<Option<Received>, SpiError> {
        store::received(identity, tag)
    }

    fn receive(&mut self, identity: &str, tag: &Tag, reserved: &Reserved) -> Result<(), SpiError> {
        store::receive(identity, tag, reserved)
    }

    fn to_utf8(&mut self, tag: &Tag) -> Option<String> {
        to_utf8(tag.as_bytes())
    }
}
