//! This database's tables, for the core's refill worker.

use crate::pg::worker;
use crate::store::segment::TagTables;
use crate::store::tables::SEGMENT;
use pgrx::spi::SpiError;
use snowflake_ids_core::registry::error::SqlError;
use snowflake_ids_core::worker::refill::Database;

pub struct TablesHere;

impl Database for TablesHere {
    type Tables = TagTables;

    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut TagTables) -> Result<T, SpiError>,
    ) -> Result<T, SqlError> {
        let done = worker::transaction(|| match SEGMENT.find() {
            Some(source) => source.as_owner(|| work(&mut TagTables(Some(source)))),
            None => work(&mut TagTables(None)),
        });
        let of_spi = |error: SpiError| SqlError::new(*b"XX000", error.to_string());
        done?.map_err(of_spi)
    }
}
