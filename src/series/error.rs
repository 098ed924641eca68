//! Errors of calls for numbers of a series.

use crate::pg::report::{report, spi};
use crate::segment::error::SegmentError;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::SpiError;
use snowflake_ids_core::series::SeriesError;
use snowflake_ids_core::worker::locked::LockedError;

/// Reason why a series gave no number.
#[derive(Debug, thiserror::Error)]
pub enum NoNumberError {
    /// It cannot.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The tag of a section gave none.
    #[error(transparent)]
    Section(#[from] SegmentError),
    /// A table that says what it is was locked.
    #[error(transparent)]
    Locked(#[from] LockedError),
    /// SPI failed without an SQL error.
    #[error(transparent)]
    Spi(#[from] SpiError),
}

impl From<NoNumberError> for ErrorReport {
    #[cold]
    fn from(error: NoNumberError) -> Self {
        match error {
            NoNumberError::Series(error) => report(&error),
            NoNumberError::Section(error) => report(&error),
            NoNumberError::Locked(error) => report(&error),
            NoNumberError::Spi(error) => spi(&error),
        }
    }
}
