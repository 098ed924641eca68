//! Errors of named generators.

use crate::pg::report::report;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::generator::named::NamedError;
use snowflake_ids_core::generator::session::SessionError;
use snowflake_ids_core::{Explain, Kind, Shard, ShardError};

/// Reason why a named generator gave no id.
#[derive(Debug, thiserror::Error)]
pub enum NoIdError {
    /// There is no such generator.
    #[error(transparent)]
    Named(#[from] NamedError),
    /// The server gives none.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Its layout has no ids for the shard that is set.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A sequence gives ids in a row, of which one in so many is the shard's.
    #[error("ids of shard {0} are not in a row")]
    InRow(Shard),
}

impl NoIdError {
    fn cause(&self) -> Option<&dyn Explain> {
        match self {
            Self::Named(error) => Some(error),
            Self::Session(error) => Some(error),
            Self::Shard(error) => Some(error),
            Self::InRow(_) => None,
        }
    }
}

impl Explain for NoIdError {
    fn kind(&self) -> Kind {
        self.cause().map_or(Kind::Unsupported, Explain::kind)
    }

    fn detail(&self) -> Option<String> {
        let in_row = || Some("A sequence whose increment is not 1 gives as many ids in a row.".into());
        self.cause().map_or_else(in_row, Explain::detail)
    }

    fn hint(&self) -> Option<String> {
        let in_row =
            || Some("ALTER SEQUENCE ... INCREMENT BY 1, or use a generator that gives every id.".into());
        self.cause().map_or_else(in_row, Explain::hint)
    }

    fn for_others(&self) -> Option<(String, String)> {
        self.cause()?.for_others()
    }
}

impl From<NoIdError> for ErrorReport {
    #[cold]
    fn from(error: NoIdError) -> Self {
        report(&error)
    }
}
