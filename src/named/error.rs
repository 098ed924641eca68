//! Why a named generator gave no id.

use crate::pg::report::report;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::named::NamedError;
use snowflake_ids_core::session::SessionError;
use snowflake_ids_core::{Explain, Kind};

/// Why a named generator gave no id.
#[derive(Debug, thiserror::Error)]
pub enum NoIdError {
    /// There is no such generator.
    #[error(transparent)]
    Named(#[from] NamedError),
    /// The server gives none.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl NoIdError {
    fn cause(&self) -> &dyn Explain {
        match self {
            Self::Named(error) => error,
            Self::Session(error) => error,
        }
    }
}

impl Explain for NoIdError {
    fn kind(&self) -> Kind {
        self.cause().kind()
    }

    fn detail(&self) -> Option<String> {
        self.cause().detail()
    }

    fn hint(&self) -> Option<String> {
        self.cause().hint()
    }

    fn for_others(&self) -> Option<(String, String)> {
        self.cause().for_others()
    }
}

impl From<NoIdError> for ErrorReport {
    #[cold]
    fn from(error: NoIdError) -> Self {
        report(&error)
    }
}
