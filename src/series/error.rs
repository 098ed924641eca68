//! Errors of calls for numbers of a series.

use crate::pg::report::reported;
use crate::tag::error::SegmentError;
use pgrx::spi::SpiError;
use snowflake_ids_core::Explain;
use snowflake_ids_core::process::locked::LockedError;
use snowflake_ids_core::series::SeriesError;

/// The reason why a series gave no number.
#[derive(Debug, thiserror::Error, Explain)]
pub enum NoNumberError {
    /// The series cannot give the number, or the caller may not take it.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The tag of a section gave no ids.
    #[error(transparent)]
    Section(#[from] SegmentError),
    /// A table that defines the series was locked.
    #[error(transparent)]
    Locked(#[from] LockedError),
    /// SPI failed without an SQL error.
    #[error("snowflake_ids could not run its SQL: {0}")]
    #[explain(Internal)]
    Spi(#[from] SpiError),
}

reported!(NoNumberError);
