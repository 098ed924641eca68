//! Queries of our own, which read with the caller's rights and change nothing: they run on a standby, too.

use super::text::Shown;
use super::time;
use pgrx::prelude::*;
use pgrx::spi::{SpiError, SpiHeapTupleData};
use pgrx::{FromDatum, IntoDatum, pg_sys};
use snowflake_ids_core::UnixMicros;
use std::time::Duration;

/// How many rows are in memory at a time.
const BATCH: i64 = 500;

/// A row of an answer. Columns count from 1; None where one is null.
pub struct Row<'a>(SpiHeapTupleData<'a>);

impl Row<'_> {
    /// A text, of which the query says that it is one.
    pub fn text(&self, column: usize) -> Result<Option<String>, SpiError> {
        Ok(self.get::<Shown>(column)?.map(|text| text.0))
    }

    /// An instant; None also where it is infinite.
    pub fn instant(&self, column: usize) -> Result<Option<UnixMicros>, SpiError> {
        let at = self.get::<TimestampWithTimeZone>(column)?;
        Ok(at.and_then(|at| time::from_sql(at).ok()))
    }

    /// A length of time.
    pub fn length(&self, column: usize) -> Result<Option<Duration>, SpiError> {
        Ok(self.get::<Interval>(column)?.map(time::duration))
    }

    /// A count, of a bigint.
    pub fn count(&self, column: usize) -> Result<Option<u64>, SpiError> {
        Ok(self.get::<i64>(column)?.map(|count| u64::try_from(count).unwrap_or(0)))
    }

    /// A number, or whether.
    pub fn get<T: FromDatum + IntoDatum>(&self, column: usize) -> Result<Option<T>, SpiError> {
        self.0.get(column)
    }
}

/// Calls `each` with every row of a query, in which all names have their schemas. Only within a transaction.
///
/// # Errors
/// Those of SPI, as where a column is of another type; SQL errors are thrown.
pub fn each(sql: &str, mut each: impl FnMut(&Row<'_>) -> Result<(), SpiError>) -> Result<(), SpiError> {
    Spi::connect(|client| {
        let mut cursor = client.try_open_cursor(sql, &[])?;
        loop {
            let rows = cursor.fetch(BATCH)?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in rows {
                each(&Row(row))?;
            }
            // SAFETY: the rows that were fetched last, of which nothing is used any more.
            unsafe { pg_sys::SPI_freetuptable(pg_sys::SPI_tuptable) };
        }
    })
}

/// All rows of a query, as they are read.
///
/// # Errors
/// As [`each`].
pub fn all<T>(sql: &str, read: impl Fn(&Row<'_>) -> Result<T, SpiError>) -> Result<Vec<T>, SpiError> {
    let mut rows = Vec::new();
    each(sql, |row| {
        rows.push(read(row)?);
        Ok(())
    })?;
    Ok(rows)
}
