//! This database's tables, for the core's refill worker.

use crate::pg::catalog::Source;
use crate::pg::encoding::to_utf8;
use crate::pg::worker;
use crate::store::citus;
use crate::store::registry as store;
use crate::store::segment::TagTables;
use crate::store::tables::SEGMENT;
use pgrx::PgSqlErrorCode;
use pgrx::spi::SpiError;
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::wire;
use snowflake_ids_core::sequence::directory::Tag;
use snowflake_ids_core::sequence::reservation::Reserved;
use snowflake_ids_core::worker::refill::{self as core, Database, Received, TransactionError};

pub struct TablesHere;

impl Database for TablesHere {
    type Tables = TagTables;

    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut TagTables) -> Result<T, SpiError>,
    ) -> Result<T, TransactionError> {
        let done = worker::transaction(|| match SEGMENT.find() {
            Some(source) => source.as_owner(|| work(&mut TagTables(Some(source)))),
            None => work(&mut TagTables(None)),
        });
        let of_spi = |error: SpiError| TransactionError {
            code: PgSqlErrorCode::ERRCODE_INTERNAL_ERROR as i32,
            message: error.to_string(),
            is_lock_timeout: false,
        };
        done?.map_err(of_spi)
    }
}

impl core::Tables for TagTables {
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
