//! This database's tables, for the core's refill worker.

use crate::pg::worker;
use crate::store::segment::TagTables;
use crate::store::tables::SEGMENT;
use pgrx::PgSqlErrorCode;
use pgrx::spi::SpiError;
use snowflake_ids_core::worker::refill::{Database, TransactionError};

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
