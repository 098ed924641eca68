//! Why a series gave no number.

use crate::pg::report::{report, spi};
use crate::segment::error::{SegmentError, no_answer, worker_trouble};
use crate::shared::slot::Trouble;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::SpiError;
use snowflake_ids_core::clock::human;
use snowflake_ids_core::locked::LockedError;
use snowflake_ids_core::series::SeriesError;
use snowflake_ids_core::{Explain, Kind};
use std::time::Duration;

/// Why a series gave no number.
#[derive(Debug, thiserror::Error)]
pub enum NoNumberError {
    /// It cannot.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// A dense series has none at the moment.
    #[error(transparent)]
    Dense(#[from] DenseError),
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
            NoNumberError::Dense(error) => report(&error),
            NoNumberError::Section(error) => report(&error),
            NoNumberError::Locked(error) => report(&error),
            NoNumberError::Spi(error) => spi(&error),
        }
    }
}

/// Why a dense series has no number at the moment.
#[derive(Debug, thiserror::Error)]
pub enum DenseError {
    /// No number came in time.
    #[error("no number for key {key} of series \"{series}\" within {}", human(*limit))]
    TooLate {
        series: String,
        key: String,
        /// The time that the call may wait.
        limit: Duration,
        /// What stands in the way.
        detail: String,
        /// What to do about it.
        hint: String,
    },
    /// A trigger on the tables asks for a number while a worker, or a commit, writes to them.
    #[error("cannot wait for a number of series \"{series}\" while numbers are being reserved")]
    Within { series: String },
}

impl DenseError {
    /// No number came in time.
    pub fn too_late(series: String, key: String, limit: Duration, trouble: Option<Trouble>) -> Self {
        let (detail, hint) = match trouble.and_then(worker_trouble) {
            Some(found) => found,
            None if trouble == Some(Trouble::Registry) => no_answer(),
            None if trouble == Some(Trouble::RowLocked) => (
                "A transaction has the key's row in the tables of snowflake_ids, or that of the series, locked.".to_owned(),
                "End that transaction. To find it: SELECT pid, query FROM pg_stat_activity WHERE backend_xid IS NOT NULL ORDER BY xact_start; \
                 or SELECT gid FROM pg_prepared_xacts."
                    .to_owned(),
            ),
            None => (
                "What was reserved is used up, and the background worker has reserved no more in time.".to_owned(),
                "Look at pg_stat_activity; raise snowflake_ids.segment_wait_timeout where the disk is slow.".to_owned(),
            ),
        };
        Self::TooLate { series, key, limit, detail, hint }
    }
}

impl Explain for DenseError {
    fn kind(&self) -> Kind {
        match self {
            Self::TooLate { .. } => Kind::WaitedTooLong,
            Self::Within { .. } => Kind::NotReady,
        }
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::TooLate { detail, .. } => detail.clone(),
            Self::Within { .. } => "A trigger on a table of snowflake_ids asks for it.".to_owned(),
        })
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::TooLate { hint, .. } => hint.clone(),
            Self::Within { .. } => {
                "Take numbers in such a trigger from a gapless series, or from a sequence.".to_owned()
            }
        })
    }
}
